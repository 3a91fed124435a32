/* SPDX-License-Identifier: Apache-2.0 */
/* Passes: order, errors at their place, what is counted, what is left behind. */
#include "dataset_fixture.h"

static int begin(void **state)
{
    return begin_with(state, 64 * PL_MIB, 2);
}

/* The square of a number; 13 is bad, and multiples of 5 take longer than others. */
static int square(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                  int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs;
    int64_t x = number_in(inputs[0].tensor, 0);
    if (x % 5 == 0)
        usleep(200);
    if (x == 13)
        return pl_error_set(reterr, -EIO, "unlucky");
    x *= x;
    return pl_tensor_new(runtime, PL_I64, &(pl_shape){0}, &x, "square", &outputs[0].tensor, reterr);
}

static void a_range_has_its_numbers_and_an_end(void **state)
{
    (void)state;
    pl_dataset *dataset = NULL;
    assert_int_equal(pl_dataset_range(runtime, 7, -3, -4, &dataset, &error), 0);
    assert_int_equal(pl_dataset_cardinality(dataset), 3);
    pl_iterator *iterator = pass_over(dataset);
    assert_int_equal(next_number(iterator), 7);
    assert_int_equal(next_number(iterator), 3);
    assert_int_equal(next_number(iterator), -1);
    assert_int_equal(next_number(iterator), INT64_MIN);
    assert_int_equal(next_number(iterator), INT64_MIN);
    pl_iterator_free(iterator);
}

static void check_batches(pl_dataset *dataset, int64_t n, int64_t size)
{
    pl_iterator *iterator = pass_over(dataset);
    pl_value value;
    for (int64_t first = 0; first < n; first += size) {
        int64_t count = n - first < size ? n - first : size;
        assert_int_equal(pl_iterator_next(iterator, &value, &error), 1);
        assert_int_equal(pl_tensor_shape(value.tensor)->dims[0], count);
        for (int64_t i = 0; i < count; i++)
            assert_int_equal(number_in(value.tensor, i), first + i);
        pl_tensor_unref(value.tensor);
    }
    assert_int_equal(pl_iterator_next(iterator, &value, &error), 0);
    pl_iterator_free(iterator);
}

static void batches_have_all_elements_and_the_last_is_short(void **state)
{
    (void)state;
    check_batches(batched(range(10), 4, false), 10, 4);
    check_batches(batched(range(10), 4, true), 8, 4);
    check_batches(prefetched(batched(range(1000), 7, false), 3), 1000, 7);
    check_batches(prefetched(batched(range(1000), 7, false), PL_AUTO), 1000, 7);
}

static void check_squares(int n_parallel, bool prefetch)
{
    pl_dataset *dataset = mapped(range(100), square, n_parallel);
    pl_iterator *iterator = pass_over(prefetch ? prefetched(dataset, 4) : dataset);
    pl_value value;
    for (int64_t i = 0; i < 100; i++) {
        if (i != 13) {
            assert_int_equal(next_number(iterator), i * i);
            continue;
        }
        assert_int_equal(pl_iterator_next(iterator, &value, &error), -EIO);
        assert_string_equal(error.message, "map: element 13, unlucky");
    }
    assert_int_equal(next_number(iterator), INT64_MIN);
    pl_iterator_free(iterator);
}

static void mapped_elements_come_in_order_and_errors_at_their_place(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n++)
        check_squares(n, n % 2);
    check_squares(PL_AUTO, true);
    check_squares(PL_AUTO, false);
}

static void bad_elements_are_skipped_and_counted(void **state)
{
    (void)state;
    pl_dataset *dataset = batched(mapped(range(20), square, 3), 19, false);
    pl_iterator *iterator =
        pass_over(with(dataset, (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP}));
    pl_value value;
    assert_int_equal(pl_iterator_next(iterator, &value, &error), 1);
    assert_int_equal(pl_tensor_shape(value.tensor)->dims[0], 19);
    assert_int_equal(number_in(value.tensor, 13), 14 * 14);
    pl_tensor_unref(value.tensor);
    pl_bad_count count = pl_iterator_bad_count(iterator);
    assert_int_equal(count.n_bad, 1);
    assert_int_equal(count.n_items, 20);
    pl_iterator_free(iterator);
}

static void too_many_bad_elements_are_an_error(void **state)
{
    (void)state;
    pl_dataset *dataset = mapped(range(20), square, 1);
    pl_iterator *iterator = pass_over(with(
        dataset, (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP, .max_bad_fraction = 0.01}));
    pl_value value;
    for (int64_t i = 0; i < 19; i++)
        next_number(iterator);
    assert_int_equal(pl_iterator_next(iterator, &value, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "1 of 20 elements are bad, and 1 % may be"));
    assert_int_equal(pl_iterator_next(iterator, &value, &error), PL_ECORRUPT);
    pl_iterator_free(iterator);
}

static void a_pass_may_be_left_in_the_middle(void **state)
{
    (void)state;
    for (int n = 0; n < 30; n++) {
        pl_dataset *dataset = prefetched(mapped(range(1000), square, 4), 8);
        pl_iterator *iterator = pass_over(dataset);
        for (int i = 0; i < n % 13; i++)
            next_number(iterator);
        if (n % 2)
            pl_iterator_cancel(iterator);
        pl_iterator_free(iterator);
    }
}

static void a_batch_that_cannot_be_is_refused_with_what_it_needs(void **state)
{
    (void)state;
    pl_iterator *iterator = pass_over(batched(range(INT64_MAX), 1 << 24, false));
    pl_value value;
    assert_int_equal(pl_iterator_next(iterator, &value, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "one batch needs 128.0 MiB (16777216 x 8 B)"));
    pl_iterator_free(iterator);
}

static void a_graph_is_mapped(void **state)
{
    (void)state;
    pl_node *x, *y;
    assert_int_equal(pl_graph_placeholder(graph, "x", PL_I64, &(pl_shape){0}, &x, &error), 0);
    assert_int_equal(pl_graph_binary(graph, "add", "y", x, x, &y, &error), 0);
    pl_node *outputs[] = {y, x};
    const pl_function function = {
        .session = session, .inputs = &x, .outputs = outputs, .n_inputs = 1, .n_outputs = 2};
    pl_dataset *dataset = NULL, *numbers = range(50);
    assert_int_equal(pl_dataset_map(numbers, &function, PL_AUTO, &dataset, &error), 0);
    pl_dataset_unref(numbers);
    assert_int_equal(pl_dataset_spec(dataset, 0)->dtype, PL_I64);
    pl_iterator *iterator = pass_over(dataset);
    pl_value values[2];
    for (int64_t i = 0; i < 50; i++) {
        assert_int_equal(pl_iterator_next(iterator, values, &error), 1);
        assert_int_equal(number_in(values[0].tensor, 0), 2 * i);
        assert_int_equal(number_in(values[1].tensor, 0), i);
        pl_tensor_unref(values[0].tensor);
        pl_tensor_unref(values[1].tensor);
    }
    assert_int_equal(pl_iterator_next(iterator, values, &error), 0);
    pl_iterator_free(iterator);
}

static void a_graph_of_another_session_is_refused_when_it_is_mapped(void **state)
{
    (void)state;
    pl_node *x, *y, *foreign;
    pl_graph *other;
    assert_int_equal(pl_graph_new(&other, &error), 0);
    assert_int_equal(pl_graph_placeholder(other, "far", PL_I64, &(pl_shape){0}, &foreign, &error),
                     0);
    assert_int_equal(pl_graph_placeholder(graph, "x", PL_I64, &(pl_shape){0}, &x, &error), 0);
    assert_int_equal(pl_graph_binary(graph, "add", "y", x, x, &y, &error), 0);
    pl_node *outputs[] = {y, foreign};
    pl_function function = {
        .session = session, .inputs = &x, .outputs = outputs, .n_inputs = 1, .n_outputs = 2};
    pl_dataset *dataset = NULL, *numbers = range(5);
    assert_int_equal(pl_dataset_map(numbers, &function, 1, &dataset, &error), -EINVAL);
    assert_string_equal(error.message, "map: output 1, placeholder 'far', is of another graph than "
                                       "the session: make it in the session's");
    outputs[1] = NULL;
    assert_int_equal(pl_dataset_map(numbers, &function, 1, &dataset, &error), -EINVAL);
    assert_string_equal(error.message, "map: output 1 is NULL");
    outputs[1] = y;
    function.inputs = &foreign;
    assert_int_equal(pl_dataset_filter(numbers, &function, &dataset, &error), -EINVAL);
    assert_non_null(strstr(error.message, "filter: input 0, placeholder 'far', is of another"));
    function.inputs = &x;
    pl_session_close(session);
    assert_int_equal(pl_dataset_map(numbers, &function, 1, &dataset, &error), -ESTALE);
    pl_dataset_unref(numbers);
    pl_graph_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_range_has_its_numbers_and_an_end, begin, finish),
        cmocka_unit_test_setup_teardown(batches_have_all_elements_and_the_last_is_short, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(mapped_elements_come_in_order_and_errors_at_their_place,
                                        begin, finish),
        cmocka_unit_test_setup_teardown(bad_elements_are_skipped_and_counted, begin, finish),
        cmocka_unit_test_setup_teardown(too_many_bad_elements_are_an_error, begin, finish),
        cmocka_unit_test_setup_teardown(a_pass_may_be_left_in_the_middle, begin, finish),
        cmocka_unit_test_setup_teardown(a_batch_that_cannot_be_is_refused_with_what_it_needs, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(a_graph_is_mapped, begin, finish),
        cmocka_unit_test_setup_teardown(a_graph_of_another_session_is_refused_when_it_is_mapped,
                                        begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
