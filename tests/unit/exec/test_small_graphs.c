/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of many small nodes: how they become steps, and what is kept of one run for the next. */
#include "session_fixture.h"

#include "exec/session/session_plans.h"
#include "plan/plan.h"

enum { N_NODES = 20000 };

static int begin(void **state)
{
    return begin_with(state, 16 * PL_MIB, 2);
}

#define SMALL_CASE(function) cmocka_unit_test_setup_teardown(function, begin, finish)

static int n_steps(pl_node *fetch)
{
    pl_plan *plan;
    pl_plan_source sources[4];
    int n_sources = 0;
    for (int i = 0; i < pl_graph_n_nodes(graph); i++) {
        const pl_node *node = pl_graph_node(graph, i);
        if (node->op->id == PL_OP_constant)
            sources[n_sources++] =
                (pl_plan_source){.node = node, .shape = node->shape, .resident = true};
    }
    const pl_plan_fetch fetches = {fetch, false};
    const pl_plan_request request = {.graph = graph,
                                     .fetches = &fetches,
                                     .n_fetches = 1,
                                     .sources = sources,
                                     .n_sources = n_sources,
                                     .budget_bytes = PL_GIB,
                                     .disk = {.bytes = PL_GIB},
                                     .n_threads = 2};
    if (pl_plan_new(&request, &plan, &error) < 0)
        fail_msg("%s", error.message);
    int n = plan->n_steps;
    pl_plan_free(plan);
    return n;
}

static double first_of(pl_node *fetch)
{
    pl_tensor *result = must_run(fetch);
    double first = element_of(result, 0);
    pl_tensor_unref(result);
    return first;
}

static void small_nodes_that_use_each_other_are_one_step(void **state)
{
    (void)state;
    pl_node *x = constant_of("x", 1, 10), *last[3] = {x, x, x};
    for (int i = 0; i < N_NODES; i += 2) { /* each is used by three */
        pl_node *less = must_add("minimum", NULL, NODES(last[0], last[1]), NO_ATTRS);
        pl_node *next = must_add("maximum", NULL, NODES(less, last[2]), NO_ATTRS);
        last[0] = last[1];
        last[1] = last[2];
        last[2] = next;
    }
    assert_int_equal(n_steps(last[2]), 1);
    assert_true(first_of(last[2]) == 1);
}

/* Where they are large, a step has a bound, and so do plans. */
static void large_nodes_are_many_steps(void **state)
{
    (void)state;
    pl_node *x = constant_of("x", 0, 50000), *y = x;
    for (int i = 0; i < 1000; i++)
        y = must_add("add", NULL, NODES(y, x), NO_ATTRS);
    assert_in_range(n_steps(y), 5, 10);
}

static void *run_in_thread(void *context)
{
    pl_tensor *result = NULL;
    const pl_fetch fetch = {context, NULL};
    intptr_t r = pl_session_run(session, &fetch, 1, NULL, 0, NULL, &result, NULL);
    pl_tensor_unref(result);
    return (void *)r;
}

/* Recursion over 20,000 nodes would need more. */
static void long_chains_are_planned_on_a_short_stack(void **state)
{
    (void)state;
    pl_node *x = constant_of("x", 1, 10), *y = x;
    for (int i = 0; i < N_NODES; i++)
        y = must_add(i % 2 ? "neg" : "abs", NULL, NODES(y), NO_ATTRS);
    pthread_attr_t attributes;
    pthread_t thread;
    void *r;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 256 * PL_KIB), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run_in_thread, y), 0);
    pthread_join(thread, &r);
    pthread_attr_destroy(&attributes);
    assert_null(r);
}

/* ---- plans that are kept ---- */

static int n_kept(void)
{
    int n = 0;
    for (int i = 0; i < PL_KEPT_REQUESTS && session->requests[i]; i++)
        for (int k = 0; k < PL_KEPT_PLANS && session->requests[i]->plans[k]; k++)
            n++;
    return n;
}

static pl_tensor *fed(pl_node *fetch, pl_node *placeholder, pl_tensor *tensor, int want)
{
    pl_tensor *result = NULL;
    const pl_feed feed = {placeholder, tensor};
    const pl_fetch fetches = {fetch, NULL};
    assert_int_equal(pl_session_run(session, &fetches, 1, &feed, 1, NULL, &result, &error), want);
    return result;
}

static void a_kept_plan_sees_new_values_and_new_shapes(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F64, PL_SHAPE(PL_UNKNOWN)), *v = variable_of("v", 100, 1);
    pl_node *y = must_add("add", "y", NODES(x, v), NO_ATTRS);
    const int64_t lengths[] = {3, 3, 5, 3, 1, 5};
    for (int i = 0; i < 6; i++) {
        pl_tensor *tensor = tensor_named("fed", i, lengths[i]);
        pl_tensor *value = tensor_named("v", 100 * i, 1);
        assert_int_equal(pl_session_set(session, v, value, &error), 0);
        pl_tensor *result = fed(y, x, tensor, 0);
        assert_int_equal(pl_tensor_shape(result)->dims[0], lengths[i]);
        assert_true(element_of(result, lengths[i] - 1) == 100 * i + i + (double)lengths[i] - 1);
        pl_tensor_unref(result);
        pl_tensor_unref(tensor);
        pl_tensor_unref(value);
    }
    assert_in_range(n_kept(), 1, PL_KEPT_PLANS);
    const pl_shape shape = PL_SHAPE(3);
    pl_tensor *wrong;
    assert_int_equal(pl_tensor_new(runtime, PL_F32, &shape, (float[3]){0}, "w", &wrong, &error), 0);
    assert_null(fed(y, x, wrong, -EINVAL));
    assert_string_equal(error.message, "placeholder 'x' is float64 [?], and cannot be float32 [3]");
    pl_tensor_unref(wrong);
    int r;
    assert_null(run_for(y, NULL, &r));
    assert_string_equal(error.message, "placeholder 'x' has no value: feed it");
}

static void plans_that_are_kept_have_a_bound(void **state)
{
    (void)state;
    pl_node *y = constant_of("x", 1, 4);
    for (int i = 0; i < 3 * PL_KEPT_REQUESTS; i++) {
        y = must_add("neg", NULL, NODES(y), NO_ATTRS);
        assert_true(first_of(y) == (i % 2 ? 1 : -1));
        assert_true(first_of(y) == (i % 2 ? 1 : -1));
    }
    assert_int_equal(n_kept(), PL_KEPT_REQUESTS);
}

/* Its plan is made for the budget that there is, each time. */
static void what_the_budget_had_part_in_is_not_kept(void **state)
{
    (void)state;
    pl_node *y = must_add("sort", "y", NODES(constant_of("x", 1, 200000)), NO_ATTRS);
    const pl_run_options tight = {.budget_bytes = 5 * PL_MIB},
                         ample = {.budget_bytes = 14 * PL_MIB};
    int r;
    pl_tensor_unref(run_for(y, &tight, &r));
    assert_int_equal(r, 0);
    assert_int_equal(n_kept(), 0);
    y = must_add("neg", "z", NODES(constant_of("c", 1, 10000)), NO_ATTRS);
    pl_tensor_unref(run_for(y, &ample, &r));
    assert_int_equal(n_kept(), 1);
    const pl_run_options too_little = {.budget_bytes = 1};
    assert_null(run_for(y, &too_little, &r)); /* kept, but not for so little */
    assert_int_equal(r, PL_EBUDGET);
}

static void assignments_are_not_lost_by_keeping(void **state)
{
    (void)state;
    pl_node *v = variable_of("v", 0, 10), *one = constant_of("one", 1, 10);
    pl_node *add = must_add("assign_add", "add", NODES(v, one), NO_ATTRS);
    for (int i = 0; i < 5; i++)
        assert_true(first_of(add) == i + 1);
    assert_true(first_of(v) == 5);
    pl_node *set = must_add("assign", "set", NODES(v, one), NO_ATTRS);
    pl_node *both = must_add("add", "both", NODES(add, set), NO_ATTRS);
    int r;
    for (int i = 0; i < 2; i++) {
        assert_null(run_for(both, NULL, &r));
        assert_string_equal(error.message, "'add' and 'set' both assign to 'v' in one run");
    }
}

static void a_kept_plan_does_not_hide_that_two_results_have_one_path(void **state)
{
    (void)state;
    pl_node *x = constant_of("x", 1, 10);
    pl_node *a = must_add("neg", "a", NODES(x), NO_ATTRS);
    pl_node *b = must_add("square", "b", NODES(x), NO_ATTRS);
    char paths[2][96];
    snprintf(paths[0], sizeof paths[0], "%s/x.npy", folder);
    snprintf(paths[1], sizeof paths[1], "%s/y.npy", folder);
    for (int i = 0; i < 2; i++) {
        const pl_fetch apart[] = {{a, paths[0]}, {b, paths[1]}};
        const pl_fetch same[] = {{a, paths[0]}, {b, paths[0]}};
        assert_int_equal(pl_session_run(session, apart, 2, NULL, 0, NULL, NULL, &error), 0);
        assert_in_range(n_kept(), 1, PL_KEPT_PLANS);
        assert_int_equal(pl_session_run(session, same, 2, NULL, 0, NULL, NULL, &error), -EINVAL);
        assert_non_null(strstr(error.message, "'a' and 'b' are both to be written to '"));
    }
    unlink(paths[0]);
    unlink(paths[1]);
}

/* ---- behind eager ops ---- */

static uint64_t n_planned(void)
{
    pthread_mutex_lock(&session->mu);
    uint64_t n = session->n_planned;
    pthread_mutex_unlock(&session->mu);
    return n;
}

/* The bytes of `n` numbers: first, first + 1, ... */
static pl_tensor *raw(double first, int64_t n)
{
    pl_tensor *tensor;
    const pl_shape scalar = PL_SHAPE();
    double *numbers = calloc((size_t)n + 1, sizeof *numbers);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = first + (double)i;
    const pl_string bytes = {(const char *)numbers, (size_t)n * sizeof *numbers};
    assert_int_equal(pl_tensor_new_strings(runtime, &scalar, &bytes, "raw", &tensor, &error), 0);
    free(numbers);
    return tensor;
}

static pl_node *decoded(pl_node *text)
{
    return must_add("decode_raw", NULL, NODES(text), ATTRS(pl_attr_dtype("dtype", PL_F64)));
}

/* Decodes `n` numbers of which the first is `first`, for a graph that adds 100 to it. */
static void check_decoded(pl_node *sum, pl_node *text, double first, int64_t n)
{
    pl_tensor *given = raw(first, n), *result = fed(sum, text, given, 0);
    assert_int_equal(pl_tensor_shape(result)->dims[0], n);
    assert_true(element_of(result, 0) == 100 + first);
    pl_tensor_unref(result);
    pl_tensor_unref(given);
}

static void runs_that_decode_share_a_plan_for_each_size(void **state)
{
    (void)state;
    pl_node *text = place("text", PL_STRING, PL_SHAPE()), *v = variable_of("v", 100, 1);
    pl_node *sum = must_add("add", "sum", NODES(decoded(text), v), NO_ATTRS);
    for (int i = 0; i < 3 * PL_KEPT_PLANS; i++)
        check_decoded(sum, text, i, 1 + i % PL_KEPT_PLANS);
    assert_int_equal(n_planned(), PL_KEPT_PLANS);
    check_decoded(sum, text, 0, 50); /* in place of the one that was used longest ago */
    check_decoded(sum, text, 0, 2);
    assert_int_equal(n_planned(), PL_KEPT_PLANS + 1);
    check_decoded(sum, text, 0, 1);
    assert_int_equal(n_planned(), PL_KEPT_PLANS + 2);
    assert_int_equal(n_kept(), PL_KEPT_PLANS);
}

/* `twice` is read by an eager op and is not eager: it has a plan of its own, as the sum has. */
static void inputs_of_eager_ops_share_plans_too(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(PL_UNKNOWN, PL_UNKNOWN, 1));
    pl_node *twice = must_add("add", "twice", NODES(x, x), NO_ATTRS);
    pl_node *small = must_add("resize", "small", NODES(twice), ATTRS(INTS("size", 1, 1)));
    pl_node *sum = must_add("sum", "sum", NODES(small), NO_ATTRS);
    for (int i = 0; i < 12; i++) {
        pl_tensor *given;
        float data[9], got;
        int64_t side = 1 + 2 * (i % 2);
        const pl_shape shape = PL_SHAPE(side, side, 1);
        for (int k = 0; k < 9; k++)
            data[k] = (float)i;
        assert_int_equal(pl_tensor_new(runtime, PL_F32, &shape, data, "x", &given, &error), 0);
        pl_tensor *result = fed(sum, x, given, 0);
        assert_int_equal(pl_tensor_read(result, NULL, NULL, &got, &error), 0);
        assert_true(got == (float)(2 * i));
        pl_tensor_unref(result);
        pl_tensor_unref(given);
    }
    assert_int_equal(n_planned(), 2 + 1); /* of `twice` for each size; of the sum for one */
}

static void variables_are_assigned_behind_eager_ops_with_kept_plans(void **state)
{
    (void)state;
    pl_node *text = place("text", PL_STRING, PL_SHAPE()), *v = variable_of("v", 0, 2);
    pl_node *add = must_add("assign_add", "add", NODES(v, decoded(text)), NO_ATTRS);
    for (int i = 0; i < 5; i++) {
        pl_tensor *given = raw(1, 2);
        pl_tensor_unref(fed(add, text, given, 0));
        pl_tensor_unref(given);
    }
    pl_tensor *value;
    assert_int_equal(pl_session_get(session, v, &value, &error), 0);
    assert_true(element_of(value, 0) == 5 && element_of(value, 1) == 11);
    pl_tensor_unref(value);
    assert_int_equal(n_planned(), 1);
}

/* An error leaves what is kept as it was, and a size that does not fit is refused each time. */
static void errors_behind_eager_ops_leave_kept_plans_alone(void **state)
{
    (void)state;
    pl_node *text = place("text", PL_STRING, PL_SHAPE()), *v = variable_of("v", 100, 3);
    pl_node *sum = must_add("add", "sum", NODES(decoded(text), v), NO_ATTRS);
    check_decoded(must_add("add", NULL, NODES(decoded(text), v), NO_ATTRS), text, 0, 3);
    for (int i = 0; i < 3; i++) {
        check_decoded(sum, text, i, 3);
        pl_tensor *two = raw(0, 2);
        assert_null(fed(sum, text, two, -EINVAL));
        assert_non_null(strstr(error.message, "add 'sum'"));
        pl_tensor_unref(two);
    }
    assert_int_equal(n_planned(), 2 + 3);
    int r;
    assert_null(run_for(sum, NULL, &r));
    assert_int_equal(r, -EINVAL);
    assert_non_null(strstr(error.message, "placeholder 'text' has no value: feed it"));
}

static void a_kept_plan_behind_an_eager_op_needs_its_budget_too(void **state)
{
    (void)state;
    pl_node *text = place("text", PL_STRING, PL_SHAPE());
    pl_node *y = must_add("sort", "y", NODES(decoded(text)), NO_ATTRS);
    pl_tensor *given = raw(0, 20000), *result = NULL;
    const pl_feed feed = {text, given};
    const pl_fetch fetch = {y, NULL};
    const uint64_t budgets[] = {8 * PL_MIB, 8 * PL_MIB, PL_MIB, PL_MIB, 8 * PL_MIB};
    const uint64_t planned[] = {1, 1, 2, 3, 3};
    for (int i = 0; i < 5; i++) {
        const pl_run_options options = {.budget_bytes = budgets[i]};
        assert_int_equal(pl_session_run(session, &fetch, 1, &feed, 1, &options, &result, &error),
                         0);
        assert_true(element_of(result, 19999) == 19999);
        pl_tensor_unref(result);
        assert_int_equal(n_planned(), planned[i]);
    }
    pl_tensor_unref(given);
}

/* Nodes that are added between runs are not the kept request's. */
static void a_graph_may_grow_between_runs_that_decode(void **state)
{
    (void)state;
    pl_node *text = place("text", PL_STRING, PL_SHAPE()), *v = variable_of("v", 100, 1);
    pl_node *sum = must_add("add", "sum", NODES(decoded(text), v), NO_ATTRS);
    for (int i = 0; i < 10; i++) {
        check_decoded(sum, text, i, 3);
        for (int k = 0; k < 50; k++)
            must_add("neg", NULL, NODES(sum), NO_ATTRS);
    }
    assert_int_equal(n_planned(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_CASE(small_nodes_that_use_each_other_are_one_step),
        SMALL_CASE(large_nodes_are_many_steps),
        SMALL_CASE(long_chains_are_planned_on_a_short_stack),
        SMALL_CASE(a_kept_plan_sees_new_values_and_new_shapes),
        SMALL_CASE(plans_that_are_kept_have_a_bound),
        SMALL_CASE(what_the_budget_had_part_in_is_not_kept),
        SMALL_CASE(assignments_are_not_lost_by_keeping),
        SMALL_CASE(a_kept_plan_does_not_hide_that_two_results_have_one_path),
        SMALL_CASE(runs_that_decode_share_a_plan_for_each_size),
        SMALL_CASE(inputs_of_eager_ops_share_plans_too),
        SMALL_CASE(variables_are_assigned_behind_eager_ops_with_kept_plans),
        SMALL_CASE(errors_behind_eager_ops_leave_kept_plans_alone),
        SMALL_CASE(a_kept_plan_behind_an_eager_op_needs_its_budget_too),
        SMALL_CASE(a_graph_may_grow_between_runs_that_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
