/* SPDX-License-Identifier: Apache-2.0 */
/* Files and disks that fail under a run: an error that names node and file, never a signal; no
 * NAME.partial is left, what was under NAME is whole, variables are as before, and the session goes
 * on. Faults are put beneath pread(), pwrite() and fallocate() (faults.h), or real. */
#include "faults.h"

#include "graph_fixture.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plimsoll/session.h"

enum { ROWS = 300, COLUMNS = 100, BYTES = ROWS * COLUMNS * 8, HEADER_BYTES = 128 };
#define SHORT_BYTES (300 * PL_KIB) /* a run with so little spills */

static pl_runtime *runtime;
static pl_session *session;
static char folder[64], in_path[96], out_path[96], other_path[96];

/* sums: of rows so far, spilled; the other two are read back from it. v: a variable */
static pl_node *x, *sums, *apart, *v, *grown;
static pl_feed feed;
static double right; /* the sum of what a run gives, if nothing fails */

static bool is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void assert_file(const char *path, const char *text)
{
    char found[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(found, sizeof found, file));
    fclose(file);
    assert_string_equal(found, text);
}

static void assert_no_partial(void)
{
    char name[128];
    const char *const paths[] = {out_path, other_path};
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s.partial", paths[i]);
        assert_false(is_there(name));
    }
}

static pl_tensor *numbers(void)
{
    static double data[ROWS * COLUMNS];
    pl_tensor *tensor;
    const pl_shape shape = PL_SHAPE(ROWS, COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = i % 17;
    if (pl_tensor_new(runtime, PL_F64, &shape, data, "numbers", &tensor, &error) < 0)
        fail_msg("%s", error.message);
    return tensor;
}

static double sum_of(pl_tensor *tensor)
{
    static double data[ROWS * COLUMNS];
    const int64_t begin[PL_RANK_MAX] = {0};
    double sum = 0;
    const pl_shape *shape = pl_tensor_shape(tensor);
    if (pl_tensor_read(tensor, begin, shape->dims, data, &error) < 0)
        fail_msg("%s", error.message);
    for (uint64_t i = 0; i < pl_tensor_bytes(tensor) / sizeof *data; i++)
        sum += data[i] * (double)(i % 7);
    return sum;
}

static double variable_sum(void)
{
    pl_tensor *tensor;
    assert_int_equal(pl_session_get(session, v, &tensor, &error), 0);
    double sum = sum_of(tensor);
    pl_tensor_unref(tensor);
    return sum;
}

static void build(void)
{
    x = place("x", PL_F64, PL_SHAPE(ROWS, COLUMNS));
    sums = must_add("cumsum", "sums", NODES(x), ATTRS(pl_attr_int("axis", 1)));
    pl_node *total = must_add("sum", "total", NODES(sums), ATTRS(INTS("axes", 0)));
    apart = must_add("sub", "apart", NODES(sums, total), NO_ATTRS);
    const pl_shape shape = PL_SHAPE(ROWS, COLUMNS);
    assert_int_equal(pl_graph_variable(graph, "v", PL_F64, &shape, &v, &error), 0);
    grown = must_add("assign_add", "grown", NODES(v, apart), NO_ATTRS);
}

static int run(const pl_fetch *fetches, int n, double *ret_sum)
{
    pl_tensor *results[4] = {0};
    const pl_run_options options = {.budget_bytes = SHORT_BYTES};
    error = (pl_error){0};
    int r = pl_session_run(session, fetches, n, &feed, 1, &options, results, &error);
    *ret_sum = 0;
    for (int i = 0; i < n; i++) {
        assert_true(r == 0 || !results[i]);
        if (results[i] && fault_io.read_error == 0)
            *ret_sum += sum_of(results[i]);
        pl_tensor_unref(results[i]);
    }
    return r;
}

static int run_one(pl_node *node, const char *path)
{
    double sum;
    const pl_fetch fetch = {node, path};
    return run(&fetch, 1, &sum);
}

static int begin(void **state)
{
    fault_io_reset();
    strcpy(folder, "/tmp/plimsoll-io-XXXXXX");
    if (!mkdtemp(folder) || setup(state) < 0)
        return -1;
    snprintf(in_path, sizeof in_path, "%s/in.npy", folder);
    snprintf(out_path, sizeof out_path, "%s/out.npy", folder);
    snprintf(other_path, sizeof other_path, "%s/other.npy", folder);
    const pl_runtime_options options = {
        .cap_bytes = 4 * PL_MIB, .spill_directory = folder, .n_threads = 2};
    if (pl_runtime_new(&options, &runtime, &error) < 0 ||
        pl_session_new(graph, runtime, &session, &error) < 0)
        return -1;
    build();
    pl_tensor *tensor = numbers();
    assert_int_equal(pl_tensor_save_npy(tensor, in_path, &error), 0);
    assert_int_equal(pl_session_set(session, v, tensor, &error), 0);
    pl_tensor_unref(tensor);
    feed.placeholder = x;
    assert_int_equal(pl_tensor_open_npy(runtime, in_path, &feed.tensor, &error), 0);
    const pl_fetch fetch = {apart, NULL};
    return run(&fetch, 1, &right);
}

static int end(void **state)
{
    fault_io_reset();
    assert_no_partial();
    pl_tensor_unref(feed.tensor);
    pl_session_free(PL_TAKE(session));
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    pl_runtime_unref(PL_TAKE(runtime));
    teardown(state);
    unlink(in_path);
    unlink(out_path);
    unlink(other_path);
    return rmdir(folder); /* nothing else is left in it */
}

#define IO_CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

static void short_and_interrupted_calls_go_on(void **state)
{
    (void)state;
    double sum;
    const pl_fetch fetches[] = {{apart, NULL}, {sums, out_path}};
    fault_io.most_bytes = 1000;
    fault_io.n_interruptions = 50;
    if (run(fetches, 2, &sum) < 0)
        fail_msg("%s", error.message);
    assert_true(sum == right);
    assert_int_equal(fault_io.n_interruptions, 0);
    assert_true(fault_io.n_reads > BYTES / 1000 && fault_io.n_writes > BYTES / 1000);
}

typedef _Atomic int *fault_place;

/* Fails the call after `number` that go well, and checks what is left. False: none failed. */
static bool fail_one(fault_place place_of_error, int code, int number)
{
    double before = variable_sum(), sum;
    uint64_t claimed = pl_runtime_claimed_bytes(runtime);
    const pl_fetch fetches[] = {{grown, NULL}, {sums, out_path}, {apart, other_path}};
    write_file(out_path, "old");
    write_file(other_path, "older");
    fault_io.n_before = number;
    fault_io.n_failures = 1;
    *place_of_error = code;
    int r = run(fetches, 3, &sum);
    bool hit = *place_of_error == 0;
    fault_io_reset();
    if (r == 0) /* done another way, as where space cannot be taken ahead */
        return hit;
    assert_true(hit);
    assert_int_equal(r, -code);
    if (!strstr(error.message, "'") || !strstr(error.message, folder))
        fail_msg("it names no node or no file: %s", error.message);
    assert_file(out_path, "old");
    assert_file(other_path, "older");
    assert_no_partial();
    assert_true(variable_sum() == before);
    assert_true(pl_runtime_claimed_bytes(runtime) <= claimed);
    return true;
}

/* How many calls were failed, each once. */
static int sweep(fault_place place_of_error, int code)
{
    int number = 0;
    while (fail_one(place_of_error, code, number))
        number++;
    assert_int_equal(run_one(apart, NULL), 0);
    return number;
}

static void every_read_fails_once_in_turn(void **state)
{
    (void)state;
    assert_true(sweep(&fault_io.read_error, EIO) > 10);
}

static void every_write_fails_once_in_turn(void **state)
{
    (void)state;
    assert_true(sweep(&fault_io.write_error, ENOSPC) > 10);
    assert_true(sweep(&fault_io.write_error, EIO) > 10);
}

static void a_file_that_is_cut_off_is_told(void **state)
{
    (void)state;
    assert_int_equal(truncate(in_path, HEADER_BYTES + BYTES / 2), 0);
    assert_int_equal(run_one(apart, out_path), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "'x'"));
    assert_non_null(strstr(error.message, in_path));
    assert_int_equal(truncate(in_path, 0), 0);
    assert_int_equal(run_one(apart, out_path), PL_ECORRUPT);
    assert_false(is_there(out_path));
}

/* Every second column: it is pinned as a whole. */
static void so_is_one_that_is_brought_into_memory(void **state)
{
    (void)state;
    const int64_t start[] = {0, 0}, step[] = {1, 2}, count[] = {ROWS, COLUMNS / 2};
    pl_node *half = place("half", PL_F64, PL_SHAPE(ROWS, COLUMNS / 2));
    pl_node *y = must_add("neg", "y", NODES(half), NO_ATTRS);
    pl_tensor *whole = feed.tensor, *view;
    assert_int_equal(pl_tensor_slice(whole, start, step, count, &view, &error), 0);
    assert_int_equal(truncate(in_path, HEADER_BYTES + BYTES - 1), 0);
    feed = (pl_feed){half, view};
    assert_int_equal(run_one(y, NULL), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "'half'"));
    assert_non_null(strstr(error.message, in_path));
    feed = (pl_feed){x, whole};
    pl_tensor_unref(view);
}

static void cut_in(void *context, double fraction, const char *node_name)
{
    (void)context;
    (void)fraction;
    (void)node_name;
    (void)!truncate(in_path, HEADER_BYTES + 4096);
}

static void so_is_one_that_is_cut_off_while_it_is_read(void **state)
{
    (void)state;
    pl_tensor *result = NULL;
    pl_node *twice = must_add("sub", "twice", NODES(apart, x), NO_ATTRS);
    const pl_fetch fetch = {twice, NULL};
    const pl_run_options options = {.budget_bytes = SHORT_BYTES, .progress = cut_in};
    int r = pl_session_run(session, &fetch, 1, &feed, 1, &options, &result, &error);
    assert_int_equal(r, PL_ECORRUPT);
    assert_null(result);
    assert_non_null(strstr(error.message, in_path));
}

static void a_file_that_is_replaced_stays_as_it_was_opened(void **state)
{
    (void)state;
    double sum;
    const pl_fetch fetch = {apart, NULL};
    write_file(other_path, "another file, and no array");
    assert_int_equal(rename(other_path, in_path), 0);
    assert_int_equal(run(&fetch, 1, &sum), 0);
    assert_true(sum == right);
}

static void what_cannot_be_opened_is_told_with_its_node(void **state)
{
    (void)state;
    char missing[128];
    snprintf(missing, sizeof missing, "%s/missing.npy", folder);
    const char *const paths[] = {missing, folder, in_path};
    const int codes[] = {-ENOENT, -EINVAL, PL_EFORMAT};
    write_file(in_path, "no array");
    for (int i = 0; i < 3; i++) {
        const pl_shape shape = PL_SHAPE(3);
        pl_node *file =
            must_add("file", NULL, NO_NODES,
                     ATTRS(pl_attr_dtype("dtype", PL_F64), pl_attr_shape("shape", &shape),
                           pl_attr_string("path", paths[i])));
        pl_node *y = must_add("neg", NULL, NODES(file), NO_ATTRS);
        int r = run_one(y, NULL);
        assert_true(r < 0 && (r == codes[i] || i == 2));
        if (!strstr(error.message, pl_node_name(file)) || !strstr(error.message, paths[i]))
            fail_msg("%s", error.message);
    }
}

static void results_that_have_no_place_are_told_before_they_are_computed(void **state)
{
    (void)state;
    char path[256];
    double before = variable_sum();
    snprintf(path, sizeof path, "%s/gone/out.npy", folder);
    assert_int_equal(run_one(apart, path), -ENOENT);
    assert_non_null(strstr(error.message, path));
    assert_non_null(strstr(error.message, "'apart'"));
    assert_int_equal(run_one(apart, folder), -EISDIR);
    const pl_fetch same[] = {{apart, out_path}, {sums, out_path}};
    assert_int_equal(run(same, 2, &(double){0}), -EINVAL);
    snprintf(path, sizeof path, "'apart' and 'sums' are both to be written to '%s'", out_path);
    assert_string_equal(error.message, path);
    assert_true(variable_sum() == before);
}

/* The second result's folder goes away while the first is written. */
static void remove_folder(void *context, double fraction, const char *node_name)
{
    (void)fraction;
    (void)node_name;
    char partial[160];
    snprintf(partial, sizeof partial, "%s/out.npy.partial", (const char *)context);
    (void)!unlink(partial);
    (void)!rmdir(context);
}

static void no_result_gets_its_name_unless_all_do(void **state)
{
    (void)state;
    char sub[96], path[128];
    snprintf(sub, sizeof sub, "%s/sub", folder);
    snprintf(path, sizeof path, "%s/out.npy", sub);
    assert_int_equal(mkdir(sub, 0700), 0);
    write_file(out_path, "old");
    const pl_fetch fetches[] = {{apart, out_path}, {sums, path}};
    const pl_run_options options = {
        .budget_bytes = SHORT_BYTES, .progress = remove_folder, .progress_context = sub};
    int r = pl_session_run(session, fetches, 2, &feed, 1, &options, NULL, &error);
    assert_int_equal(r, -ENOENT);
    assert_non_null(strstr(error.message, path));
    assert_file(out_path, "old");
    rmdir(sub);
}

/* A run that writes beside what is called NAME.partial already; the file is right. */
static void write_beside(void)
{
    const pl_fetch fetch = {sums, out_path};
    pl_tensor *written;
    if (run(&fetch, 1, &(double){0}) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(pl_tensor_open_npy(runtime, out_path, &written, &error), 0);
    pl_tensor_unref(written);
    char first[128];
    snprintf(first, sizeof first, "%s.partial-1", out_path);
    assert_false(is_there(first));
}

static void what_is_called_partial_and_is_not_ours_stays(void **state)
{
    (void)state;
    char partial[128];
    snprintf(partial, sizeof partial, "%s.partial", out_path);
    write_file(partial, "mine");
    write_beside();
    assert_file(partial, "mine");
    assert_int_equal(rename(partial, other_path), 0);
    assert_int_equal(symlink(other_path, partial), 0);
    write_beside();
    assert_int_equal(unlink(partial), 0);
    assert_int_equal(link(other_path, partial), 0);
    write_beside();
    assert_int_equal(unlink(partial), 0);
    assert_file(other_path, "mine");
    assert_int_equal(mkfifo(partial, 0600), 0); /* and is not waited for */
    write_beside();
    assert_int_equal(unlink(partial), 0);
}

/* As a process leaves it that was killed while it wrote. */
static void a_partial_that_was_left_is_taken_over(void **state)
{
    (void)state;
    char partial[128];
    const char *const left[] = {"", "plimsoll", "plimsoll: not complete"};
    snprintf(partial, sizeof partial, "%s.partial", out_path);
    for (size_t i = 0; i < PL_COUNT_OF(left); i++) {
        write_file(partial, left[i]);
        write_beside();
        assert_false(is_there(partial));
    }
}

static int assign_and_write(pl_node *other, pl_node *other_grown, double *ret_other)
{
    const pl_fetch fetches[] = {{grown, NULL}, {other_grown, NULL}, {sums, out_path}};
    pl_tensor *results[3] = {0}, *tensor = NULL;
    int r = pl_session_run(session, fetches, 3, &feed, 1, NULL, results, &error);
    bool hit = fault_alloc_end();
    for (int i = 0; i < 3; i++)
        pl_tensor_unref(results[i]);
    assert_int_equal(pl_session_get(session, other, &tensor, &error), 0);
    *ret_other = sum_of(tensor);
    pl_tensor_unref(tensor);
    assert_true(r == 0 || hit);
    return hit ? r : 1;
}

/* Whichever allocation fails: the file has its name and both variables are new, or none of it. */
static void files_and_variables_come_together_or_not_at_all(void **state)
{
    (void)state;
    fault_need_alloc();
    pl_node *other;
    const pl_shape shape = PL_SHAPE(ROWS, COLUMNS);
    assert_int_equal(pl_graph_variable(graph, "other", PL_F64, &shape, &other, &error), 0);
    pl_tensor *tensor = numbers();
    assert_int_equal(pl_session_set(session, other, tensor, &error), 0);
    pl_tensor_unref(tensor);
    pl_node *other_grown = must_add("assign_add", "other_grown", NODES(other, x), NO_ATTRS);
    double sum = variable_sum(), other_sum;
    int r = 0, n_failed = 0, number = 1;
    for (double other_before = sum; r <= 0; number++) {
        fault_alloc_begin(number);
        r = assign_and_write(other, other_grown, &other_sum);
        double now = variable_sum();
        assert_int_equal(is_there(out_path), r >= 0);
        assert_int_equal(now != sum, r >= 0);
        assert_int_equal(other_sum != other_before, r >= 0);
        sum = now;
        other_before = other_sum;
        unlink(out_path);
        n_failed += r < 0;
        assert_true(number < 10000);
    }
    assert_true(n_failed > 10);
}

/* A write past it would be answered with SIGXFSZ. */
static void the_limit_on_file_sizes_is_an_error(void **state)
{
    (void)state;
    struct rlimit before, less;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    less = before;
    less.rlim_cur = BYTES / 2;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
    int to_file = run_one(grown, out_path), in_memory = run_one(apart, NULL);
    pl_tensor *tensor;
    assert_int_equal(pl_session_get(session, v, &tensor, &error), 0);
    int saved = pl_tensor_save_npy(tensor, out_path, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    pl_tensor_unref(tensor);
    assert_int_equal(to_file, -EFBIG);
    assert_int_equal(in_memory, -EFBIG); /* it spills */
    assert_int_equal(saved, -EFBIG);
    assert_false(is_there(out_path));
}

/* A run in a runtime of its own, whose spill file is still to be made. */
static int run_elsewhere(const char *spill_directory, uint64_t budget_bytes)
{
    pl_runtime *elsewhere;
    pl_session *other;
    pl_tensor *result = NULL;
    const pl_runtime_options options = {
        .cap_bytes = 4 * PL_MIB, .spill_directory = spill_directory, .n_threads = 1};
    const pl_run_options how = {.budget_bytes = budget_bytes};
    const pl_fetch fetch = {apart, NULL};
    assert_int_equal(pl_runtime_new(&options, &elsewhere, &error), 0);
    assert_int_equal(pl_session_new(graph, elsewhere, &other, &error), 0);
    int r = pl_session_run(other, &fetch, 1, &feed, 1, &how, &result, &error);
    assert_true((r == 0) == (result != NULL));
    pl_tensor_unref(result);
    pl_session_free(other);
    assert_int_equal(pl_runtime_claimed_bytes(elsewhere), 0);
    pl_runtime_unref(elsewhere);
    return r;
}

static void a_folder_to_spill_to_that_is_not_there_is_told(void **state)
{
    (void)state;
    char nowhere[96];
    snprintf(nowhere, sizeof nowhere, "%s/nowhere", folder);
    int r = run_elsewhere(nowhere, SHORT_BYTES);
    assert_true(r == -ENOENT || r == -ENOSPC);
    assert_int_equal(run_elsewhere(nowhere, 0), 0); /* nothing is spilled */
}

static void a_disk_without_space_to_spill_to_is_told(void **state)
{
    (void)state;
    fault_io.reserve_error = ENOSPC;
    assert_int_equal(run_elsewhere(folder, SHORT_BYTES), -ENOSPC);
    assert_non_null(strstr(error.message, folder));
    assert_non_null(strstr(error.message, "'sums'"));
    fault_io_reset();
    assert_int_equal(run_elsewhere(folder, SHORT_BYTES), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IO_CASE(short_and_interrupted_calls_go_on),
        IO_CASE(every_read_fails_once_in_turn),
        IO_CASE(every_write_fails_once_in_turn),
        IO_CASE(a_file_that_is_cut_off_is_told),
        IO_CASE(so_is_one_that_is_brought_into_memory),
        IO_CASE(so_is_one_that_is_cut_off_while_it_is_read),
        IO_CASE(a_file_that_is_replaced_stays_as_it_was_opened),
        IO_CASE(what_cannot_be_opened_is_told_with_its_node),
        IO_CASE(results_that_have_no_place_are_told_before_they_are_computed),
        IO_CASE(no_result_gets_its_name_unless_all_do),
        IO_CASE(what_is_called_partial_and_is_not_ours_stays),
        IO_CASE(a_partial_that_was_left_is_taken_over),
        IO_CASE(files_and_variables_come_together_or_not_at_all),
        IO_CASE(the_limit_on_file_sizes_is_an_error),
        IO_CASE(a_folder_to_spill_to_that_is_not_there_is_told),
        IO_CASE(a_disk_without_space_to_spill_to_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
