/* SPDX-License-Identifier: Apache-2.0 */
/* Steps on files: frames ahead of those that compute, pages read and written past the cache, and
 * what fails there. */
#include "faults.h"

#include "graph_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plimsoll/session.h"

/* Larger than the tiles of any budget below, and no multiple of a page or strip. */
enum { N = 1000003 };

static pl_runtime *runtime;
static pl_session *session;
static char folder[64], in_path[128], out_path[128];
static double *numbers;
static double total; /* of -number */
static pl_node *x, *negative, *sum;
static pl_tensor *file;

static int begin_with(uint64_t cap_bytes)
{
    const pl_runtime_options options = {
        .cap_bytes = cap_bytes, .spill_directory = folder, .n_threads = 2};
    const pl_shape shape = PL_SHAPE(N);
    if (pl_runtime_new(&options, &runtime, &error) < 0 ||
        pl_session_new(graph, runtime, &session, &error) < 0 ||
        pl_graph_placeholder(graph, "x", PL_F64, &shape, &x, &error) < 0 ||
        pl_tensor_open_npy(runtime, in_path, &file, &error) < 0)
        fail_msg("%s", error.message);
    negative = must_add("neg", "negative", NODES(x), NO_ATTRS);
    sum = must_add("sum", "sum", NODES(negative), NO_ATTRS);
    return 0;
}

static void save_numbers(void)
{
    pl_runtime *wide;
    pl_tensor *tensor;
    const pl_shape shape = PL_SHAPE(N);
    total = 0;
    for (int i = 0; i < N; i++) {
        numbers[i] = i % 1000;
        total -= numbers[i];
    }
    assert_int_equal(pl_runtime_new(NULL, &wide, &error), 0);
    assert_int_equal(pl_tensor_new(wide, PL_F64, &shape, numbers, "numbers", &tensor, &error), 0);
    assert_int_equal(pl_tensor_save_npy(tensor, in_path, &error), 0);
    pl_tensor_unref(tensor);
    pl_runtime_unref(wide);
}

/* /var/tmp, because /tmp may be in memory, where nothing goes past the page cache. */
static int begin(void **state)
{
    fault_io_reset();
    strcpy(folder, "/var/tmp/plimsoll-ahead-XXXXXX");
    numbers = malloc(N * sizeof *numbers);
    if (!mkdtemp(folder) || !numbers || setup(state) < 0)
        return -1;
    snprintf(in_path, sizeof in_path, "%s/in.npy", folder);
    snprintf(out_path, sizeof out_path, "%s/out.npy", folder);
    save_numbers();
    return 0;
}

static int end(void **state)
{
    fault_io_reset();
    pl_tensor_unref(PL_TAKE(file));
    pl_session_free(PL_TAKE(session));
    teardown(state);
    if (runtime)
        assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    pl_runtime_unref(PL_TAKE(runtime));
    free(numbers);
    unlink(in_path);
    unlink(out_path);
    return rmdir(folder); /* nothing else is left in it */
}

#define AHEAD_CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

static int run_sum(const pl_run_options *options, double *ret_sum)
{
    const pl_fetch fetch = {sum, NULL};
    const pl_feed feed = {x, file};
    const int64_t nowhere[PL_RANK_MAX] = {0};
    pl_tensor *result = NULL;
    error.message[0] = '\0';
    int r = pl_session_run(session, &fetch, 1, &feed, 1, options, &result, &error);
    if (r == 0)
        assert_int_equal(pl_tensor_read(result, nowhere, nowhere, ret_sum, &error), 0);
    pl_tensor_unref(result);
    return r;
}

static int run_to_file(void)
{
    const pl_fetch fetch = {negative, out_path};
    const pl_feed feed = {x, file};
    error.message[0] = '\0';
    return pl_session_run(session, &fetch, 1, &feed, 1, NULL, NULL, &error);
}

static void assert_file_is_right(void)
{
    const int64_t from[PL_RANK_MAX] = {0}, extent[PL_RANK_MAX] = {N};
    pl_tensor *out;
    double *got = malloc(N * sizeof *got);
    fault_io_reset();
    assert_int_equal(pl_tensor_open_npy(runtime, out_path, &out, &error), 0);
    assert_int_equal(pl_tensor_read(out, from, extent, got, &error), 0);
    for (int i = 0; i < N; i++)
        if (got[i] != -numbers[i])
            fail_msg("element %d is %g, and not %g", i, got[i], -numbers[i]);
    free(got);
    pl_tensor_unref(out);
}

static int n_ahead(uint64_t budget_bytes)
{
    const pl_fetch fetch = {sum, NULL};
    const pl_feed feed = {x, file};
    const pl_run_options options = {.budget_bytes = budget_bytes};
    char *text;
    pl_run_cost cost;
    int r = pl_session_explain(session, &fetch, 1, &feed, 1, &options, true, &text, &cost, &error);
    if (r < 0)
        return -1;
    assert_true(cost.peak_bytes <= budget_bytes);
    const char *field = strstr(text, "\"n_ahead\":");
    assert_non_null(field);
    int n = atoi(field + strlen("\"n_ahead\":"));
    free(text);
    return n;
}

static void a_budget_too_small_for_frames_ahead_does_without(void **state)
{
    (void)state;
    begin_with(64 * PL_MIB);
    assert_int_equal(n_ahead(7 * PL_MIB), 2); /* with more the file would be in memory */
    bool without = false;
    for (uint64_t budget = 7 * PL_MIB; n_ahead(budget) >= 0; budget = budget * 3 / 4) {
        double got = 0;
        const pl_run_options options = {.budget_bytes = budget};
        without = without || n_ahead(budget) == 0;
        if (run_sum(&options, &got) < 0)
            fail_msg("%s", error.message);
        assert_true(got == total);
    }
    assert_true(without);
}

/* Every read fails once in turn, whichever thread it is in. */
static void a_read_that_fails_names_the_file(void **state)
{
    (void)state;
    begin_with(6 * PL_MIB);
    assert_true(n_ahead(6 * PL_MIB) > 0);
    int r = -EIO;
    double got = 0;
    for (int n_before = 0; r < 0; n_before++) {
        assert_in_range(n_before, 0, 1000);
        fault_io_reset();
        fault_io.read_error = EIO;
        fault_io.n_before = n_before;
        fault_io.n_failures = 1;
        r = run_sum(NULL, &got);
        if (r == 0)
            assert_true(n_before > 2); /* there is more than one tile */
        else
            assert_int_equal(r, -EIO);
        assert_true(r == 0 || strstr(error.message, in_path) != NULL);
        assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    }
    assert_true(got == total);
}

static void a_file_that_was_cut_off_meanwhile_is_an_error(void **state)
{
    (void)state;
    begin_with(6 * PL_MIB);
    for (off_t bytes = 8 * N - 8; bytes > 0; bytes = bytes / 3 - 1) {
        assert_int_equal(truncate(in_path, bytes), 0);
        assert_int_equal(run_sum(NULL, &(double){0}), PL_ECORRUPT);
        assert_non_null(strstr(error.message, in_path));
    }
}

/* In the middle of a page, and after a signal. */
static void reads_and_writes_that_do_less_go_on(void **state)
{
    (void)state;
    double got = 0;
    begin_with(6 * PL_MIB);
    for (size_t most = 4096 * 5; most > 4096 * 4; most -= 1000) {
        fault_io.most_bytes = most;
        fault_io.n_interruptions = 3;
        assert_int_equal(run_sum(NULL, &got), 0);
        assert_true(got == total);
    }
    fault_io.n_interruptions = 3;
    assert_int_equal(run_to_file(), 0);
    assert_file_is_right();
}

static void a_write_that_fails_names_the_file_and_leaves_none(void **state)
{
    (void)state;
    begin_with(6 * PL_MIB);
    int r = -EIO;
    for (int n_before = 0; r < 0; n_before++) {
        assert_in_range(n_before, 0, 1000);
        fault_io_reset();
        fault_io.write_error = ENOSPC;
        fault_io.n_before = n_before;
        fault_io.n_failures = 1;
        r = run_to_file();
        assert_true(r == 0 || r == -ENOSPC);
        assert_true(r == 0 || strstr(error.message, out_path) != NULL);
        assert_int_equal(access(out_path, F_OK), r == 0 ? 0 : -1);
    }
    assert_file_is_right();
}

static void a_disk_without_room_for_a_result_is_told_before_it_is_computed(void **state)
{
    (void)state;
    begin_with(6 * PL_MIB);
    fault_io_reset();
    fault_io.reserve_error = ENOSPC;
    assert_int_equal(run_to_file(), -ENOSPC);
    assert_non_null(strstr(error.message, out_path));
    assert_int_equal(fault_io.n_reads, 0);
    fault_io_reset();
    fault_io.reserve_error = EOPNOTSUPP; /* then a write tells */
    assert_int_equal(run_to_file(), 0);
    assert_file_is_right();
}

static void cancel_now(void *context, double fraction, const char *node_name)
{
    (void)fraction;
    (void)node_name;
    __atomic_store_n((int *)context, 1, __ATOMIC_RELAXED);
}

static void a_run_is_cancelled_while_others_read(void **state)
{
    (void)state;
    int cancel = 0;
    begin_with(6 * PL_MIB);
    const pl_run_options options = {
        .cancel = &cancel, .progress = cancel_now, .progress_context = &cancel};
    assert_int_equal(run_sum(&options, &(double){0}), -ECANCELED);
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
}

static void the_threads_ahead_see_their_own_faults_and_no_other_signals(void **state)
{
    (void)state;
    begin_with(6 * PL_MIB);
    assert_true(n_ahead(6 * PL_MIB) > 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(run_sum(NULL, &(double){0}), 0);
    assert_true(fault_io.n_apart > 0);
    assert_int_equal(fault_io.n_deaf, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AHEAD_CASE(a_budget_too_small_for_frames_ahead_does_without),
        AHEAD_CASE(a_read_that_fails_names_the_file),
        AHEAD_CASE(a_file_that_was_cut_off_meanwhile_is_an_error),
        AHEAD_CASE(reads_and_writes_that_do_less_go_on),
        AHEAD_CASE(a_write_that_fails_names_the_file_and_leaves_none),
        AHEAD_CASE(a_disk_without_room_for_a_result_is_told_before_it_is_computed),
        AHEAD_CASE(a_run_is_cancelled_while_others_read),
        AHEAD_CASE(the_threads_ahead_see_their_own_faults_and_no_other_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
