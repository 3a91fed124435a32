/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting: what is stable, where NaN goes, and that the scratch is enough. NumPy is compared with
 * in tests/kernels/test_sorting.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/row/sort.h"

static void places_of_equals_stay_in_order(void **state)
{
    (void)state;
    const float x[] = {0.0f, 1, -0.0f, NAN, 1, -NAN, 0};
    int64_t up[7], down[7];
    void *scratch = malloc(pl_argsort_scratch_bytes(PL_F32, 7));
    pl_argsort_row((pl_sort){PL_F32, false}, x, 7, up, scratch);
    pl_argsort_row((pl_sort){PL_F32, true}, x, 7, down, scratch);
    free(scratch);
    const int64_t wanted_up[] = {0, 2, 6, 1, 4, 3, 5}, wanted_down[] = {3, 5, 1, 4, 0, 2, 6};
    assert_memory_equal(up, wanted_up, sizeof up);
    assert_memory_equal(down, wanted_down, sizeof down);
}

/* -0 and 0 are equal: as many as there are, in place and not, merged and by digits. */
static void values_that_are_zero_stay_in_order(void **state)
{
    (void)state;
    enum { N = 3000 };
    static double x[N], sorted[N];
    static int64_t places[N];
    void *scratch = malloc(pl_argsort_scratch_bytes(PL_F64, N));
    const int64_t lengths[] = {2, 17, 100, N};
    for (size_t k = 0; k < 4; k++)
        for (int descending = 0; descending < 2; descending++) {
            int64_t n = lengths[k];
            const pl_sort sort = {PL_F64, descending != 0};
            for (int64_t i = 0; i < n; i++)
                x[i] = i % 5 == 4 ? (double)(i % 11) - 5 : i * i % 7 % 3 == 0 ? 0.0 : -0.0;
            pl_argsort_row(sort, x, n, places, scratch);
            void *exact = malloc(pl_sort_scratch_bytes(PL_F64, n));
            pl_sort_row(sort, x, n, sorted, exact);
            for (int64_t i = 0; i < n; i++)
                assert_memory_equal(&sorted[i], &x[places[i]], sizeof *x);
            pl_sort_row(sort, x, n, x, exact);
            assert_memory_equal(x, sorted, (size_t)n * sizeof *x);
            free(exact);
        }
    free(scratch);
}

static void nothing_is_sorted_into_nothing(void **state)
{
    (void)state;
    void *scratch = malloc(pl_sort_scratch_bytes(PL_F64, 0));
    pl_sort_row((pl_sort){PL_F64, false}, NULL, 0, NULL, scratch);
    pl_argsort_row((pl_sort){PL_F64, false}, NULL, 0, NULL, scratch);
    pl_top_k_row((pl_sort){PL_F64, false}, NULL, 0, 0, 0, NULL, NULL, scratch);
    free(scratch);
}

/* Everything at exact size, for the sanitizer, and in place. */
static void scratch_of_the_size_that_was_told_is_enough(void **state)
{
    (void)state;
    const int64_t lengths[] = {1, 100, 3000};
    for (int dtype = PL_BOOL; dtype <= PL_F64; dtype++) {
        if (dtype == PL_F16 || dtype == PL_BF16)
            continue;
        for (size_t k = 0; k < 3; k++) {
            int64_t n = lengths[k], *places = malloc((size_t)n * 8);
            char *x = calloc((size_t)n, 8);
            for (int64_t i = 0; i < n; i++)
                x[i] = (char)(dtype == PL_BOOL ? i % 2 : i * 37);
            void *scratch = malloc(pl_argsort_scratch_bytes((pl_dtype)dtype, n));
            pl_argsort_row((pl_sort){(pl_dtype)dtype, true}, x, n, places, scratch);
            free(scratch);
            scratch = malloc(pl_top_k_scratch_bytes((pl_dtype)dtype, n, (n + 1) / 2));
            char *values = malloc((size_t)n * 8);
            pl_top_k_row((pl_sort){(pl_dtype)dtype, true}, x, n, (n + 1) / 2, 0, values, places,
                         scratch);
            free(scratch);
            scratch = malloc(pl_sort_scratch_bytes((pl_dtype)dtype, n));
            pl_sort_row((pl_sort){(pl_dtype)dtype, true}, x, n, x, scratch);
            free(scratch);
            if (dtype == PL_F64) /* the best come first, in both */
                assert_memory_equal(values, x, (size_t)((n + 1) / 2) * 8);
            free(values);
            free(places);
            free(x);
        }
    }
}

static int left; /* how often it may be asked until it says so */

static bool stop_after(const void *context)
{
    (void)context;
    return left-- == 0;
}

static void a_long_row_is_sorted_until_it_is_stopped(void **state)
{
    (void)state;
    enum { N = 100000 };
    double *x = calloc(N, sizeof *x), *out = calloc(N, sizeof *out);
    int64_t *places = calloc(N, sizeof *places);
    void *scratch = malloc(pl_argsort_scratch_bytes(PL_F64, N));
    assert_true(x && out && places && scratch);
    for (int i = 0; i < N; i++)
        x[i] = (double)((int64_t)i * 7919 % N);
    int n_asked = 0;
    left = -1;
    for (int at = 0; left < 0; at++, n_asked++) { /* until it is asked no more than that */
        left = at;
        const pl_sort sort = {PL_F64, false, {.asked = stop_after}};
        pl_argsort_row(sort, x, N, places, scratch);
    }
    assert_true(n_asked > 3); /* before the passes, and before each */
    for (int i = 0; i < N; i++)
        assert_true(x[places[i]] == i);
    left = 2;
    const pl_sort sort = {PL_F64, false, {.asked = stop_after}};
    pl_sort_row(sort, x, N, out, scratch);
    assert_int_equal(left, -1);
    pl_top_k_row(sort, x, N, 10, 0, out, places, scratch);
    free(x);
    free(out);
    free(places);
    free(scratch);
}

static void the_best_of_tiles_have_the_best_of_all_among_them(void **state)
{
    (void)state;
    const int32_t x[] = {5, 9, 9, 1, 9, 7};
    int32_t values[4], best[2];
    int64_t places[4], indices[2];
    void *scratch = malloc(pl_top_k_scratch_bytes(PL_I32, 6, 2));
    pl_sort down = {PL_I32, true};
    pl_top_k_row(down, x, 3, 2, 0, values, places, scratch);
    pl_top_k_row(down, x + 3, 3, 2, 3, values + 2, places + 2, scratch);
    pl_top_k_row(down, values, 4, 2, 0, best, indices, scratch);
    free(scratch);
    assert_true(best[0] == 9 && best[1] == 9);
    assert_int_equal(places[indices[0]], 1);
    assert_int_equal(places[indices[1]], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_equals_stay_in_order),
        cmocka_unit_test(nothing_is_sorted_into_nothing),
        cmocka_unit_test(scratch_of_the_size_that_was_told_is_enough),
        cmocka_unit_test(a_long_row_is_sorted_until_it_is_stopped),
        cmocka_unit_test(values_that_are_zero_stay_in_order),
        cmocka_unit_test(the_best_of_tiles_have_the_best_of_all_among_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
