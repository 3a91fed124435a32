/* SPDX-License-Identifier: Apache-2.0 */
/* Passes in little memory: what does not fit beside what runs ahead is made alone; what does not
 * fit at all says what it needs; a consumer that stalls costs no more than the budget. */
#include "dataset_fixture.h"

#include <stdatomic.h>

#include "../sanitized.h"
#include "data/persist/store.h"
#include "tensor/memory.h"
#include "tensor/runtime.h"

/* What sizes are given in. They matter only to one another; with whole MiB, ThreadSanitizer takes
 * four times as long. */
enum { UNIT = 256 * PL_KIB, CAP = 32 * UNIT };

static int begin(void **state)
{
    return begin_with(state, CAP, 2);
}

/* Bytes that a call of heavy() takes beside what it makes, and makes. */
typedef struct weight {
    int64_t scratch_bytes, bytes;
} weight;

static UNWATCHED int64_t *filled(int64_t n, int64_t value)
{
    int64_t *data = malloc((size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++)
        data[i] = value;
    return data;
}

static pl_tensor *tensor_of_bytes(int64_t n, int64_t value, pl_error *reterr)
{
    pl_tensor *tensor = NULL;
    const pl_shape shape = PL_SHAPE(n / 8);
    int64_t *data = filled(n / 8, value);
    int r = pl_tensor_new(runtime, PL_I64, &shape, data, "heavy", &tensor, reterr);
    free(data);
    return r < 0 ? NULL : tensor;
}

/* Pinned while it is needed, so that nothing but its end makes room. */
static int heavy(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                 int n_outputs, pl_error *reterr)
{
    (void)n_inputs, (void)n_outputs;
    const weight *own = context;
    int64_t x = number_in(inputs[0].tensor, 0);
    pl_block scratch;
    int r =
        pl_memory_take(runtime->memory, (uint64_t)own->scratch_bytes, "scratch", &scratch, reterr);
    if (r < 0)
        return r;
    usleep(300);
    outputs[0].tensor = tensor_of_bytes(own->bytes, x, reterr);
    pl_memory_give(runtime->memory, &scratch);
    return outputs[0].tensor ? 0 : reterr->code;
}

static pl_dataset *weighed(pl_dataset *input, const weight *own, int n_parallel)
{
    const pl_spec spec = {.dtype = PL_I64, .shape = PL_SHAPE(PL_UNKNOWN)};
    const pl_function function = {.call = heavy,
                                  .output_specs = &spec,
                                  .n_inputs = 1,
                                  .n_outputs = 1,
                                  .context = (void *)own};
    pl_dataset *dataset = NULL;
    int r = pl_dataset_map(input, &function, n_parallel, &dataset, &error);
    pl_dataset_unref(input);
    must(r, dataset);
    assert_int_equal(pl_dataset_set_name(dataset, "heavy", &error), 0);
    return dataset;
}

static void check_heavy(pl_dataset *dataset, int64_t n)
{
    pl_iterator *iterator = pass_over(dataset);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(next_number(iterator), i);
    assert_int_equal(next_number(iterator), INT64_MIN);
    assert_int_equal(pl_iterator_bad_count(iterator).n_items, n);
    pl_iterator_free(iterator);
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
}

static void what_does_not_fit_beside_others_is_made_alone(void **state)
{
    (void)state;
    static const weight much = {20 * UNIT, 6 * UNIT}, more = {24 * UNIT, 7 * UNIT};
    for (int n = 1; n <= 4; n++) {
        check_heavy(weighed(range(12), &much, n), 12);
        check_heavy(prefetched(weighed(range(12), &much, n), 4), 12);
        check_heavy(prefetched(weighed(range(12), &more, PL_AUTO), n), 12);
    }
}

static void check_heavy_batches(pl_dataset *dataset, int64_t n_batches, int64_t n)
{
    pl_iterator *iterator = pass_over(dataset);
    pl_value value;
    for (int64_t batch = 0; batch < n_batches; batch++) {
        int r = pl_iterator_next(iterator, &value, &error);
        if (r < 0)
            fail_msg("%s", error.message);
        assert_int_equal(r, 1);
        for (int64_t i = 0; i < n; i++) {
            int64_t number;
            const int64_t at[PL_RANK_MAX] = {i, 0}, one[PL_RANK_MAX] = {1, 1};
            assert_int_equal(pl_tensor_read(value.tensor, at, one, &number, &error), 0);
            assert_int_equal(number, batch * n + i);
        }
        pl_tensor_unref(value.tensor);
    }
    assert_int_equal(pl_iterator_next(iterator, &value, &error), 0);
    pl_iterator_free(iterator);
}

static void too_little_for_two_batches_runs_with_one(void **state)
{
    (void)state;
    static const weight light = {UNIT, 2 * UNIT};
    for (int n = 1; n <= 3; n++) /* of 20 units each */
        check_heavy_batches(prefetched(batched(weighed(range(60), &light, n), 10, true), 4), 6, 10);
    assert_true(pl_runtime_peak_bytes(runtime) <= CAP);
}

/* 32 units, all that there is: elements are made while what was gathered is on disk. */
static void a_batch_as_large_as_the_budget_loses_no_element(void **state)
{
    (void)state;
    static const weight light = {UNIT, 2 * UNIT};
    for (int n = 1; n <= 3; n += SANITIZED ? 2 : 1)
        for (int policy = PL_ON_ERROR_FAIL; policy <= PL_ON_ERROR_SKIP; policy++) {
            pl_dataset *dataset = batched(weighed(range(32), &light, n), 16, false);
            check_heavy_batches(
                with(prefetched(dataset, 2), (pl_dataset_options){.on_error = (pl_on_error)policy}),
                2, 16);
        }
    assert_true(pl_runtime_peak_bytes(runtime) <= CAP);
}

static void too_little_for_one_batch_says_what_it_needs(void **state)
{
    (void)state;
    static const weight light = {UNIT, 2 * UNIT};
    for (int n = 1; n <= 3; n++) {
        pl_dataset *dataset = batched(weighed(range(60), &light, n), 17, true);
        pl_iterator *iterator = pass_over(
            with(prefetched(dataset, 4), (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP}));
        pl_value value;
        for (int again = 0; again < 2; again++) {
            assert_int_equal(pl_iterator_next(iterator, &value, &error), PL_EBUDGET);
            assert_non_null(
                strstr(error.message, "batch: one batch needs 8.5 MiB (17 x 512.0 KiB)"));
        }
        pl_iterator_free(iterator);
    }
}

static void a_batch_claims_no_more_than_its_input_has(void **state)
{
    (void)state;
    static const weight light = {UNIT, 2 * UNIT};
    check_heavy_batches(batched(weighed(range(5), &light, 1), 1000, false), 1, 5);
    assert_true(pl_runtime_peak_bytes(runtime) < 16 * UNIT);
}

/* Says that it has two, and has five; each time anew. */
static int count_up(void *context, pl_value *ret_values, int n_values, pl_error *reterr)
{
    (void)n_values;
    int64_t *n = context;
    if (*n % 6 == 5) {
        ++*n;
        return 0;
    }
    const int64_t value = (*n)++ % 6;
    int r =
        pl_tensor_new(runtime, PL_I64, &(pl_shape){0}, &value, "n", &ret_values[0].tensor, reterr);
    return r < 0 ? r : 1;
}

static void a_batch_takes_more_than_its_input_said(void **state)
{
    (void)state;
    static int64_t n;
    static const pl_spec spec = {.dtype = PL_I64};
    const pl_generator generator = {
        .next = count_up, .specs = &spec, .n_components = 1, .cardinality = 2, .context = &n};
    for (int64_t size = 3; size <= 5; size++) {
        pl_dataset *dataset = NULL;
        int r = pl_dataset_generator(runtime, &generator, &dataset, &error);
        pl_iterator *iterator = pass_over(batched(must(r, dataset), size, false));
        assert_int_equal(next_number(iterator), 0);
        assert_int_equal(next_number(iterator), size < 5 ? size : INT64_MIN);
        pl_iterator_free(iterator);
    }
}

enum { STRING_BYTES = 6 * UNIT };

static int make_string(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                       int n_outputs, pl_error *reterr)
{
    (void)context, (void)inputs, (void)n_inputs, (void)n_outputs;
    char *bytes = calloc(1, STRING_BYTES);
    const pl_string string = {bytes, STRING_BYTES};
    int r = pl_tensor_new_strings(runtime, &(pl_shape){0}, &string, "string", &outputs[0].tensor,
                                  reterr);
    free(bytes);
    return r;
}

/* While it is at work there is no room for a string. */
static int take_most(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                     int n_outputs, pl_error *reterr)
{
    (void)inputs, (void)n_inputs, (void)n_outputs;
    int64_t *n = context;
    pl_block scratch;
    int r =
        pl_memory_take(runtime->memory, CAP - STRING_BYTES + 2 * UNIT, "scratch", &scratch, reterr);
    if (r < 0)
        return r;
    usleep(3000);
    pl_memory_give(runtime->memory, &scratch);
    r = pl_tensor_new(runtime, PL_I64, &(pl_shape){0}, n, "n", &outputs[0].tensor, reterr);
    *n += r == 0;
    return r;
}

static pl_dataset *called(pl_dataset *input, pl_dataset_call *call, pl_dtype dtype, void *context)
{
    const pl_spec spec = {.dtype = dtype};
    const pl_function function = {
        .call = call, .output_specs = &spec, .n_inputs = 1, .n_outputs = 1, .context = context};
    pl_dataset *dataset = NULL;
    int r = pl_dataset_map(input, &function, 1, &dataset, &error);
    pl_dataset_unref(input);
    return must(r, dataset);
}

static void what_is_kept_waits_for_room(void **state)
{
    (void)state;
    enum { N = 12 };
    char path[128];
    snprintf(path, sizeof path, "%s/kept", folder);
    pl_dataset *strings = called(range(N), make_string, PL_STRING, NULL), *cache = NULL;
    int r = pl_dataset_cache(strings, path, &cache, &error);
    must(r, cache);
    for (int pass = 0; pass < 3; pass++) { /* the first one writes */
        int64_t n = 0;
        pl_dataset *ahead = prefetched(pl_dataset_ref(cache), 1);
        check_heavy(prefetched(called(ahead, take_most, PL_I64, &n), 1), N);
    }
    pl_dataset_unref(strings);
    pl_dataset_unref(cache);
    assert_int_equal(unlink(path), 0);
}

/* All but so little that no chunk of kept elements fits. */
static pl_block take_the_rest(void)
{
    pl_block all = {0};
    for (uint64_t bytes = CAP; !all.data && bytes > 0; bytes -= 16 * PL_KIB)
        if (pl_memory_take(runtime->memory, bytes, "the rest", &all, &error) < 0)
            all = (pl_block){0};
    return all;
}

/* Of as many bytes as are copied, not held. */
static int add_number(pl_store *store, int64_t number)
{
    pl_element element;
    assert_int_equal(pl_element_init(&element, 1), 0);
    pl_element_items(&element)[0].tensor = tensor_of_bytes(4000, number, &error);
    assert_non_null(pl_element_items(&element)[0].tensor);
    pl_block rest = number % 50 == 0 ? take_the_rest() : (pl_block){0};
    int r = pl_store_add(store, &element, &error), n_refused = 0;
    pl_memory_give(runtime->memory, &rest);
    pl_memory_trim(runtime->memory);
    for (; r == PL_EBUDGET; n_refused++)
        r = pl_store_add(store, &element, &error);
    assert_int_equal(r, 0);
    pl_element_clear(&element);
    return n_refused;
}

static void a_store_that_was_refused_room_goes_on(void **state)
{
    (void)state;
    enum { N = SANITIZED ? 500 : 2000 };
    pl_store *store;
    pl_store_reader reader;
    pl_dataset *like = weighed(range(1), &(weight){0}, 1);
    int n_refused = 0;
    assert_int_equal(pl_store_new(runtime, &store, &error), 0);
    for (int64_t i = 0; i < N; i++)
        n_refused += add_number(store, i);
    assert_true(n_refused > 0);
    pl_store_end(store);
    pl_store_read_begin(&reader, store);
    n_refused = 0;
    for (int64_t i = 0; i < N; i++) {
        pl_element element;
        pl_block rest = take_the_rest();
        int r = pl_store_read(&reader, like, &element, &error);
        pl_memory_give(runtime->memory, &rest);
        pl_memory_trim(runtime->memory);
        n_refused += r == PL_EBUDGET;
        assert_true(r == 1 || r == PL_EBUDGET);
        if (r == PL_EBUDGET)
            assert_int_equal(pl_store_read(&reader, like, &element, &error), 1);
        assert_int_equal(number_in(pl_element_items(&element)[0].tensor, 0), i);
        assert_int_equal(number_in(pl_element_items(&element)[0].tensor, 499), i);
        pl_element_clear(&element);
    }
    assert_true(n_refused > 0);
    pl_store_read_end(&reader);
    pl_store_unref(store);
    pl_dataset_unref(like);
}

static void an_element_too_large_for_all_costs_one_element(void **state)
{
    (void)state;
    static const weight bomb = {PL_GIB, 8};
    pl_iterator *iterator = pass_over(weighed(range(3), &bomb, 2));
    pl_value value;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pl_iterator_next(iterator, &value, &error), PL_EBUDGET);
        assert_non_null(strstr(error.message, "map 'heavy': element "));
        assert_non_null(strstr(error.message, "1.0 GiB"));
    }
    assert_int_equal(pl_iterator_next(iterator, &value, &error), 0);
    pl_iterator_free(iterator);
    iterator = pass_over(with(prefetched(weighed(range(3), &bomb, 2), 2),
                              (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP}));
    assert_int_equal(pl_iterator_next(iterator, &value, &error), 0);
    assert_int_equal(pl_iterator_bad_count(iterator).n_bad, 3);
    pl_iterator_free(iterator);
}

/* What others hold is no fault of an element: with them gone it would be made. */
static void an_element_that_others_leave_no_room_for_is_not_skipped(void **state)
{
    (void)state;
    static const weight heavy_one = {UNIT, 12 * UNIT};
    pl_value value;
    const void *data;
    int64_t strides[PL_RANK_MAX];
    pl_tensor *pinned = tensor_of_bytes(24 * UNIT, 1, &error);
    assert_int_equal(pl_tensor_pin(pinned, &data, strides, &error), 0);
    pl_iterator *iterator = pass_over(with(prefetched(weighed(range(3), &heavy_one, 2), 2),
                                           (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP}));
    assert_int_equal(pl_iterator_next(iterator, &value, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "map 'heavy': element 0, no room for 3.0 MiB"));
    pl_tensor_unpin(pinned);
    assert_int_equal(next_number(iterator), 1);
    assert_int_equal(next_number(iterator), 2);
    assert_int_equal(next_number(iterator), INT64_MIN);
    pl_iterator_free(iterator);
    pl_tensor_unref(pinned);
}

static void a_stalled_consumer_costs_no_more_than_half_of_the_budget(void **state)
{
    (void)state;
    static const weight light = {8, UNIT};
    pl_dataset *dataset = prefetched(weighed(range(1000), &light, 4), 1000);
    pl_iterator *iterator =
        pass_over(with(dataset, (pl_dataset_options){.budget_bytes = 8 * UNIT}));
    assert_int_equal(next_number(iterator), 0);
    uint64_t claimed = 0, before = 1;
    for (int still = 0; still < 20; still = claimed == before ? still + 1 : 0) {
        before = claimed;
        usleep(5000);
        claimed = pl_runtime_claimed_bytes(runtime);
    }
    assert_true(claimed >= 2 * UNIT); /* it runs ahead... */
    assert_true(claimed <= 7 * UNIT); /* ...but for 4 units, and one element of each stage */
    for (int64_t i = 1; i < 1000; i++)
        assert_int_equal(next_number(iterator), i);
    pl_iterator_free(iterator);
}

/* How many calls were made at once, at most. */
static _Atomic int n_napping, n_napping_most;

static int nap(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
               int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs, (void)reterr;
    int n = ++n_napping, most = n_napping_most;
    while (n > most && !atomic_compare_exchange_weak(&n_napping_most, &most, n))
        ;
    usleep(3000);
    n_napping--;
    outputs[0].tensor = pl_tensor_ref(inputs[0].tensor);
    return 0;
}

static void auto_makes_more_calls_at_once_up_to_the_threads(void **state)
{
    (void)state;
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        n_napping_most = 0;
        pl_iterator *iterator = pass_over(
            with(mapped(range(200), nap, PL_AUTO), (pl_dataset_options){.n_threads = n_threads}));
        for (int64_t i = 0; i < 200; i++)
            assert_int_equal(next_number(iterator), i);
        pl_iterator_free(iterator);
        assert_int_equal(n_napping_most, n_threads);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_does_not_fit_beside_others_is_made_alone, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(too_little_for_two_batches_runs_with_one, begin, finish),
        cmocka_unit_test_setup_teardown(a_batch_as_large_as_the_budget_loses_no_element, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(too_little_for_one_batch_says_what_it_needs, begin, finish),
        cmocka_unit_test_setup_teardown(a_batch_claims_no_more_than_its_input_has, begin, finish),
        cmocka_unit_test_setup_teardown(a_batch_takes_more_than_its_input_said, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_kept_waits_for_room, begin, finish),
        cmocka_unit_test_setup_teardown(a_store_that_was_refused_room_goes_on, begin, finish),
        cmocka_unit_test_setup_teardown(an_element_that_others_leave_no_room_for_is_not_skipped,
                                        begin, finish),
        cmocka_unit_test_setup_teardown(an_element_too_large_for_all_costs_one_element, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(auto_makes_more_calls_at_once_up_to_the_threads, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(a_stalled_consumer_costs_no_more_than_half_of_the_budget,
                                        begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
