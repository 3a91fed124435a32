/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that do not fit, under which allocations, files and the spill file fail: an error each time
 * that names the node, nothing left behind, and the next run is right to the bit. */
#include "faults.h"

#include "session_fixture.h"

#include <sys/stat.h>

enum { LENGTH = 20000, RUNS_MOST = 40 };
#define CAP          (8 * PL_MIB)
#define BUDGET_BYTES (144 * PL_KIB) /* a row has 160 */

static char in_path[96], out_path[96];
static pl_feed feed;
static double result[LENGTH], wanted[LENGTH];

static const struct {
    const char *op;
    int64_t n; /* elements of the result, of 8 bytes each */
    bool spills;
} ops[] = {{"cumsum", LENGTH, false},
           {"softmax", LENGTH, false},
           {"sort", LENGTH, true},
           {"argsort", LENGTH, true},
           {"top_k_values", 50, false}};

static int begin(void **state)
{
    fault_io_reset();
    if (begin_with(state, CAP, 1) < 0)
        return -1;
    snprintf(in_path, sizeof in_path, "%s/in.npy", folder);
    snprintf(out_path, sizeof out_path, "%s/out.npy", folder);
    for (int i = 0; i < LENGTH; i++)
        wanted[i] = (double)(i * 7919LL % 10007) / 100; /* which rounds */
    pl_tensor *tensor;
    const pl_shape shape = PL_SHAPE(LENGTH);
    if (pl_tensor_new(runtime, PL_F64, &shape, wanted, "in", &tensor, &error) < 0 ||
        pl_tensor_save_npy(tensor, in_path, &error) < 0)
        return -1;
    pl_tensor_unref(tensor);
    feed.placeholder = place("x", PL_F64, PL_SHAPE(LENGTH));
    return pl_tensor_open_npy(runtime, in_path, &feed.tensor, &error);
}

static int end(void **state)
{
    fault_io_reset();
    pl_tensor_unref(PL_TAKE(feed.tensor));
    unlink(in_path);
    unlink(out_path);
    return finish(state);
}

#define ROWS_CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

static pl_node *node_of(size_t i)
{
    pl_node *x = (pl_node *)feed.placeholder;
    if (strcmp(ops[i].op, "top_k_values") == 0)
        return must_add(ops[i].op, NULL, NODES(x), ATTRS(pl_attr_int("k", ops[i].n)));
    return must_add(ops[i].op, NULL, NODES(x), ATTRS(pl_attr_int("axis", 0)));
}

static int run(pl_node *node, const char *path, pl_tensor **ret_tensor)
{
    const pl_fetch fetch = {node, path};
    const pl_run_options options = {.budget_bytes = BUDGET_BYTES};
    *ret_tensor = NULL;
    error = (pl_error){0};
    return pl_session_run(session, &fetch, 1, &feed, 1, &options, ret_tensor, &error);
}

/* What a run gave, in the file or as a tensor. */
static void read_result(size_t i, pl_tensor *tensor)
{
    bool is_file = !tensor;
    memset(result, 0, sizeof result);
    if (is_file && pl_tensor_open_npy(runtime, out_path, &tensor, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(pl_tensor_bytes(tensor), ops[i].n * 8);
    const int64_t first[PL_RANK_MAX] = {0};
    if (pl_tensor_read(tensor, first, pl_tensor_shape(tensor)->dims, result, &error) < 0)
        fail_msg("%s", error.message);
    if (is_file)
        pl_tensor_unref(tensor);
}

/* To the bit: the plan is the same whatever went wrong before. Where one is made although memory
 * was short it must be, too. */
static void assert_right(size_t i)
{
    for (int64_t k = 0; k < ops[i].n; k++)
        if (memcmp(&result[k], &wanted[k], sizeof *result) != 0)
            fail_msg("%s: element %d is %g, and should be %g", ops[i].op, (int)k, result[k],
                     wanted[k]);
}

/* Once, to know what is right; and that it does go along the row in parts. */
static void run_well(size_t i, pl_node *node)
{
    pl_tensor *tensor;
    char *text;
    const pl_fetch fetch = {node, out_path};
    const pl_run_options options = {.budget_bytes = BUDGET_BYTES};
    pl_run_cost cost;
    if (pl_session_explain(session, &fetch, 1, &feed, 1, &options, false, &text, &cost, &error) < 0)
        fail_msg("%s", error.message);
    assert_non_null(strstr(text, "goes along them in parts"));
    assert_int_equal(cost.disk_bytes > 0, ops[i].spills);
    free(text);
    if (run(node, out_path, &tensor) < 0)
        fail_msg("%s", error.message);
    read_result(i, NULL);
    memcpy(wanted, result, sizeof wanted);
}

static void assert_nothing_is_left(uint64_t claimed)
{
    char partial[112];
    struct stat info;
    snprintf(partial, sizeof partial, "%s.partial", out_path);
    assert_true(stat(partial, &info) < 0);
    assert_int_equal(pl_runtime_claimed_bytes(runtime), claimed);
}

static void assert_failed_well(const pl_node *node, int r)
{
    assert_true(r < 0 && strlen(error.message) > 0);
    if (!strstr(error.message, pl_node_name(node)) && !strstr(error.message, out_path) &&
        !strstr(error.message, in_path))
        fail_msg("'%s' does not say what failed", error.message);
}

/* To a file and to a tensor, in turns. */
static void every_allocation_for_a_long_row_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    for (size_t i = 0; i < PL_COUNT_OF(ops); i++) {
        pl_node *node = node_of(i);
        int n_failed = 0;
        run_well(i, node);
        uint64_t claimed = pl_runtime_claimed_bytes(runtime);
        for (int number = 1;; number++) {
            pl_tensor *tensor;
            assert_true(number < 10000);
            fault_alloc_begin(number);
            int r = run(node, number % 2 ? out_path : NULL, &tensor);
            bool hit = fault_alloc_end();
            if (r == 0)
                read_result(i, tensor);
            assert_true(r == 0 || strlen(error.message) > 0);
            if (r == 0)
                assert_right(i);
            pl_tensor_unref(tensor);
            assert_nothing_is_left(claimed);
            n_failed += r < 0;
            if (!hit)
                break;
        }
        assert_true(n_failed > 20);
    }
}

/* Calls that a run without faults makes, of the kind that `error_of` is about to fail. */
static int count_calls(pl_node *node, const _Atomic int *n_calls)
{
    pl_tensor *tensor;
    fault_io_reset();
    assert_int_equal(run(node, out_path, &tensor), 0);
    return *n_calls;
}

/* One call fails, or one after some: as many as there are, or RUNS_MOST of them. */
static void fail_each(size_t i, _Atomic int *fault, int code, const _Atomic int *n_calls)
{
    pl_node *node = node_of(i);
    pl_tensor *tensor;
    run_well(i, node);
    int n = count_calls(node, n_calls), stride = n / RUNS_MOST + 1;
    uint64_t claimed = pl_runtime_claimed_bytes(runtime);
    assert_true(n > 0);
    for (int before = 0; before < n; before += stride) {
        fault_io_reset();
        fault_io.n_before = before;
        *fault = code;
        int r = run(node, out_path, &tensor);
        assert_failed_well(node, r);
        assert_nothing_is_left(claimed);
    }
    fault_io_reset();
    assert_int_equal(run(node, out_path, &tensor), 0);
    read_result(i, NULL);
    assert_right(i);
}

static void every_read_for_a_long_row_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(ops); i++)
        fail_each(i, &fault_io.read_error, EIO, &fault_io.n_reads);
}

static void every_write_for_a_long_row_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(ops); i++)
        fail_each(i, &fault_io.write_error, i % 2 ? EIO : ENOSPC, &fault_io.n_writes);
}

static void a_disk_that_is_full_before_a_row_is_sorted_is_an_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(ops); i++)
        fail_each(i, &fault_io.reserve_error, ENOSPC, &fault_io.n_reserves);
}

static void short_and_interrupted_calls_go_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(ops); i++) {
        pl_node *node = node_of(i);
        pl_tensor *tensor;
        run_well(i, node);
        fault_io.most_bytes = 1000;
        fault_io.n_interruptions = 50;
        if (run(node, out_path, &tensor) < 0)
            fail_msg("%s", error.message);
        fault_io_reset();
        read_result(i, NULL);
        assert_right(i);
    }
}

/* The file that is read is shorter than it was, when the run is under way. */
static void a_row_that_is_cut_off_is_an_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(ops); i++) {
        pl_node *node = node_of(i);
        pl_tensor *tensor;
        run_well(i, node);
        uint64_t claimed = pl_runtime_claimed_bytes(runtime);
        assert_int_equal(truncate(in_path, LENGTH * 4), 0);
        assert_failed_well(node, run(node, out_path, &tensor));
        assert_nothing_is_left(claimed);
        pl_tensor_unref(PL_TAKE(feed.tensor));
        pl_tensor *whole;
        for (int k = 0; k < LENGTH; k++)
            wanted[k] = (double)k;
        assert_int_equal(
            pl_tensor_new(runtime, PL_F64, &PL_SHAPE(LENGTH), wanted, "in", &whole, &error), 0);
        assert_int_equal(pl_tensor_save_npy(whole, in_path, &error), 0);
        pl_tensor_unref(whole);
        assert_int_equal(pl_tensor_open_npy(runtime, in_path, &feed.tensor, &error), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROWS_CASE(every_allocation_for_a_long_row_may_fail),
        ROWS_CASE(every_read_for_a_long_row_may_fail),
        ROWS_CASE(every_write_for_a_long_row_may_fail),
        ROWS_CASE(a_disk_that_is_full_before_a_row_is_sorted_is_an_error),
        ROWS_CASE(short_and_interrupted_calls_go_on),
        ROWS_CASE(a_row_that_is_cut_off_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
