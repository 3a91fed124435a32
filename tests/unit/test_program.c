/* SPDX-License-Identifier: Apache-2.0 */
/* Lazy evaluation in C: exprs, programs, traced functions, calls; from several threads as well. */
#include "session_fixture.h"

#include <pthread.h>

#include "plimsoll/program.h"
#include "program/lazy_program.h"

static pl_evaluator *evaluator;

static int begin(void **state)
{
    return begin_with(state, 16 * PL_MIB, 2) < 0 ||
                   pl_evaluator_new(runtime, 4, &evaluator, &error) < 0
               ? -1
               : 0;
}

static int end(void **state)
{
    pl_evaluator_unref(PL_TAKE(evaluator));
    return finish(state);
}

#define PROGRAM_CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            fail_msg("%s", error.message);                                                         \
    } while (0)

static const pl_type scalar = {.dtype = PL_F64, .shape = {.rank = 0}};

static pl_expr *number(double value)
{
    pl_tensor *tensor;
    pl_expr *expr;
    MUST(pl_tensor_new(runtime, PL_F64, &scalar.shape, &value, "number", &tensor, &error));
    MUST(pl_expr_of_value(tensor, &expr, &error));
    pl_tensor_unref(tensor);
    return expr;
}

static pl_expr *given(const char *name)
{
    pl_expr *expr;
    MUST(pl_expr_placeholder(name, &scalar, &expr, &error));
    return expr;
}

/* Takes over the references. */
static pl_expr *op(const char *name, pl_expr *a, pl_expr *b)
{
    pl_expr *expr, *inputs[] = {a, b};
    MUST(pl_expr_op(pl_op_find(name), NULL, inputs, b ? 2 : 1, NULL, 0, &expr, &error));
    pl_expr_unref(a);
    pl_expr_unref(b);
    return expr;
}

static double read_number(pl_tensor *tensor)
{
    double value;
    assert_non_null(tensor);
    MUST(pl_tensor_read(tensor, NULL, NULL, &value, &error));
    return value;
}

/* Takes over the reference. */
static double value_of(pl_expr *expr)
{
    MUST(pl_evaluate(evaluator, &expr, 1, NULL, &error));
    double value = read_number(pl_expr_value(expr));
    pl_expr_unref(expr);
    return value;
}

static pl_traced *traced(pl_expr *input, pl_expr *output)
{
    pl_traced *made;
    MUST(pl_traced_new(&input, 1, &output, 1, 0, &made, &error));
    pl_expr_unref(input);
    pl_expr_unref(output);
    return made;
}

static void a_pending_expr_is_computed_and_lets_go_of_its_inputs(void **state)
{
    (void)state;
    pl_expr *sum = op("add", number(1), number(2));
    assert_true(pl_expr_is_pending(sum));
    assert_null(pl_expr_value(sum));
    assert_string_equal(pl_expr_op_name(sum), "add");
    pl_expr *input = pl_expr_input(sum, 1);
    assert_non_null(input);
    pl_expr_unref(input);
    MUST(pl_evaluate(evaluator, &sum, 1, NULL, &error));
    assert_false(pl_expr_is_pending(sum));
    assert_null(pl_expr_input(sum, 0));
    assert_string_equal(pl_expr_op_name(sum), "constant");
    assert_true(value_of(sum) == 3);
}

static void what_does_not_fit_is_refused_when_it_is_described(void **state)
{
    (void)state;
    const pl_type three = {.dtype = PL_F64, .shape = PL_SHAPE(3)},
                  two = {.dtype = PL_F64, .shape = PL_SHAPE(2)};
    pl_expr *inputs[2], *made;
    MUST(pl_expr_placeholder("x", &three, &inputs[0], &error));
    MUST(pl_expr_placeholder("y", &two, &inputs[1], &error));
    assert_int_equal(pl_expr_op(pl_op_find("add"), "sum", inputs, 2, NULL, 0, &made, &error),
                     -EINVAL);
    assert_string_equal(error.message, "add 'sum': shapes [3] and [2] do not broadcast: axis 0 is "
                                       "3 and 2 ('x' and 'y')");
    const pl_attr wrong = pl_attr_int("nothing", 1);
    assert_int_equal(pl_expr_op(pl_op_find("neg"), NULL, inputs, 1, &wrong, 1, &made, &error),
                     -EINVAL);
    assert_non_null(strstr(error.message, "there is no attribute 'nothing'"));
    pl_expr_unref(inputs[0]);
    pl_expr_unref(inputs[1]);
}

static void a_chain_of_any_depth_is_computed_and_freed(void **state)
{
    (void)state;
    pl_expr *x = number(0);
    for (int i = 0; i < 100000; i++)
        x = op("add", x, number(1));
    assert_int_equal(pl_expr_depth(x), 100000);
    pl_expr_unref(x);
    x = number(0);
    for (int i = 0; i < 3000; i++)
        x = op("add", x, number(1));
    assert_true(value_of(x) == 3000);
}

static void a_placeholder_has_a_value_only_where_it_is_fed(void **state)
{
    (void)state;
    pl_expr *x = given("x"), *twice = op("add", pl_expr_ref(x), pl_expr_ref(x));
    assert_true(pl_expr_is_symbolic(twice));
    assert_int_equal(pl_evaluate(evaluator, &twice, 1, NULL, &error), -EINVAL);
    assert_non_null(strstr(error.message, "'x'"));
    pl_expr *five = number(5);
    const pl_expr_feed feed = {x, pl_expr_value(five)};
    const pl_evaluation_request request = {
        .fetches = &twice, .n_fetches = 1, .feeds = &feed, .n_feeds = 1};
    pl_evaluation *evaluation;
    pl_tensor *result;
    assert_int_equal(pl_evaluation_new(evaluator, &request, &evaluation, &error), 0);
    for (int i = 0; i < 2; i++) {
        MUST(pl_evaluation_run(evaluation, NULL, NULL, &result, &error));
        assert_true(read_number(result) == 10);
        pl_tensor_unref(result);
    }
    assert_true(pl_expr_is_pending(twice));
    pl_evaluation_free(evaluation);
    pl_expr_unref(five);
    pl_expr_unref(twice);
    pl_expr_unref(x);
}

/* One program is found again by another expr of the same form. */
static void equal_exprs_share_a_program_and_types_are_inferred_once(void **state)
{
    (void)state;
    pl_lazy_program *found[2];
    for (int i = 0; i < 2; i++) {
        pl_expr *sum = op("add", number(i), number(2));
        pl_walk walk;
        MUST(pl_walk_begin(&walk, NULL, 0, NULL, &error));
        MUST(pl_walk_add(&walk, sum));
        MUST(pl_walk_fetch(&walk, &sum, 1));
        MUST(pl_evaluator_program(evaluator, &walk, &sum, 1, &found[i]));
        pl_walk_done(&walk);
        assert_true(value_of(sum) == i + 2);
    }
    assert_ptr_equal(found[0], found[1]);
    pl_variant *variant = atomic_load(&found[0]->steps[0].variants);
    assert_non_null(variant);
    assert_true(pl_node_shape(variant->outputs[0])->rank == 0);
    pl_lazy_program_unref(found[0]);
    pl_lazy_program_unref(found[1]);
}

static void a_traced_function_is_copied_and_run(void **state)
{
    (void)state;
    pl_expr *x = given("x");
    pl_traced *twice = traced(x, op("add", pl_expr_ref(x), pl_expr_ref(x)));
    pl_expr *three = number(3), *made;
    MUST(pl_traced_call(twice, &three, 0, NULL, &made, &error));
    assert_true(pl_expr_is_pending(made) && !pl_expr_is_symbolic(made));
    assert_true(value_of(made) == 6);
    pl_tensor *input = pl_expr_value(three), *output;
    MUST(pl_traced_run(twice, evaluator, &input, NULL, &output, &error));
    assert_true(read_number(output) == 6);
    pl_tensor_unref(output);
    pl_expr_unref(three);
    pl_traced_unref(twice);
}

static void a_condition_runs_one_of_two_functions(void **state)
{
    (void)state;
    pl_expr *x = given("x"), *y = given("y");
    pl_traced *up = traced(x, op("add", pl_expr_ref(x), number(1)));
    pl_traced *down = traced(y, op("sub", pl_expr_ref(y), number(1)));
    for (int i = 0; i < 2; i++) {
        pl_expr *in = number(10), *item;
        pl_expr *pred = op(i ? "greater" : "less", number(1), number(0));
        MUST(pl_expr_cond(pred, up, down, &in, 1, 0, &item, &error));
        assert_string_equal(pl_expr_op_name(item), "cond");
        pl_expr_unref(pred);
        pl_expr_unref(in);
        assert_true(value_of(item) == (i ? 11 : 9));
    }
    pl_traced_unref(up);
    pl_traced_unref(down);
}

static void a_loop_goes_on_while_its_condition_is_true(void **state)
{
    (void)state;
    pl_expr *x = given("x"), *y = given("y"), *limit = given("limit");
    pl_traced *small = traced(x, op("less", pl_expr_ref(x), pl_expr_ref(limit)));
    pl_traced *twice = traced(y, op("add", pl_expr_ref(y), pl_expr_ref(y)));
    assert_int_equal(pl_traced_n_captures(small), 1);
    assert_ptr_equal(pl_traced_capture(small, 0), limit);
    pl_expr *first = number(1), *item, *hundred = number(100);
    MUST(pl_expr_while(small, twice, &first, 1, -1, 0, &item, &error));
    const pl_expr_feed feed = {limit, pl_expr_value(hundred)};
    const pl_evaluation_request request = {
        .fetches = &item, .n_fetches = 1, .feeds = &feed, .n_feeds = 1};
    pl_evaluation *evaluation;
    pl_tensor *result;
    MUST(pl_evaluation_new(evaluator, &request, &evaluation, &error));
    MUST(pl_evaluation_run(evaluation, NULL, NULL, &result, &error));
    assert_true(read_number(result) == 128);
    pl_tensor_unref(result);
    char *text;
    pl_run_cost cost;
    MUST(pl_evaluation_explain(evaluation, NULL, false, &text, &cost, &error));
    assert_non_null(strstr(text, "while_loop"));
    free(text);
    pl_evaluation_free(evaluation);
    pl_expr_unref(item);
    pl_expr_unref(first);
    pl_expr_unref(hundred);
    pl_expr_unref(limit);
    pl_traced_unref(small);
    pl_traced_unref(twice);
}

typedef struct callee {
    int n_calls, n_released;
} callee;

static int call_back(void *context, pl_tensor *const *inputs, int n_inputs, pl_tensor **outputs,
                     int n_outputs, const pl_run_options *options, pl_error *reterr)
{
    callee *self = context;
    (void)options;
    assert_int_equal(n_inputs, 1);
    assert_int_equal(n_outputs, 1);
    double value = read_number(inputs[0]) * 2;
    self->n_calls++;
    return pl_tensor_new(runtime, PL_F64, &scalar.shape, &value, "twice", &outputs[0], reterr);
}

static void release(void *context)
{
    ((callee *)context)->n_released++;
}

static void a_foreign_function_is_called_between_graphs_and_released(void **state)
{
    (void)state;
    callee self = {0};
    const pl_foreign foreign = {.name = "twice",
                                .call = call_back,
                                .outputs = &scalar,
                                .n_outputs = 1,
                                .context = &self,
                                .release = release};
    pl_expr *in = op("add", number(1), number(2)), *item;
    MUST(pl_expr_foreign(&foreign, &in, 1, &item, &error));
    pl_expr_unref(in);
    assert_true(value_of(op("add", item, number(1))) == 7);
    assert_int_equal(self.n_calls, 1);
    assert_int_equal(self.n_released, 1);
    assert_int_equal(pl_expr_foreign(&foreign, NULL, 1, &item, &error), -EINVAL);
    assert_int_equal(self.n_released, 2);
}

static void what_is_held_is_computed_along(void **state)
{
    (void)state;
    pl_expr *held = op("add", number(1), number(2));
    pl_expr *other = op("add", pl_expr_ref(held), number(3));
    pl_expr_set_owner(held, state);
    assert_true(value_of(op("add", pl_expr_ref(other), number(0))) == 6);
    assert_non_null(pl_expr_value(held));
    assert_null(pl_expr_value(other));
    pl_expr_unref(held);
    pl_expr_unref(other);
}

static void results_that_no_budget_has_room_for_are_refused_with_advice(void **state)
{
    (void)state;
    const pl_shape shape = PL_SHAPE(1 << 28);
    const pl_attr attrs[] = {pl_attr_shape("shape", &shape), pl_attr_float("value", 1)};
    pl_expr *big;
    pl_evaluator_set_advice(evaluator, ", or else");
    MUST(pl_expr_op(pl_op_find("fill"), NULL, NULL, 0, attrs, 2, &big, &error));
    assert_int_equal(pl_evaluate(evaluator, &big, 1, NULL, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "'fill' needs 1.0 GiB (1.0 GiB in total)"));
    assert_non_null(strstr(error.message, "give it more, or else"));
    pl_expr_unref(big);
}

enum { N_THREADS = 4, N_ROUNDS = 200 };

static void *evaluate_shared(void *shared)
{
    for (int i = 0; i < N_ROUNDS; i++) {
        pl_expr *one = op("add", pl_expr_ref(shared), number(i));
        assert_true(value_of(one) == 3 + i);
    }
    return NULL;
}

static void threads_share_exprs_and_programs(void **state)
{
    (void)state;
    pthread_t threads[N_THREADS];
    pl_expr *shared = op("add", number(1), number(2));
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, evaluate_shared, shared), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(value_of(shared) == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROGRAM_CASE(a_pending_expr_is_computed_and_lets_go_of_its_inputs),
        PROGRAM_CASE(what_does_not_fit_is_refused_when_it_is_described),
        PROGRAM_CASE(a_chain_of_any_depth_is_computed_and_freed),
        PROGRAM_CASE(a_placeholder_has_a_value_only_where_it_is_fed),
        PROGRAM_CASE(equal_exprs_share_a_program_and_types_are_inferred_once),
        PROGRAM_CASE(a_traced_function_is_copied_and_run),
        PROGRAM_CASE(a_condition_runs_one_of_two_functions),
        PROGRAM_CASE(a_loop_goes_on_while_its_condition_is_true),
        PROGRAM_CASE(a_foreign_function_is_called_between_graphs_and_released),
        PROGRAM_CASE(what_is_held_is_computed_along),
        PROGRAM_CASE(results_that_no_budget_has_room_for_are_refused_with_advice),
        PROGRAM_CASE(threads_share_exprs_and_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
