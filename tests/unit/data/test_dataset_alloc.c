/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a pass's whole life fails once in turn, over pipelines of files, functions,
 * graphs, policies, batches and what runs ahead: an error each time, with a message, and nothing is
 * left: no block, no claim. What does not fail is right to the bit. There are no threads to be had,
 * so that everything happens in this one. */
#include "lives.h"

#include "graph_fixture.h"

#include <stdio.h>

#include "plimsoll/dataset.h"
#include "plimsoll/session.h"

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*start)(void *), void *restrict argument)
{
    (void)thread, (void)attributes, (void)start, (void)argument;
    return EAGAIN;
}

enum { NUMBERS = 12, BAD = 5 };

static char path[] = "/tmp/plimsoll-dataset-alloc-XXXXXX";

/* One life of everything. */
typedef struct life {
    pl_runtime *runtime;
    pl_graph *graph;
    pl_session *session;
    pl_dataset *dataset; /* the last stage so far */
    int code;            /* the first failure */
    pl_error error;
    uint64_t sum;
} life;

static void begin_life(life *l)
{
    const pl_runtime_options options = {.cap_bytes = 16 * PL_MIB, .n_threads = 1};
    l->code = pl_runtime_new(&options, &l->runtime, &l->error);
    if (l->code == 0)
        l->code = pl_graph_new(&l->graph, &l->error);
    if (l->code == 0)
        l->code = pl_session_new(l->graph, l->runtime, &l->session, &l->error);
}

/* Another stage takes the last one's place. */
static void put(life *l, int r, pl_dataset *const *dataset)
{
    pl_dataset_unref(l->dataset);
    l->dataset = r < 0 ? NULL : *dataset;
    l->code = r;
}

static int twice(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                 int n_outputs, pl_error *reterr)
{
    (void)n_inputs, (void)n_outputs;
    life *l = context;
    int64_t x;
    const int64_t zero[PL_RANK_MAX] = {0}, one[PL_RANK_MAX] = {1};
    int r = pl_tensor_read(inputs[0].tensor, zero, one, &x, reterr);
    if (r < 0)
        return r;
    if (x == BAD)
        return pl_error_set(reterr, PL_ECORRUPT, "%d is bad", BAD);
    x *= 2;
    return pl_tensor_new(l->runtime, PL_I64, &(pl_shape){0}, &x, "x", &outputs[0].tensor, reterr);
}

static void map_numbers(life *l, int n_parallel)
{
    static const pl_spec spec = {.dtype = PL_I64};
    const pl_function function = {
        .call = twice, .output_specs = &spec, .n_inputs = 1, .n_outputs = 1, .context = l};
    pl_dataset *dataset = NULL;
    if (l->code == 0)
        put(l, pl_dataset_map(l->dataset, &function, n_parallel, &dataset, &l->error), &dataset);
}

static void skip_bad(life *l)
{
    const pl_dataset_options options = {.on_error = PL_ON_ERROR_SKIP, .max_bad = 3};
    pl_dataset *dataset = NULL;
    if (l->code == 0)
        put(l, pl_dataset_with_options(l->dataset, &options, &dataset, &l->error), &dataset);
}

static void batch(life *l, int64_t n)
{
    pl_dataset *dataset = NULL;
    if (l->code == 0)
        put(l, pl_dataset_batch(l->dataset, n, false, &dataset, &l->error), &dataset);
}

static void prefetch(life *l, int64_t n)
{
    pl_dataset *dataset = NULL;
    if (l->code == 0)
        put(l, pl_dataset_prefetch(l->dataset, n, &dataset, &l->error), &dataset);
}

static void map_lengths(life *l, int n_parallel)
{
    pl_node *line = NULL, *length = NULL;
    pl_dataset *dataset = NULL;
    if (l->code == 0)
        l->code = pl_graph_placeholder(l->graph, NULL, PL_STRING, &(pl_shape){0}, &line, &l->error);
    if (l->code == 0)
        l->code =
            pl_graph_add(l->graph, "string_length", NULL, &line, 1, NULL, 0, &length, &l->error);
    pl_node *outputs[] = {line, length};
    const pl_function function = {
        .session = l->session, .inputs = &line, .outputs = outputs, .n_inputs = 1, .n_outputs = 2};
    if (l->code == 0)
        put(l, pl_dataset_map(l->dataset, &function, n_parallel, &dataset, &l->error), &dataset);
}

/* ---- what comes out ---- */

static void mix(uint64_t *sum, const void *data, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        *sum = (*sum ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
}

static void mix_tensor(life *l, pl_tensor *tensor)
{
    const int64_t *dims = pl_tensor_shape(tensor)->dims;
    mix(&l->sum, dims, sizeof dims[0]);
    for (int64_t i = 0; l->code == 0 && i < dims[0]; i++) {
        int64_t number = 0;
        pl_string string;
        const int64_t at[PL_RANK_MAX] = {i}, one[PL_RANK_MAX] = {1};
        if (pl_tensor_dtype(tensor) != PL_STRING) {
            l->code = pl_tensor_read(tensor, at, one, &number, &l->error);
            mix(&l->sum, &number, sizeof number);
        } else if ((l->code = pl_tensor_pin_string(tensor, at, &string, &l->error)) == 0) {
            mix(&l->sum, string.data, string.n);
            pl_tensor_unpin(tensor);
        }
    }
}

static void iterate(life *l)
{
    pl_iterator *iterator = NULL;
    pl_value values[2];
    if (l->code == 0)
        l->code = pl_iterator_new(l->dataset, &iterator, &l->error);
    int n = l->code == 0 ? pl_dataset_n_components(l->dataset) : 0;
    while (l->code == 0) {
        int r = pl_iterator_next(iterator, values, &l->error);
        l->code = r < 0 ? r : 0;
        if (r <= 0)
            break;
        for (int i = 0; i < n; i++) {
            mix_tensor(l, values[i].tensor);
            pl_tensor_unref(values[i].tensor);
        }
    }
    if (l->code == 0) {
        pl_bad_count count = pl_iterator_bad_count(iterator);
        mix(&l->sum, &count, sizeof count);
    }
    pl_iterator_free(iterator);
    pl_dataset_unref(PL_TAKE(l->dataset));
}

static void live_by_numbers(life *l, int n_parallel)
{
    if (l->code == 0)
        l->code = pl_dataset_range(l->runtime, 0, NUMBERS, 1, &l->dataset, &l->error);
    map_numbers(l, n_parallel);
    skip_bad(l);
    batch(l, 3);
    prefetch(l, 2);
    iterate(l);
}

static void live_by_lines(life *l, int n_parallel)
{
    const char *paths[] = {path, "/missing", path};
    pl_dataset *dataset = NULL;
    if (l->code == 0)
        l->code = pl_dataset_paths(l->runtime, paths, 3, &l->dataset, &l->error);
    if (l->code == 0)
        put(l, pl_dataset_lines(l->dataset, PL_COMPRESSION_AUTO, &dataset, &l->error), &dataset);
    skip_bad(l);
    map_lengths(l, n_parallel);
    batch(l, 3);
    prefetch(l, 2);
    iterate(l);
}

/* From the beginning to the end; the code of the first failure, and its error. */
static int live(uint64_t *ret_sum, pl_error *reterr)
{
    life l = {.sum = 1};
    begin_life(&l);
    for (int n_parallel = 1; n_parallel <= 2; n_parallel++) {
        live_by_numbers(&l, n_parallel);
        live_by_lines(&l, n_parallel);
    }
    pl_dataset_unref(l.dataset);
    pl_session_free(l.session);
    pl_graph_free(l.graph);
    if (l.runtime)
        assert_int_equal(pl_runtime_claimed_bytes(l.runtime), 0);
    pl_runtime_unref(l.runtime);
    *ret_sum = l.sum;
    *reterr = l.error;
    return l.code;
}

static int begin(void **state)
{
    static const char text[] = "one\ntwo\n\nthree hundred and forty-five\n";
    (void)state;
    int fd = mkstemp(path);
    bool written = fd >= 0 && write(fd, text, sizeof text - 1) == sizeof text - 1;
    return written ? close(fd) : -1;
}

static int end(void **state)
{
    (void)state;
    return unlink(path);
}

static void every_allocation_fails_once_in_turn(void **state)
{
    (void)state;
    live_through_failures(&(whole_life){.live = live, .n_errors_least = 200});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once_in_turn),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
