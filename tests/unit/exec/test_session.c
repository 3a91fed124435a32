/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: variables, several threads, cancelling, and what fails leaves nothing behind. */
#include "faults.h"

#include "graph_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "plimsoll/session.h"
#include "tensor/buffer.h"

static pl_runtime *runtime;
static pl_session *session;
static char folder[64], path[128];

static int begin(void **state)
{
    fault_io_reset();
    strcpy(folder, "/tmp/plimsoll-session-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/out.npy", folder);
    const pl_runtime_options options = {
        .cap_bytes = 4 * PL_MIB, .spill_directory = folder, .n_threads = 2};
    if (setup(state) < 0 || pl_runtime_new(&options, &runtime, &error) < 0)
        return -1;
    return pl_session_new(graph, runtime, &session, &error);
}

static int end(void **state)
{
    fault_io_reset();
    pl_session_free(PL_TAKE(session));
    teardown(state);
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    pl_runtime_unref(PL_TAKE(runtime));
    unlink(path);
    return rmdir(folder); /* nothing else is left in it */
}

#define SESSION_CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

static pl_tensor *tensor_of(double first, int64_t n)
{
    pl_tensor *tensor;
    const pl_shape shape = PL_SHAPE(n);
    double *data = malloc((size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++)
        data[i] = first + (double)i;
    if (pl_tensor_new(runtime, PL_F64, &shape, data, "numbers", &tensor, &error) < 0)
        fail_msg("%s", error.message);
    free(data);
    return tensor;
}

static double first_of(pl_tensor *tensor)
{
    double value;
    const int64_t at[PL_RANK_MAX] = {0}, one[PL_RANK_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
    assert_int_equal(pl_tensor_read(tensor, at, one, &value, &error), 0);
    return value;
}

static int run_with(pl_node *fetch, const pl_feed *feeds, int n_feeds,
                    const pl_run_options *options, double *ret_first)
{
    pl_tensor *result = NULL;
    const pl_fetch fetches = {fetch, NULL};
    error.message[0] = '\0';
    int r = pl_session_run(session, &fetches, 1, feeds, n_feeds, options, &result, &error);
    if (r == 0)
        *ret_first = first_of(result);
    pl_tensor_unref(result);
    return r;
}

static double must_run(pl_node *fetch)
{
    double first;
    if (run_with(fetch, NULL, 0, NULL, &first) < 0)
        fail_msg("%s", error.message);
    return first;
}

static pl_node *variable(const char *name, double first, int64_t n)
{
    pl_node *node;
    const pl_shape shape = PL_SHAPE(n);
    assert_int_equal(pl_graph_variable(graph, name, PL_F64, &shape, &node, &error), 0);
    pl_tensor *tensor = tensor_of(first, n);
    assert_int_equal(pl_session_set(session, node, tensor, &error), 0);
    pl_tensor_unref(tensor);
    return node;
}

static double value_of(pl_node *variable_node)
{
    pl_tensor *tensor;
    assert_int_equal(pl_session_get(session, variable_node, &tensor, &error), 0);
    double first = first_of(tensor);
    pl_tensor_unref(tensor);
    return first;
}

static void a_run_reads_what_was_and_leaves_what_was_assigned(void **state)
{
    (void)state;
    pl_node *v = variable("v", 10, 5);
    pl_node *add = must_add("assign_add", "add", NODES(v, v), NO_ATTRS);
    pl_node *both = must_add("add", "both", NODES(add, v), NO_ATTRS);
    assert_true(must_run(both) == 30); /* the new one, and the one from before */
    assert_true(value_of(v) == 20);
    assert_true(must_run(add) == 40);
    pl_node *set = must_add("assign", "set", NODES(v, both), NO_ATTRS);
    assert_int_equal(run_with(set, NULL, 0, NULL, &(double){0}), -EINVAL);
    assert_string_equal(error.message, "'add' and 'set' both assign to 'v' in one run");
    assert_true(value_of(v) == 40);
}

static void a_variable_without_a_value_is_told(void **state)
{
    (void)state;
    pl_node *v;
    const pl_shape shape = PL_SHAPE(3);
    assert_int_equal(pl_graph_variable(graph, "v", PL_F64, &shape, &v, &error), 0);
    pl_node *y = must_add("neg", "y", NODES(v), NO_ATTRS);
    assert_int_equal(run_with(y, NULL, 0, NULL, &(double){0}), -EINVAL);
    assert_string_equal(error.message, "variable 'v' has no value: give it one first");
    pl_tensor *wrong = tensor_of(0, 4);
    assert_int_equal(pl_session_set(session, v, wrong, &error), -EINVAL);
    assert_string_equal(error.message, "variable 'v' is float64 [3], and cannot be float64 [4]");
    pl_tensor_unref(wrong);
}

static void a_run_that_fails_changes_no_variable(void **state)
{
    (void)state;
    pl_node *v = variable("v", 1, 5), *index = variable("index", 0, 1);
    pl_node *where = must_add("cast", "where", NODES(index), ATTRS(pl_attr_dtype("dtype", PL_I32)));
    pl_node *add = must_add("assign_add", "add", NODES(v, v), NO_ATTRS);
    pl_node *pick = must_add("gather", "pick", NODES(add, where), NO_ATTRS);
    assert_true(must_run(pick) == 2);
    pl_tensor *beyond = tensor_of(5, 1);
    assert_int_equal(pl_session_set(session, index, beyond, &error), 0);
    pl_tensor_unref(beyond);
    assert_int_equal(run_with(pick, NULL, 0, NULL, &(double){0}), -EINVAL);
    assert_string_equal(error.message,
                        "gather 'pick': index 5 is not in axis 0, which has 5 elements");
    assert_true(value_of(v) == 2);
}

enum { THREADS = 4, RUNS = 25 };

static void *add_often(void *node)
{
    intptr_t n_failed = 0;
    for (int i = 0; i < RUNS; i++) {
        pl_tensor *result = NULL;
        const pl_fetch fetch = {node, NULL};
        n_failed += pl_session_run(session, &fetch, 1, NULL, 0, NULL, &result, NULL) < 0;
        pl_tensor_unref(result);
    }
    return (void *)n_failed;
}

static void no_addition_of_several_threads_is_lost(void **state)
{
    (void)state;
    pl_node *v = variable("v", 0, 2000);
    pl_node *one = must_add("fill", "one", NODES(v), ATTRS(pl_attr_int("value", 1)));
    pl_node *add = must_add("assign_add", "add", NODES(v, one), NO_ATTRS);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_often, add), 0);
    for (int i = 0; i < THREADS; i++) {
        void *n_failed;
        pthread_join(threads[i], &n_failed);
        assert_null(n_failed);
    }
    assert_true(value_of(v) == THREADS * RUNS);
}

typedef struct watch {
    int cancel, n_calls;
    double last;
    bool fell;
} watch;

static void look_on(void *context, double fraction, const char *node_name)
{
    watch *w = context;
    assert_non_null(node_name);
    w->fell = w->fell || fraction < w->last || fraction > 1;
    w->last = fraction;
    if (++w->n_calls == 1)
        __atomic_store_n(&w->cancel, 1, __ATOMIC_RELAXED);
}

static void a_run_tells_how_far_it_is_and_can_be_cancelled(void **state)
{
    (void)state;
    pl_node *x;
    const pl_shape shape = PL_SHAPE(4000000);
    assert_int_equal(pl_graph_fill(graph, "x", PL_F64, &shape, 1, &x, &error), 0);
    pl_node *sum = must_add("sum", "sum", NODES(x), NO_ATTRS);
    pl_node *apart = must_add("sub", "apart", NODES(x, sum), NO_ATTRS);
    pl_node *most = must_add("max", "most", NODES(apart), NO_ATTRS);
    watch w = {0};
    double first = 0;
    pl_run_options options = {.progress = look_on, .progress_context = &w};
    assert_int_equal(run_with(most, NULL, 0, &options, &first), 0);
    assert_true(first == 1 - 4000000);
    assert_true(w.n_calls >= 2 && w.last == 1 && !w.fell);
    w = (watch){0};
    options.cancel = &w.cancel; /* from the first step, at the latest before the second */
    assert_int_equal(run_with(most, NULL, 0, &options, &first), -ECANCELED);
    assert_non_null(strstr(error.message, "': the run was cancelled"));
    assert_true(w.last < 1);
}

static void a_result_may_replace_the_file_that_it_is_made_of(void **state)
{
    (void)state;
    pl_tensor *numbers = tensor_of(3, 100000), *file;
    assert_int_equal(pl_tensor_save_npy(numbers, path, &error), 0);
    pl_tensor_unref(numbers);
    assert_int_equal(pl_tensor_open_npy(runtime, path, &file, &error), 0);
    pl_node *x = place("x", PL_F64, PL_SHAPE(PL_UNKNOWN));
    pl_node *y = must_add("neg", "y", NODES(x), NO_ATTRS);
    const pl_feed feed = {x, file};
    const pl_fetch fetch = {y, path};
    if (pl_session_run(session, &fetch, 1, &feed, 1, NULL, NULL, &error) < 0)
        fail_msg("%s", error.message);
    pl_tensor_unref(file);
    assert_int_equal(pl_tensor_open_npy(runtime, path, &file, &error), 0);
    assert_true(first_of(file) == -3);
    pl_tensor_unref(file);
}

static void what_is_fed_has_to_fit(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F64, PL_SHAPE(3)), *y = must_add("neg", "y", NODES(x), NO_ATTRS);
    pl_tensor *good = tensor_of(0, 3), *bad = tensor_of(0, 4);
    const pl_feed wrong = {x, bad}, twice[] = {{x, good}, {x, good}}, no_place = {y, good};
    double first;
    assert_int_equal(run_with(y, &wrong, 1, NULL, &first), -EINVAL);
    assert_string_equal(error.message, "placeholder 'x' is float64 [3], and cannot be float64 [4]");
    assert_int_equal(run_with(y, twice, 2, NULL, &first), -EINVAL);
    assert_string_equal(error.message, "placeholder 'x' is fed twice");
    assert_int_equal(run_with(y, &no_place, 1, NULL, &first), -EINVAL);
    assert_string_equal(error.message, "neg 'y' is not a placeholder of this graph");
    const pl_feed well = {x, good}, no_tensor = {x, NULL};
    assert_int_equal(run_with(y, &well, 1, NULL, &first), 0);
    assert_int_equal(run_with(y, &no_tensor, 1, NULL, &first), -EINVAL); /* also with a plan kept */
    assert_string_equal(error.message, "feed 0 has no tensor: it is NULL");
    pl_tensor_unref(good);
    pl_tensor_unref(bad);
}

/* Spilled on the way, because the budget is short. */
static pl_node *spilling_graph(void)
{
    pl_node *x;
    const pl_shape shape = PL_SHAPE(400, 400);
    assert_int_equal(pl_graph_fill(graph, "x", PL_F64, &shape, 4, &x, &error), 0);
    pl_node *sums = must_add("cumsum", "sums", NODES(x), NO_ATTRS);
    pl_node *total = must_add("sum", "total", NODES(sums), ATTRS(INTS("axes", 0)));
    return must_add("sub", "apart", NODES(sums, total), NO_ATTRS);
}

static const pl_run_options short_budget = {.budget_bytes = 400 * PL_KIB};

static void a_full_disk_is_an_error_that_names_the_node(void **state)
{
    (void)state;
    pl_node *apart = spilling_graph();
    double first;
    fault_io.reserve_error = ENOSPC;
    assert_int_equal(run_with(apart, NULL, 0, &short_budget, &first), -ENOSPC);
    fault_io_reset();
    assert_int_equal(run_with(apart, NULL, 0, &short_budget, &first), 0);
    assert_true(first == 4 - 4 * 400);
    fault_io.write_error = EIO;
    assert_int_equal(run_with(apart, NULL, 0, &short_budget, &first), -EIO);
    fault_io_reset();
    fault_io.read_error = EIO;
    assert_int_equal(run_with(apart, NULL, 0, &short_budget, &first), -EIO);
    assert_non_null(strstr(error.message, "'sums'"));
    fault_io_reset();
    assert_int_equal(run_with(apart, NULL, 0, &short_budget, &first), 0);
}

/* What fails is an error or done another way; what does not, is right; nothing stays claimed. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    pl_node *apart = spilling_graph();
    uint64_t claimed = pl_runtime_claimed_bytes(runtime);
    int n_failed = 0;
    for (int number = 1;; number++) {
        double first = 0;
        fault_alloc_begin(number);
        int r = run_with(apart, NULL, 0, &short_budget, &first);
        bool hit = fault_alloc_end();
        assert_int_equal(pl_runtime_claimed_bytes(runtime), claimed);
        if (r == 0)
            assert_true(first == 4 - 4 * 400);
        else
            assert_true(strlen(error.message) > 0);
        n_failed += r < 0;
        if (!hit)
            break;
        assert_true(number < 10000);
    }
    assert_true(n_failed > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SESSION_CASE(a_run_reads_what_was_and_leaves_what_was_assigned),
        SESSION_CASE(a_variable_without_a_value_is_told),
        SESSION_CASE(a_run_that_fails_changes_no_variable),
        SESSION_CASE(no_addition_of_several_threads_is_lost),
        SESSION_CASE(a_run_tells_how_far_it_is_and_can_be_cancelled),
        SESSION_CASE(a_result_may_replace_the_file_that_it_is_made_of),
        SESSION_CASE(what_is_fed_has_to_fit),
        SESSION_CASE(a_full_disk_is_an_error_that_names_the_node),
        SESSION_CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
