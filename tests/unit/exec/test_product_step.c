/* SPDX-License-Identifier: Apache-2.0 */
/* Products that sessions stream: what fails beneath is an error that names the node and leaves
 * nothing behind, wherever operands and result are. Integers: BLAS has no part in it. */
#include "faults.h"

#include "graph_fixture.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plimsoll/session.h"

/* Of the widest integers: for as many bytes, the fewest products. */
enum { M = 212, N = 184, K = 284 };

/* Reading ahead takes 512 KiB, the matrices 320 to 480 each. */
static const pl_run_options tight = {.budget_bytes = 900 * PL_KIB};

static pl_runtime *runtime;
static pl_session *session;
static char folder[64], paths[3][128];
static pl_tensor *tensors[2];
static pl_node *a, *b;

static int value_at(int which, int64_t row, int64_t column)
{
    return (int)((row * 31 + column * 17 + which * 5) % 23) - 11;
}

/* As it is multiplied: a is M x K, b is K x N. */
static pl_tensor *matrix(int which, bool transposed)
{
    static int64_t data[K * M];
    int64_t rows = which ? K : M, columns = which ? N : K;
    pl_shape shape = transposed ? PL_SHAPE(columns, rows) : PL_SHAPE(rows, columns);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            data[transposed ? k * rows + i : i * columns + k] = value_at(which, i, k);
    pl_tensor *tensor;
    if (pl_tensor_new(runtime, PL_I64, &shape, data, "matrix", &tensor, &error) < 0)
        fail_msg("%s", error.message);
    return tensor;
}

static int begin(void **state)
{
    fault_io_reset();
    strcpy(folder, "/tmp/plimsoll-product-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    for (int i = 0; i < 3; i++)
        snprintf(paths[i], sizeof paths[i], "%s/%c.npy", folder, "abc"[i]);
    const pl_runtime_options options = {
        .cap_bytes = 4 * PL_MIB, .spill_directory = folder, .n_threads = 2};
    if (setup(state) < 0 || pl_runtime_new(&options, &runtime, &error) < 0)
        return -1;
    return pl_session_new(graph, runtime, &session, &error);
}

static int end(void **state)
{
    fault_io_reset();
    for (int i = 0; i < 2; i++)
        pl_tensor_unref(PL_TAKE(tensors[i]));
    pl_session_free(PL_TAKE(session));
    teardown(state);
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    pl_runtime_unref(PL_TAKE(runtime));
    for (int i = 0; i < 3; i++)
        unlink(paths[i]);
    return rmdir(folder); /* nothing else is left in it */
}

#define PRODUCT_CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

/* Operands in files, or in memory; the product. */
static pl_node *product_of(bool in_files, bool a_transposed)
{
    pl_node *c;
    for (int i = 0; i < 2; i++) {
        tensors[i] = matrix(i, i == 0 && a_transposed);
        if (!in_files)
            continue;
        assert_int_equal(pl_tensor_save_npy(tensors[i], paths[i], &error), 0);
        pl_tensor_unref(tensors[i]);
        assert_int_equal(pl_tensor_open_npy(runtime, paths[i], &tensors[i], &error), 0);
    }
    a = place("a", PL_I64, *pl_tensor_shape(tensors[0]));
    b = place("b", PL_I64, *pl_tensor_shape(tensors[1]));
    assert_int_equal(pl_graph_matmul(graph, "c", a, b, a_transposed, false, &c, &error), 0);
    return c;
}

/* To the file, or to a tensor. */
static int run(pl_node *fetch, bool to_file, const pl_run_options *options, pl_tensor **ret_tensor)
{
    const pl_feed feeds[] = {{a, tensors[0]}, {b, tensors[1]}};
    const pl_fetch fetches = {fetch, to_file ? paths[2] : NULL};
    *ret_tensor = NULL;
    error.message[0] = '\0';
    int r = pl_session_run(session, &fetches, 1, feeds, 2, options, ret_tensor, &error);
    if (r == 0 && to_file)
        r = pl_tensor_open_npy(runtime, paths[2], ret_tensor, &error);
    return r;
}

/* `times` what the plain loop gives. */
static void check(pl_tensor *c, int times)
{
    static int64_t data[M * N];
    const int64_t origin[PL_RANK_MAX] = {0};
    assert_int_equal(pl_tensor_read(c, origin, pl_tensor_shape(c)->dims, data, &error), 0);
    for (int64_t i = 0; i < M; i += 7)
        for (int64_t k = 0; k < N; k += 3) {
            int64_t sum = 0;
            for (int64_t p = 0; p < K; p++)
                sum += value_at(0, i, p) * value_at(1, p, k);
            assert_int_equal(data[i * N + k], times * sum);
        }
    pl_tensor_unref(c);
}

static void must_run(pl_node *fetch, bool to_file, const pl_run_options *options, int times)
{
    pl_tensor *c;
    if (run(fetch, to_file, options, &c) < 0)
        fail_msg("%s", error.message);
    check(c, times);
}

static void explains(pl_node *fetch, const pl_run_options *options, const char *words)
{
    char *text;
    const pl_feed feeds[] = {{a, tensors[0]}, {b, tensors[1]}};
    const pl_fetch fetches = {fetch, NULL};
    if (pl_session_explain(session, &fetches, 1, feeds, 2, options, true, &text, NULL, &error) < 0)
        fail_msg("%s", error.message);
    if (!strstr(text, words))
        fail_msg("no %s in %s", words, text);
    free(text);
}

static void operands_in_files_are_read_there(void **state)
{
    (void)state;
    pl_node *c = product_of(true, false);
    explains(c, &tight, "\"tiling\":\"strips\"");
    must_run(c, false, &tight, 1);
    must_run(c, true, &tight, 1);
}

static void an_operand_across_goes_through_the_spill_file(void **state)
{
    (void)state;
    pl_node *c = product_of(true, true);
    explains(c, &tight, "\"tiling\":\"tiles\"");
    must_run(c, false, &tight, 1);
    must_run(c, true, &tight, 1);
}

/* The plan has no room for them, but the pool has, until the product takes it. */
static void operands_that_are_in_memory_are_asked_for_their_rows(void **state)
{
    (void)state;
    pl_node *c = product_of(false, false);
    explains(c, &tight, "\"tiling\":\"strips\"");
    must_run(c, false, &tight, 1);
    must_run(c, true, &tight, 1);
}

static void an_operand_that_was_spilled_is_read_from_there(void **state)
{
    (void)state;
    (void)product_of(true, false);
    pl_node *twice = must_add("add", "twice", NODES(a, a), NO_ATTRS);
    pl_node *c = must_add("matmul", "d", NODES(twice, b), NO_ATTRS);
    explains(c, &tight, "\"where\":\"spill\"");
    must_run(c, false, &tight, 2);
}

static void each_read_and_write_that_fails_is_an_error(void **state)
{
    bool across = *state != NULL;
    pl_node *c = product_of(true, across);
    uint64_t claimed = pl_runtime_claimed_bytes(runtime);
    for (int writes = 0; writes < 2; writes++)
        for (int n = 0, hit = true; hit; n += 1 + n / 4) { /* until there are no more */
            pl_tensor *result;
            struct stat about;
            unlink(paths[2]);
            fault_io_reset();
            fault_io.n_before = n;
            *(writes ? &fault_io.write_error : &fault_io.read_error) = EIO;
            int r = run(c, true, &tight, &result);
            hit = writes ? fault_io.n_writes > n : fault_io.n_reads > n;
            fault_io_reset();
            pl_tensor_unref(result);
            assert_int_equal(r, hit ? -EIO : 0);
            assert_int_equal(stat(paths[2], &about), hit ? -1 : 0);
            assert_int_equal(pl_runtime_claimed_bytes(runtime), claimed);
            if (hit && n > 0) /* the first write is the header's */
                assert_non_null(strstr(error.message, "matmul 'c': cannot "));
        }
    must_run(c, true, &tight, 1);
}

static int begin_across(void **state)
{
    int r = begin(state);
    *state = &error;
    return r;
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    pl_tensor *result;
    pl_node *c = product_of(true, true);
    for (int to_file = 0; to_file < 2; to_file++) {
        fault_io.reserve_error = ENOSPC;
        assert_int_equal(run(c, to_file, &tight, &result), -ENOSPC);
        fault_io_reset();
    }
    must_run(c, true, &tight, 1);
}

static void a_file_that_was_cut_off_is_an_error(void **state)
{
    (void)state;
    pl_tensor *result;
    pl_node *c = product_of(true, false);
    assert_int_equal(truncate(paths[1], 128 + K * N * 4), 0);
    assert_int_equal(run(c, true, &tight, &result), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "matmul 'c': cannot read "));
    assert_non_null(strstr(error.message, paths[1]));
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    pl_node *c = product_of(true, true);
    uint64_t claimed = pl_runtime_claimed_bytes(runtime);
    for (int number = 1, n_failed = 0;; number++) {
        pl_tensor *result;
        fault_alloc_begin(number);
        int r = run(c, false, &tight, &result);
        bool hit = fault_alloc_end();
        if (r == 0)
            check(result, 1);
        else
            assert_true(strlen(error.message) > 0);
        assert_int_equal(pl_runtime_claimed_bytes(runtime), claimed);
        n_failed += r < 0;
        assert_true(hit || n_failed > 20);
        if (!hit)
            break;
    }
}

typedef struct watcher {
    int cancel;
    bool all; /* runs of the session are cancelled, not this one */
    double last;
} watcher;

static void watch(void *context, double fraction, const char *name)
{
    watcher *w = context;
    assert_string_equal(name, "c");
    assert_true(fraction >= w->last && fraction <= 1);
    w->last = fraction;
    if (fraction >= 0.5 && w->all)
        pl_session_cancel(session);
    else if (fraction >= 0.5)
        __atomic_store_n(&w->cancel, 1, __ATOMIC_RELAXED);
}

static void it_tells_how_far_it_is_and_can_be_cancelled(void **state)
{
    (void)state;
    pl_tensor *result;
    pl_node *c = product_of(true, false);
    watcher w = {0};
    pl_run_options options = tight;
    options.progress = watch;
    options.progress_context = &w;
    must_run(c, true, &options, 1);
    assert_true(w.last == 1);
    options.cancel = &w.cancel;
    for (int all = 0; all < 2; all++) {
        w = (watcher){.all = all};
        unlink(paths[2]);
        assert_int_equal(run(c, true, &options, &result), -ECANCELED);
        assert_true(w.last < 1);
        assert_string_equal(error.message, "matmul 'c': the run was cancelled");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PRODUCT_CASE(operands_in_files_are_read_there),
        PRODUCT_CASE(an_operand_across_goes_through_the_spill_file),
        PRODUCT_CASE(operands_that_are_in_memory_are_asked_for_their_rows),
        PRODUCT_CASE(an_operand_that_was_spilled_is_read_from_there),
        PRODUCT_CASE(each_read_and_write_that_fails_is_an_error),
        {"each_read_and_write_that_fails_is_an_error, across",
         each_read_and_write_that_fails_is_an_error, begin_across, end, NULL},
        PRODUCT_CASE(a_full_disk_is_an_error),
        PRODUCT_CASE(a_file_that_was_cut_off_is_an_error),
        PRODUCT_CASE(every_allocation_may_fail),
        PRODUCT_CASE(it_tells_how_far_it_is_and_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
