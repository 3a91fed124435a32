/* SPDX-License-Identifier: Apache-2.0 */
/* Threads begin passes at random over datasets that they share, in less memory than what they would
 * like to run ahead with: they take elements, explain, leave in the middle, are cancelled by
 * others. Elements are right and in order, errors at their place; in the end nothing is claimed. */
#include "../unit/dataset_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

enum { N_DATASETS = 6, N_STORMERS = 4, N_PASSES = 20, N_NUMBERS = 400, ELEMENT_BYTES = 96 << 10 };

static pl_dataset *datasets[N_DATASETS];

static int begin(void **state)
{
    return begin_with(state, 24 * PL_MIB, 2);
}

static bool is_bad(int64_t x)
{
    return x % 37 == 5;
}

/* A number becomes many of itself. */
static int swell(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                 int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs;
    int64_t x;
    const int64_t zero[PL_RANK_MAX] = {0}, one[PL_RANK_MAX] = {1};
    int r = pl_tensor_read(inputs[0].tensor, zero, one, &x, reterr);
    if (r < 0)
        return r;
    if (is_bad(x))
        return pl_error_set(reterr, PL_ECORRUPT, "%lld is bad", (long long)x);
    int64_t *data = malloc(ELEMENT_BYTES);
    for (size_t i = 0; i < ELEMENT_BYTES / sizeof *data; i++)
        data[i] = x;
    const pl_shape shape = PL_SHAPE(ELEMENT_BYTES / sizeof *data);
    r = pl_tensor_new(runtime, PL_I64, &shape, data, "swollen", &outputs[0].tensor, reterr);
    free(data);
    return r;
}

static pl_dataset *swollen(pl_dataset *input, int n_parallel)
{
    const pl_spec spec = {.dtype = PL_I64, .shape = PL_SHAPE(ELEMENT_BYTES / 8)};
    const pl_function function = {
        .call = swell, .output_specs = &spec, .n_inputs = 1, .n_outputs = 1};
    pl_dataset *dataset = NULL;
    int r = pl_dataset_map(input, &function, n_parallel, &dataset, &error);
    pl_dataset_unref(input);
    return must(r, dataset);
}

static void make_datasets(void)
{
    static const int parallel[N_DATASETS] = {1, 2, 3, PL_AUTO, PL_AUTO, 4};
    for (int i = 0; i < N_DATASETS; i++) {
        pl_dataset *dataset = swollen(range(N_NUMBERS), parallel[i]);
        if (i % 2)
            dataset = prefetched(dataset, i == 3 ? PL_AUTO : 2 * i);
        datasets[i] = with(dataset, (pl_dataset_options){
                                        .on_error = i < 3 ? PL_ON_ERROR_SKIP : PL_ON_ERROR_FAIL,
                                        .watchdog_ms = i % 3 ? 0 : 60000,
                                    });
    }
}

typedef struct stormer {
    pthread_t thread;
    uint64_t random;
    pl_iterator *iterator; /* that another thread cancels */
    const char *wrong;     /* what a cmocka assertion would say, were this its thread */
    long n_elements;
} stormer;

static int64_t random_below(stormer *own, int64_t n)
{
    own->random = own->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((own->random >> 33) % (uint64_t)n);
}

static bool is_right(pl_tensor *tensor, int64_t expected)
{
    pl_error ignored = {0};
    int64_t value[2] = {0};
    const int64_t last[PL_RANK_MAX] = {ELEMENT_BYTES / 8 - 2}, two[PL_RANK_MAX] = {2};
    return pl_tensor_read(tensor, last, two, value, &ignored) == 0 && value[0] == expected &&
           value[1] == expected;
}

/* One element, at place `at`: false: the pass has ended. */
static bool take(stormer *own, int64_t *at, bool skips)
{
    pl_value value;
    pl_error failed = {0};
    while (skips && is_bad(*at))
        ++*at;
    int r = pl_iterator_next(own->iterator, &value, &failed);
    if (r == -ECANCELED)
        return false;
    if (r == 0) {
        if (*at < N_NUMBERS)
            own->wrong = "a pass ended early";
        return false;
    }
    if (r < 0 ? r != PL_ECORRUPT || !is_bad(*at) : is_bad(*at) || !is_right(value.tensor, *at))
        own->wrong = "an element is another, or an error is not at its place";
    if (r > 0)
        pl_tensor_unref(value.tensor);
    own->n_elements++;
    ++*at;
    return !own->wrong;
}

static void *cancel_soon(void *context)
{
    usleep(500);
    pl_iterator_cancel(context);
    return NULL;
}

static void *storm(void *context)
{
    stormer *own = context;
    for (int i = 0; i < N_PASSES && !own->wrong; i++) {
        int64_t which = random_below(own, N_DATASETS), at = 0;
        int64_t n = random_below(own, 3) ? random_below(own, 60) : N_NUMBERS + 1;
        pl_error failed = {0};
        pthread_t canceller;
        if (pl_iterator_new(datasets[which], &own->iterator, &failed) < 0) {
            own->wrong = "a pass could not begin";
            break;
        }
        bool cancels = random_below(own, 4) == 0 &&
                       pthread_create(&canceller, NULL, cancel_soon, own->iterator) == 0;
        while (n-- > 0 && take(own, &at, which < 3))
            ;
        char *text = NULL;
        if (random_below(own, 4) == 0 && pl_iterator_explain(own->iterator, n % 2, &text, NULL) < 0)
            own->wrong = "a pass could not be explained";
        free(text);
        if (cancels)
            pthread_join(canceller, NULL);
        pl_iterator_free(own->iterator);
    }
    return NULL;
}

static void passes_in_a_storm_are_right_and_leave_nothing(void **state)
{
    (void)state;
    stormer stormers[N_STORMERS] = {0};
    make_datasets();
    for (int i = 0; i < N_STORMERS; i++) {
        stormers[i].random = (uint64_t)i * 77 + 1;
        assert_int_equal(pthread_create(&stormers[i].thread, NULL, storm, &stormers[i]), 0);
    }
    long n = 0;
    for (int i = 0; i < N_STORMERS; i++) {
        pthread_join(stormers[i].thread, NULL);
        n += stormers[i].n_elements;
    }
    for (int i = 0; i < N_DATASETS; i++)
        pl_dataset_unref(datasets[i]);
    for (int i = 0; i < N_STORMERS; i++)
        if (stormers[i].wrong)
            fail_msg("%s", stormers[i].wrong);
    print_message("# %ld elements\n", n);
    assert_true(n > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(passes_in_a_storm_are_right_and_leave_nothing, begin,
                                        finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
