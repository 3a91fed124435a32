/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a session's whole life fails once in turn, from the runtime's to the last
 * result's, over graphs that reach every kind of step, spilling, eviction, .npy files in and out,
 * constants and variables: an error each time, with a message, and nothing is left: no block, no
 * claim, no file. What does not fail is right to the bit. */
#include "lives.h"

#include "graph_fixture.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plimsoll/session.h"
#include "tensor/buffer.h"
#include "tensor/runtime.h"

enum { ROWS = 96, COLUMNS = 80, FETCHES_MOST = 48, IDLE = 6 };
#define IDLE_BYTES  (1250 * PL_KIB)
#define SHORT_BYTES (256 * PL_KIB) /* a run with so little spills */

static char folder[64], in_path[96], swapped_path[96], out_path[96], other_path[96];

/* One life of everything. */
typedef struct life {
    pl_runtime *runtime;
    pl_graph *graph;
    pl_session *session;
    pl_node *nodes[FETCHES_MOST];
    int n_nodes;
    pl_node *variable, *assigned, *shared;
    pl_feed feeds[3];
    pl_tensor *idle[IDLE];
    int code; /* the first failure */
    pl_error error;
} life;

static pl_node *add(life *l, const char *op, pl_node **inputs, int n_inputs, const pl_attr *attrs,
                    int n_attrs)
{
    pl_node *node = NULL;
    if (l->code == 0)
        l->code =
            pl_graph_add(l->graph, op, NULL, inputs, n_inputs, attrs, n_attrs, &node, &l->error);
    return node;
}

/* And its value is wanted. */
static pl_node *ask(life *l, const char *op, pl_node **inputs, int n_inputs, const pl_attr *attrs,
                    int n_attrs)
{
    pl_node *node = add(l, op, inputs, n_inputs, attrs, n_attrs);
    assert_true(l->n_nodes < FETCHES_MOST);
    l->nodes[l->n_nodes++] = node;
    return node;
}

#define TENSOR(dtype_of, ...)                                                                      \
    ATTRS(pl_attr_dtype("dtype", dtype_of), pl_attr_shape("shape", &PL_SHAPE(__VA_ARGS__)))

static pl_tensor *tensor_of(life *l, int64_t rows, int64_t columns)
{
    static float data[ROWS * COLUMNS];
    pl_tensor *tensor = NULL;
    const pl_shape shape = PL_SHAPE(rows, columns);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = (float)(i * 37 % 101) - 50;
    if (l->code == 0)
        l->code = pl_tensor_new(l->runtime, PL_F32, &shape, data, "numbers", &tensor, &l->error);
    return tensor;
}

static void begin_runtime(life *l)
{
    const pl_runtime_options options = {
        .cap_bytes = 8 * PL_MIB, .spill_directory = folder, .n_threads = 2};
    l->code = pl_runtime_new(&options, &l->runtime, &l->error);
    if (l->code == 0)
        l->code = pl_graph_new(&l->graph, &l->error);
    if (l->code == 0)
        l->code = pl_session_new(l->graph, l->runtime, &l->session, &l->error);
}

/* A window on a file, the other way round in memory, and every second column. */
static void feed_all(life *l, pl_node **places)
{
    const int64_t start[] = {0, 2 * COLUMNS - 2}, step[] = {1, -2}, count[] = {ROWS / 2, COLUMNS};
    pl_tensor *turned = tensor_of(l, COLUMNS, ROWS), *wide;
    wide = tensor_of(l, ROWS / 2, 2 * COLUMNS);
    if (l->code == 0)
        l->code = pl_tensor_open_npy(l->runtime, in_path, &l->feeds[0].tensor, &l->error);
    if (l->code == 0)
        l->code = pl_tensor_transpose(turned, (int[]){1, 0}, &l->feeds[1].tensor, &l->error);
    if (l->code == 0)
        l->code = pl_tensor_slice(wide, start, step, count, &l->feeds[2].tensor, &l->error);
    for (int i = 0; i < 3; i++)
        l->feeds[i].placeholder = places[i];
    pl_tensor_unref(turned);
    pl_tensor_unref(wide);
}

static void give_values(life *l, pl_node *constant)
{
    pl_tensor *tensor = tensor_of(l, COLUMNS, ROWS);
    if (l->code == 0)
        l->code = pl_constant_set(constant, tensor, &l->error);
    pl_tensor_unref(tensor);
    tensor = tensor_of(l, ROWS, COLUMNS);
    if (l->code == 0)
        l->code = pl_session_set(l->session, l->variable, tensor, &l->error);
    pl_tensor_unref(tensor);
}

static void build_views_and_moves(life *l, pl_node *x, pl_node *turned, pl_node *thin)
{
    pl_node *across = add(l, "transpose", NODES(x), NO_ATTRS);
    ask(l, "reshape", NODES(across), ATTRS(pl_attr_shape("shape", &PL_SHAPE(ROWS * COLUMNS))));
    ask(l, "concat", NODES(x, turned, thin), ATTRS(pl_attr_int("axis", 0)));
    ask(l, "pad", NODES(thin), ATTRS(INTS("before", 1, 0), INTS("after", 0, 2)));
    ask(l, "tile", NODES(thin), ATTRS(INTS("multiples", 2, 1)));
    ask(l, "slice", NODES(across), ATTRS(INTS("start", -1), INTS("stop", 0), INTS("step", -3)));
    pl_node *places =
        add(l, "range", NO_NODES, ATTRS(pl_attr_dtype("dtype", PL_I64), pl_attr_int("stop", 20)));
    ask(l, "gather", NODES(x, places), ATTRS(pl_attr_int("axis", 1)));
    ask(l, "one_hot", NODES(places), ATTRS(pl_attr_int("depth", 30)));
}

static void build_reductions_and_rows(life *l, pl_node *x)
{
    static const char *const reductions[] = {"sum",      "mean",      "prod", "max", "any",
                                             "variance", "logsumexp", "all",  "min"};
    for (size_t i = 0; i < PL_COUNT_OF(reductions); i++)
        ask(l, reductions[i], NODES(x), ATTRS(INTS("axes", (int64_t)i % 2)));
    ask(l, "argmax", NODES(x), ATTRS(pl_attr_int("axis", 0)));
    ask(l, "sum", NODES(x), NO_ATTRS);
    static const char *const rows[] = {"sort", "argsort", "softmax", "log_softmax", "cumsum"};
    for (size_t i = 0; i < PL_COUNT_OF(rows); i++)
        ask(l, rows[i], NODES(x), ATTRS(pl_attr_int("axis", (int64_t)i % 2)));
    ask(l, "top_k_values", NODES(x), ATTRS(pl_attr_int("k", 5)));
}

static void build_products(life *l, pl_node *x, pl_node *constant)
{
    ask(l, "matmul", NODES(x, constant), NO_ATTRS);
    pl_node *whole = add(l, "cast", NODES(x), ATTRS(pl_attr_dtype("dtype", PL_I32)));
    ask(l, "matmul", NODES(whole, whole), ATTRS(pl_attr_bool("transpose_b", true)));
}

static void build(life *l)
{
    pl_node *places[] = {add(l, "placeholder", NO_NODES, TENSOR(PL_F32, ROWS, COLUMNS)),
                         add(l, "placeholder", NO_NODES, TENSOR(PL_F32, PL_UNKNOWN, COLUMNS)),
                         add(l, "placeholder", NO_NODES, TENSOR(PL_F32, ROWS / 2, COLUMNS))};
    pl_node *x = places[0];
    pl_node *constant = add(l, "constant", NO_NODES, TENSOR(PL_F32, COLUMNS, ROWS));
    l->variable = add(l, "variable", NO_NODES, TENSOR(PL_F32, ROWS, COLUMNS));
    pl_node *file =
        add(l, "file", NO_NODES,
            ATTRS(pl_attr_dtype("dtype", PL_F32), pl_attr_shape("shape", &PL_SHAPE(ROWS, COLUMNS)),
                  pl_attr_string("path", swapped_path)));
    feed_all(l, places);
    give_values(l, constant);
    pl_node *noise = add(l, "random_normal", NODES(x), NO_ATTRS);
    pl_node *sine = add(l, "sin", NODES(file), NO_ATTRS);
    pl_node *product = add(l, "mul", NODES(x, l->variable), NO_ATTRS);
    pl_node *sum = add(l, "add", NODES(product, sine), NO_ATTRS);
    l->shared = add(l, "tanh", NODES(sum), NO_ATTRS);
    ask(l, "sub", NODES(l->shared, noise), NO_ATTRS);
    build_views_and_moves(l, x, places[1], places[2]);
    build_reductions_and_rows(l, l->shared);
    build_products(l, x, constant);
    l->assigned = add(l, "assign_add", NODES(l->variable, x), NO_ATTRS);
    ask(l, "neg", NODES(l->assigned), NO_ATTRS);
}

/* Fills memory with what is idle, so that a run has to evict it. */
static void crowd(life *l)
{
    char *data = calloc(1, IDLE_BYTES);
    const pl_shape shape = PL_SHAPE(IDLE_BYTES);
    if (!data)
        l->code = pl_error_set(&l->error, -ENOMEM, "no memory in the test itself");
    for (int i = 0; i < IDLE && l->code == 0; i++)
        l->code = pl_tensor_new(l->runtime, PL_U8, &shape, data, "idle", &l->idle[i], &l->error);
    free(data);
}

static void mix(uint64_t *sum, const void *data, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        *sum = (*sum ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
}

/* All bits of a tensor into the sum. */
static void mix_tensor(life *l, pl_tensor *tensor, uint64_t *sum)
{
    const pl_shape *shape = pl_tensor_shape(tensor);
    const int64_t begin[PL_RANK_MAX] = {0};
    uint64_t bytes = pl_tensor_bytes(tensor);
    void *data = malloc(bytes + 1);
    if (!data)
        l->code = pl_error_set(&l->error, -ENOMEM, "no memory in the test itself");
    if (l->code == 0)
        l->code = pl_tensor_read(tensor, begin, shape->dims, data, &l->error);
    if (l->code == 0)
        mix(sum, data, bytes);
    free(data);
}

static void run(life *l, const pl_fetch *fetches, int n, uint64_t budget_bytes, uint64_t *sum)
{
    pl_tensor *results[FETCHES_MOST] = {0};
    const pl_run_options options = {.budget_bytes = budget_bytes};
    if (l->code < 0)
        return;
    l->code = pl_session_run(l->session, fetches, n, l->feeds, 3, &options, results, &l->error);
    for (int i = 0; l->code < 0 && i < n; i++)
        assert_null(results[i]);
    for (int i = 0; i < n; i++) {
        if (l->code == 0 && results[i])
            mix_tensor(l, results[i], sum);
        pl_tensor_unref(results[i]);
    }
}

static void run_all(life *l, uint64_t *sum)
{
    pl_fetch all[FETCHES_MOST];
    for (int i = 0; i < l->n_nodes; i++)
        all[i] = (pl_fetch){l->nodes[i], NULL};
    run(l, all, l->n_nodes, 0, sum);
    const pl_fetch apart[] = {{l->nodes[0], NULL}, {l->nodes[1], out_path},
                              {l->nodes[1], NULL}, {l->shared, other_path},
                              {l->nodes[8], NULL}, {l->nodes[20], NULL}};
    run(l, apart, PL_COUNT_OF(apart), SHORT_BYTES, sum);
    char *text = NULL;
    pl_run_cost cost;
    const pl_run_options options = {.budget_bytes = SHORT_BYTES};
    if (l->code == 0)
        l->code = pl_session_explain(l->session, apart, PL_COUNT_OF(apart), l->feeds, 3, &options,
                                     true, &text, &cost, &l->error);
    if (l->code == 0)
        assert_true(cost.disk_bytes > 0);
    fault_live += text != NULL; /* allocated inside of libc, where nobody counts */
    free(text);
    pl_tensor *value = NULL;
    if (l->code == 0)
        l->code = pl_session_get(l->session, l->variable, &value, &l->error);
    if (l->code == 0 && value)
        mix_tensor(l, value, sum);
    if (l->code == 0)
        l->code = pl_tensor_save_npy(value, out_path, &l->error);
    pl_tensor_unref(value);
}

/* Was something moved out, for want of room? */
static void check_eviction(const life *l)
{
    pl_pool_state pool;
    pl_pool_state_read(l->runtime->pool, &pool);
    assert_true(pool.n_out > 0);
}

static void end_life(life *l)
{
    if (l->code == 0)
        check_eviction(l);
    for (int i = 0; i < 3; i++)
        pl_tensor_unref(l->feeds[i].tensor);
    for (int i = 0; i < IDLE; i++)
        pl_tensor_unref(l->idle[i]);
    pl_session_free(l->session);
    pl_graph_free(l->graph);
    if (l->runtime)
        assert_int_equal(pl_runtime_claimed_bytes(l->runtime), 0);
    pl_runtime_unref(l->runtime);
}

/* From the beginning to the end; the code of the first failure, and its error. */
static int live(uint64_t *ret_sum, pl_error *reterr)
{
    life l = {0};
    uint64_t sum = 1;
    begin_runtime(&l);
    if (l.code == 0)
        build(&l);
    if (l.code == 0)
        crowd(&l);
    if (l.code == 0)
        run_all(&l, &sum);
    end_life(&l);
    *ret_sum = sum;
    *reterr = l.error;
    return l.code;
}

static bool is_there(const char *path, const char *suffix)
{
    char name[128];
    struct stat info;
    snprintf(name, sizeof name, "%s%s", path, suffix);
    return stat(name, &info) == 0;
}

static int begin(void **state)
{
    float data[ROWS * COLUMNS];
    (void)state;
    strcpy(folder, "/tmp/plimsoll-alloc-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(in_path, sizeof in_path, "%s/in.npy", folder);
    snprintf(swapped_path, sizeof swapped_path, "%s/swapped.npy", folder);
    snprintf(out_path, sizeof out_path, "%s/out.npy", folder);
    snprintf(other_path, sizeof other_path, "%s/other.npy", folder);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = (float)(i % 13) - 6;
    const char *const orders[] = {"<f4", ">f4"}, *const paths[] = {in_path, swapped_path};
    for (int i = 0; i < 2; i++) { /* of which the second is another number; any will do */
        char header[128] = "\x93NUMPY\x01";
        header[8] = 118;
        snprintf(header + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }",
                 orders[i], ROWS, COLUMNS);
        size_t n = strlen(header + 10);
        memset(header + 10 + n, ' ', 117 - n);
        header[127] = '\n';
        FILE *file = fopen(paths[i], "w");
        if (!file || fwrite(header, 128, 1, file) != 1 || fwrite(data, sizeof data, 1, file) != 1 ||
            fclose(file) != 0)
            return -1;
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(in_path);
    unlink(swapped_path);
    unlink(out_path);
    unlink(other_path);
    return rmdir(folder); /* nothing else is left in it */
}

static bool has_left(void)
{
    return is_there(out_path, ".partial") || is_there(other_path, ".partial");
}

static void every_allocation_fails_once_in_turn(void **state)
{
    (void)state;
    live_through_failures(&(whole_life){.live = live, .has_left = has_left, .n_errors_least = 400});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once_in_turn),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
