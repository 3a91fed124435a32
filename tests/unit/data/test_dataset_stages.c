/* SPDX-License-Identifier: Apache-2.0 */
/* Stages with threads below them: the order, what is left in the middle, what is ended. What each
 * stage gives is tests/data/'s. */
#include "dataset_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

static int begin(void **state)
{
    return begin_with(state, 64 * PL_MIB, 4);
}

/* One more; multiples of 7 take longer, and 13 is bad. */
static int one_more(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                    int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs;
    int64_t x = number_in(inputs[0].tensor, 0);
    if (x % 7 == 0)
        usleep(100);
    if (x == 13)
        return pl_error_set(reterr, -EIO, "unlucky");
    x++;
    return pl_tensor_new(runtime, PL_I64, &(pl_shape){0}, &x, "one", &outputs[0].tensor, reterr);
}

/* Of a number x: x * 100 and so many more behind it as x has in its last digit, mapped. */
static int make_lane(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                     int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs;
    int64_t x = number_in(inputs[0].tensor, 0);
    pl_dataset *numbers;
    int r = pl_dataset_range(runtime, x * 100, x * 100 + x % 10, 1, &numbers, reterr);
    if (r < 0)
        return r;
    static const pl_spec spec = {.dtype = PL_I64};
    const pl_function function = {
        .call = one_more, .output_specs = &spec, .n_inputs = 1, .n_outputs = 1};
    r = pl_dataset_map(numbers, &function, 2, &outputs[0].dataset, reterr);
    pl_dataset_unref(numbers);
    return r;
}

static pl_dataset *interleaved(pl_dataset *input, int64_t cycle, int64_t block, int n_parallel)
{
    static const pl_spec of = {.dtype = PL_I64};
    static const pl_spec spec = {.of = &of, .n_of = 1};
    const pl_function function = {
        .call = make_lane, .output_specs = &spec, .n_inputs = 1, .n_outputs = 1};
    pl_dataset *dataset = NULL;
    int r = pl_dataset_interleave(input, &function, cycle, block, n_parallel, &dataset, &error);
    pl_dataset_unref(input);
    return must(r, dataset);
}

static pl_dataset *shuffled(pl_dataset *input, int64_t n)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_shuffle(input, n, 7, true, &dataset, &error);
    pl_dataset_unref(input);
    return must(r, dataset);
}

static pl_dataset *repeated(pl_dataset *input, int64_t n)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_repeat(input, n, &dataset, &error);
    pl_dataset_unref(input);
    return must(r, dataset);
}

/* Shuffled lanes of mapped numbers, twice, mapped, ahead. */
static pl_dataset *pipeline(int n_parallel)
{
    pl_dataset *lanes = interleaved(shuffled(range(40), 10), 5, 2, n_parallel);
    return prefetched(mapped(repeated(shuffled(lanes, 30), 2), one_more, n_parallel), 3);
}

enum { MOST = 1000 };

static int64_t gather(pl_iterator *iterator, int64_t *numbers)
{
    int64_t n = 0;
    while (n < MOST && (numbers[n] = next_number(iterator)) != INT64_MIN)
        n++;
    pl_iterator_free(iterator);
    return n;
}

static void the_order_is_the_same_whatever_the_threads(void **state)
{
    (void)state;
    int64_t first[MOST], other[MOST];
    int64_t n = gather(pass_over(pipeline(1)), first);
    assert_int_equal(n, 2 * 4 * 45);
    for (int n_parallel = 2; n_parallel <= 5; n_parallel++) {
        assert_int_equal(gather(pass_over(pipeline(n_parallel == 5 ? PL_AUTO : n_parallel)), other),
                         n);
        assert_memory_equal(first, other, (size_t)n * sizeof first[0]);
    }
}

static void elements_may_come_as_they_are_ready(void **state)
{
    (void)state;
    int64_t first[MOST], other[MOST], sums[2] = {0};
    int64_t n = gather(pass_over(pipeline(1)), first);
    pl_dataset *any = with(pipeline(3), (pl_dataset_options){.nondeterministic = true});
    assert_int_equal(gather(pass_over(any), other), n);
    for (int64_t i = 0; i < n; i++) {
        sums[0] += first[i] * first[i];
        sums[1] += other[i] * other[i];
    }
    assert_int_equal(sums[0], sums[1]);
}

/* What waits for the slow one is given out before it: the order is not the same. */
static void in_any_order_nobody_waits_for_the_slowest(void **state)
{
    (void)state;
    bool differs = false;
    for (int i = 0; i < 20 && !differs; i++) {
        int64_t numbers[MOST];
        pl_dataset *any =
            with(mapped(range(100), one_more, 4),
                 (pl_dataset_options){.nondeterministic = true, .on_error = PL_ON_ERROR_SKIP});
        assert_int_equal(gather(pass_over(any), numbers), 99);
        for (int64_t k = 1; k < 99; k++)
            differs = differs || numbers[k] < numbers[k - 1];
    }
    assert_true(differs);
}

static void a_pass_is_left_anywhere_and_nothing_stays(void **state)
{
    (void)state;
    for (int n = 0; n < 40; n++) {
        pl_iterator *iterator = pass_over(pipeline(n % 4 ? n % 4 : PL_AUTO));
        for (int i = 0; i < n * 3; i++)
            next_number(iterator);
        if (n % 2)
            pl_iterator_cancel(iterator);
        pl_iterator_free(iterator);
    }
}

static void *cancel_soon(void *iterator)
{
    usleep(2000);
    pl_iterator_cancel(iterator);
    return NULL;
}

static void a_pass_without_end_is_cancelled(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n++) {
        pl_iterator *iterator = pass_over(interleaved(repeated(range(1), -1), 3, 1, n));
        pl_value value;
        pthread_t thread;
        pthread_create(&thread, NULL, cancel_soon, iterator);
        /* its only lane is empty, for ever */
        assert_int_equal(pl_iterator_next(iterator, &value, &error), -ECANCELED);
        pthread_join(thread, NULL);
        pl_iterator_free(iterator);
    }
}

static int add_up(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                  int n_outputs, pl_error *reterr)
{
    (void)context;
    (void)n_inputs;
    (void)n_outputs;
    int64_t total = 0;
    for (int i = 0; i < 2; i++) {
        int64_t one;
        int r = pl_tensor_read(inputs[i].tensor, NULL, NULL, &one, reterr);
        if (r < 0)
            return r;
        total += one;
    }
    return pl_tensor_new(runtime, PL_I64, &(pl_shape){0}, &total, "sum", &outputs[0].tensor,
                         reterr);
}

static pl_dataset *sum_of(pl_dataset *input)
{
    static const pl_spec spec = {.dtype = PL_I64};
    const pl_function function = {
        .call = add_up, .output_specs = &spec, .n_inputs = 2, .n_outputs = 1};
    pl_tensor *zero;
    pl_dataset *sum = NULL;
    assert_int_equal(
        pl_tensor_new(runtime, PL_I64, &(pl_shape){0}, &(int64_t){0}, "zero", &zero, &error), 0);
    assert_int_equal(pl_dataset_reduction(input, &zero, 1, &function, &sum, &error), 0);
    pl_tensor_unref(zero);
    pl_dataset_unref(input);
    return sum;
}

static void a_reduction_is_a_dataset_of_one_element(void **state)
{
    (void)state;
    pl_iterator *iterator = pass_over(sum_of(range(101)));
    assert_int_equal(next_number(iterator), 5050);
    assert_int_equal(next_number(iterator), INT64_MIN);
    pl_iterator_free(iterator);
}

static void a_reduction_without_end_is_cancelled(void **state)
{
    (void)state;
    pl_iterator *iterator = pass_over(sum_of(repeated(range(1), -1)));
    pl_value value;
    pthread_t thread;
    pthread_create(&thread, NULL, cancel_soon, iterator);
    assert_int_equal(pl_iterator_next(iterator, &value, &error), -ECANCELED);
    pthread_join(thread, NULL);
    pl_iterator_free(iterator);
}

static _Atomic int n_released;

static void count_release(void *context)
{
    (void)context;
    atomic_fetch_add(&n_released, 1);
}

static void functions_are_released_also_by_what_is_refused(void **state)
{
    (void)state;
    static const pl_spec spec = {.dtype = PL_I64};
    const pl_function wrong = {.call = one_more,
                               .output_specs = &spec,
                               .n_inputs = 1,
                               .n_outputs = 1,
                               .release = count_release};
    pl_dataset *input = range(3), *none;
    pl_tensor *one = NULL;
    assert_int_equal(
        pl_tensor_new(runtime, PL_I64, &(pl_shape){0}, &(int64_t){1}, "one", &one, &error), 0);
    n_released = 0;
    assert_int_equal(pl_dataset_filter(input, &wrong, &none, &error), -EINVAL);
    assert_int_equal(pl_dataset_flat_map(input, &wrong, &none, &error), -EINVAL);
    assert_int_equal(pl_dataset_interleave(input, &wrong, 0, 1, 1, &none, &error), -EINVAL);
    assert_int_equal(pl_dataset_interleave(input, &wrong, 1, 1, 1, &none, &error), -EINVAL);
    assert_int_equal(pl_dataset_scan(input, &one, 1, &wrong, &none, &error), -EINVAL);
    assert_int_equal(pl_dataset_scan(input, &one, 0, &wrong, &none, &error), -EINVAL);
    assert_int_equal(pl_dataset_reduce(input, &one, 1, &wrong, &(pl_value){0}, &error), -EINVAL);
    const pl_generator empty = {.release = count_release};
    assert_int_equal(pl_dataset_generator(runtime, &empty, &none, &error), -EINVAL);
    assert_int_equal(n_released, 8);
    pl_tensor_unref(one);
    pl_dataset_unref(input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_order_is_the_same_whatever_the_threads, begin, finish),
        cmocka_unit_test_setup_teardown(elements_may_come_as_they_are_ready, begin, finish),
        cmocka_unit_test_setup_teardown(in_any_order_nobody_waits_for_the_slowest, begin, finish),
        cmocka_unit_test_setup_teardown(a_pass_is_left_anywhere_and_nothing_stays, begin, finish),
        cmocka_unit_test_setup_teardown(a_pass_without_end_is_cancelled, begin, finish),
        cmocka_unit_test_setup_teardown(a_reduction_is_a_dataset_of_one_element, begin, finish),
        cmocka_unit_test_setup_teardown(a_reduction_without_end_is_cancelled, begin, finish),
        cmocka_unit_test_setup_teardown(functions_are_released_also_by_what_is_refused, begin,
                                        finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
