/* SPDX-License-Identifier: Apache-2.0 */
/* Partials of reductions: what nothing reduces to, what merging keeps, and what an index is. That
 * values are NumPy's is tested in tests/kernels/test_reductions.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/isa_table.h"
#include "kernels/reduce/reduce.h"
#include "tensor/dtype.h"

static double scratch[2][64];
static const double nothing[1]; /* no element of it is looked at */

static double one_f64(pl_reduce_op op, const double *x, int64_t n, double ddof)
{
    pl_reduce reduce = {op, PL_F64};
    pl_partials partials = {scratch[0], 1};
    double result;
    pl_reduce_init(reduce, partials, 0, 1);
    pl_reduce_rows(reduce, &(pl_reduce_tile){.data = x, .n_rows = 1, .n_columns = n}, partials, 0);
    pl_reduce_finish(reduce, partials, 0, 1, ddof, &result);
    return result;
}

static void results_have_numpys_dtypes(void **state)
{
    (void)state;
    assert_int_equal(pl_reduce_result((pl_reduce){PL_REDUCE_SUM, PL_I32}), PL_I64);
    assert_int_equal(pl_reduce_result((pl_reduce){PL_REDUCE_SUM, PL_BOOL}), PL_I64);
    assert_int_equal(pl_reduce_result((pl_reduce){PL_REDUCE_PROD, PL_U8}), PL_U64);
    assert_int_equal(pl_reduce_result((pl_reduce){PL_REDUCE_MEAN, PL_U8}), PL_F64);
    assert_int_equal(pl_reduce_result((pl_reduce){PL_REDUCE_MEAN, PL_F32}), PL_F32);
    assert_int_equal(pl_reduce_result((pl_reduce){PL_REDUCE_ANY, PL_F32}), PL_BOOL);
    assert_int_equal(pl_reduce_result((pl_reduce){PL_REDUCE_ARGMAX, PL_F32}), PL_I64);
}

static void what_cannot_be_reduced_has_no_result(void **state)
{
    (void)state;
    assert_int_equal(pl_reduce_result((pl_reduce){PL_REDUCE_SUM, PL_STRING}), PL_DTYPE_NONE);
    assert_int_equal(pl_reduce_result((pl_reduce){PL_REDUCE_SUM, PL_F16}), PL_DTYPE_NONE);
    assert_int_equal(pl_reduce_result((pl_reduce){PL_REDUCE_LOGSUMEXP, PL_I32}), PL_DTYPE_NONE);
    assert_int_equal(pl_reduce_result((pl_reduce){PL_REDUCE_SUM, PL_DTYPE_NONE}), PL_DTYPE_NONE);
}

static void variances_take_any_number_from_the_count(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3, 6}, same[] = {5, 5};
    const double more[][2] = {{0, 3.5}, {1, 14.0 / 3}, {0.5, 4}, {-3, 2}, {-INFINITY, 0}};
    for (size_t i = 0; i < PL_COUNT_OF(more); i++)
        assert_true(fabs(one_f64(PL_REDUCE_VARIANCE, x, 4, more[i][0]) - more[i][1]) < 1e-15);
    const double all[] = {4, 5, 1e300, INFINITY};
    for (size_t i = 0; i < PL_COUNT_OF(all); i++) {
        assert_true(one_f64(PL_REDUCE_VARIANCE, x, 4, all[i]) == INFINITY);
        assert_true(isnan(one_f64(PL_REDUCE_VARIANCE, same, 2, all[i])));
    }
    assert_true(isnan(one_f64(PL_REDUCE_VARIANCE, x, 4, NAN)));
    assert_true(isnan(one_f64(PL_REDUCE_VARIANCE, same, 2, NAN)));
}

static void nothing_reduces_to_what_the_header_says(void **state)
{
    (void)state;
    assert_true(one_f64(PL_REDUCE_SUM, nothing, 0, 0) == 0);
    assert_true(one_f64(PL_REDUCE_PROD, nothing, 0, 0) == 1);
    assert_true(one_f64(PL_REDUCE_MAX, nothing, 0, 0) == -INFINITY);
    assert_true(one_f64(PL_REDUCE_MIN, nothing, 0, 0) == INFINITY);
    assert_true(one_f64(PL_REDUCE_LOGSUMEXP, nothing, 0, 0) == -INFINITY);
    assert_true(isnan(one_f64(PL_REDUCE_MEAN, nothing, 0, 0)));
    assert_true(isnan(one_f64(PL_REDUCE_VARIANCE, nothing, 0, 0)));
}

static void a_variance_without_freedom_is_nan(void **state)
{
    (void)state;
    const double x[] = {3};
    assert_true(one_f64(PL_REDUCE_VARIANCE, x, 1, 0) == 0);
    assert_true(isnan(one_f64(PL_REDUCE_VARIANCE, x, 1, 1)));
}

/* 2^53 and then ones that a double beside it cannot hold one by one. */
static void rounding_errors_of_a_long_sum_are_kept(void **state)
{
    (void)state;
    pl_reduce reduce = {PL_REDUCE_SUM, PL_F64};
    pl_partials partials = {scratch[0], 1};
    double big = 0x1p53, one = 1, result;
    pl_reduce_tile tile = {.data = &big, .n_rows = 1, .n_columns = 1};
    pl_reduce_init(reduce, partials, 0, 1);
    pl_reduce_rows(reduce, &tile, partials, 0);
    tile.data = &one;
    for (int i = 0; i < 1000; i++)
        (i % 2 ? pl_reduce_rows : pl_reduce_columns)(reduce, &tile, partials, 0);
    pl_reduce_finish(reduce, partials, 0, 1, 0, &result);
    assert_true(result == 0x1p53 + 1000);
}

static void equal_elements_of_tiles_in_any_order_give_the_lowest_index(void **state)
{
    (void)state;
    const float x[] = {1, 7, 7, 2, 7, 7};
    pl_reduce reduce = {PL_REDUCE_ARGMAX, PL_F32};
    pl_partials one = {scratch[0], 1}, other = {scratch[1], 1};
    int64_t index;
    pl_reduce_init(reduce, one, 0, 1);
    pl_reduce_init(reduce, other, 0, 1);
    pl_reduce_tile late = {
        .data = x + 3, .n_rows = 1, .n_columns = 3, .first_index = 3, .index_step = 1};
    pl_reduce_tile early = {.data = x, .n_rows = 1, .n_columns = 3, .index_step = 1};
    pl_reduce_rows(reduce, &late, one, 0);
    pl_reduce_finish(reduce, one, 0, 1, 0, &index);
    assert_int_equal(index, 4);
    pl_reduce_rows(reduce, &early, other, 0);
    pl_reduce_merge(reduce, one, 0, other, 0, 1);
    pl_reduce_finish(reduce, one, 0, 1, 0, &index);
    assert_int_equal(index, 1);
    pl_reduce_rows(reduce, &late, one, 0);
    pl_reduce_finish(reduce, one, 0, 1, 0, &index);
    assert_int_equal(index, 1);
}

static void an_index_step_counts_along_what_is_reduced(void **state)
{
    (void)state;
    const int32_t x[3][2] = {{1, 9}, {5, 2}, {4, 9}};
    pl_reduce reduce = {PL_REDUCE_ARGMAX, PL_I32};
    pl_partials partials = {scratch[0], 2};
    int64_t index[2];
    pl_reduce_init(reduce, partials, 0, 2);
    pl_reduce_tile tile = {.data = x,
                           .row_bytes = 8,
                           .n_rows = 3,
                           .n_columns = 2,
                           .first_index = 100,
                           .index_step = 10};
    pl_reduce_columns(reduce, &tile, partials, 0);
    pl_reduce_finish(reduce, partials, 0, 2, 0, index);
    assert_int_equal(index[0], 110);
    assert_int_equal(index[1], 100);
}

static void rows_may_be_taken_from_the_last(void **state)
{
    (void)state;
    const double x[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    pl_reduce reduce = {PL_REDUCE_SUM, PL_F64};
    pl_partials partials = {scratch[0], 3};
    double sums[3];
    pl_reduce_init(reduce, partials, 0, 3);
    pl_reduce_tile tile = {.data = x[2], .row_bytes = -16, .n_rows = 3, .n_columns = 2};
    pl_reduce_rows(reduce, &tile, partials, 0);
    pl_reduce_finish(reduce, partials, 0, 3, 0, sums);
    assert_true(sums[0] == 11 && sums[1] == 7 && sums[2] == 3);
}

/* The neighbours' planes lie beside: nothing outside of [at, at + n) may change. */
static void outputs_that_are_not_meant_stay(void **state)
{
    (void)state;
    for (int op = 0; op < PL_N_REDUCE_OPS; op++) {
        pl_reduce reduce = {(pl_reduce_op)op, PL_F32};
        pl_partials partials = {scratch[0], 10};
        const float x[2][3] = {{1, 2, 3}, {4, 5, 6}};
        int64_t raw[10], raw_after[10];
        pl_reduce_init(reduce, partials, 0, 10);
        pl_reduce_tile tile = {.data = x, .row_bytes = 12, .n_rows = 2, .n_columns = 3};
        pl_reduce_finish(reduce, partials, 0, 10, 0, raw);
        pl_reduce_columns(reduce, &tile, partials, 4);
        pl_reduce_rows(reduce, &tile, partials, 4);
        pl_reduce_finish(reduce, partials, 0, 10, 0, raw_after);
        size_t item = pl_dtype_info_of(pl_reduce_result(reduce))->item_bytes;
        assert_memory_equal(raw, raw_after, 4 * item);
        assert_memory_equal((char *)raw + 7 * item, (char *)raw_after + 7 * item, 3 * item);
    }
}

static void unaligned_rows_and_all_lengths_are_read_as_they_are(void **state)
{
    (void)state;
    double *exact = malloc(80 * sizeof(double)); /* at its very end, for the sanitizer */
    for (int64_t n = 1; n <= 80; n++) {
        double *x = exact + 80 - n, sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += x[i] = (double)(i * i % 17);
        x[n / 2] += 100;
        assert_true(one_f64(PL_REDUCE_SUM, x, n, 0) == sum + 100);
        assert_true(one_f64(PL_REDUCE_MAX, x, n, 0) == x[n / 2]);
        x[n - 1] = NAN;
        assert_true(isnan(one_f64(PL_REDUCE_MAX, x, n, 0)));
        assert_true(isnan(one_f64(PL_REDUCE_MIN, x, n, 0)));
    }
    free(exact);
}

/* Sums of `n` columns of floats in exactly as much memory as there is, with NaN in what lies
 * between rows; from the last row to the first if `backwards`. */
static void check_columns(int64_t n_rows, int64_t n, int64_t gap, bool backwards)
{
    static double planes[2 * 64], sums[64];
    int64_t stride = n + gap, n_items = (n_rows - 1) * stride + n;
    float *x = malloc((size_t)n_items * sizeof *x), results[64];
    for (int64_t i = 0; i < n_items; i++)
        x[i] = i % stride < n ? (float)(i * i % 23) : NAN;
    memset(sums, 0, sizeof sums);
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t i = 0; i < n; i++)
            sums[i] += (double)x[r * stride + i];
    pl_reduce reduce = {PL_REDUCE_SUM, PL_F32};
    pl_partials partials = {planes, n};
    pl_reduce_tile tile = {.data = backwards ? x + (n_rows - 1) * stride : x,
                           .row_bytes = (backwards ? -stride : stride) * (int64_t)sizeof *x,
                           .n_rows = n_rows,
                           .n_columns = n};
    pl_reduce_init(reduce, partials, 0, n);
    pl_reduce_columns(reduce, &tile, partials, 0);
    pl_reduce_finish(reduce, partials, 0, n, 0, results);
    for (int64_t i = 0; i < n; i++)
        assert_true((double)results[i] == sums[i]);
    free(x);
}

static void columns_have_nothing_of_what_lies_between_rows(void **state)
{
    (void)state;
    static const int64_t rows[] = {1, 3, 4, 5, 8, 31, 33, 66};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
        for (int64_t n = 1; n <= 40; n++) {
            check_columns(rows[r], n, 0, false);
            check_columns(rows[r], n, 0, true);
            check_columns(rows[r], n, 1, false);
            check_columns(rows[r], n, 2, true);
        }
}

static int64_t argmax_f32(const float *x, int64_t n)
{
    pl_reduce reduce = {PL_REDUCE_ARGMAX, PL_F32};
    pl_partials partials = {scratch[0], 1};
    const pl_reduce_tile row = {.data = x, .n_rows = 1, .n_columns = n, .index_step = 1};
    int64_t index;
    pl_reduce_init(reduce, partials, 0, 1);
    pl_reduce_rows(reduce, &row, partials, 0);
    pl_reduce_finish(reduce, partials, 0, 1, 0, &index);
    return index;
}

/* Around one vector, eight of them, and the 1024 after which it is asked where the best is. */
static void the_largest_is_found_wherever_it_is(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1,  3,  4,  5,   7,    8,    9,    31,   32,   33,  63,
                                      64, 65, 95, 127, 1023, 1024, 1025, 1087, 2049, 3100};
    static float x[3100];
    for (int64_t i = 0; i < 3100; i++)
        x[i] = -2 - (float)(i % 7);
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
        for (int64_t n = lengths[l], i = 0; i < n; i++) {
            float before = x[i];
            x[i] = -1;
            assert_int_equal(argmax_f32(x, n), i);
            x[i] = NAN;
            assert_int_equal(argmax_f32(x, n), i);
            x[i] = before;
        }
}

enum { LARGE_BYTES = 40000, LARGE_ROWS_MAX = LARGE_BYTES / 37 + 1 };

static void reduce_rows(pl_reduce reduce, const char *x, int64_t row_bytes, int64_t n_rows,
                        int64_t n_columns, void *results)
{
    static double planes[PL_REDUCE_PLANES * LARGE_ROWS_MAX];
    pl_partials partials = {planes, n_rows};
    pl_reduce_tile tile = {.data = x,
                           .row_bytes = row_bytes,
                           .n_rows = n_rows,
                           .n_columns = n_columns,
                           .index_step = 1};
    pl_reduce_init(reduce, partials, 0, n_rows);
    pl_reduce_rows(reduce, &tile, partials, 0);
    pl_reduce_finish(reduce, partials, 0, n_rows, 1, results);
}

/* Of a tile that is so large that its lines are asked for ahead, in exactly as much memory. */
static void check_large_tile(pl_reduce reduce, int64_t n_columns)
{
    static double together[LARGE_ROWS_MAX], alone[LARGE_ROWS_MAX];
    int64_t item_bytes = pl_dtype_info_of(reduce.dtype)->item_bytes;
    int64_t row_bytes = n_columns * item_bytes, n_rows = LARGE_BYTES / row_bytes + 1;
    size_t result_bytes = pl_dtype_info_of(pl_reduce_result(reduce))->item_bytes;
    char *x = malloc((size_t)(row_bytes * n_rows));
    for (int64_t i = 0; i < n_rows * n_columns; i++)
        if (reduce.dtype == PL_F32)
            ((float *)x)[i] = (float)(i * i % 23) / 7;
        else if (reduce.dtype == PL_F64)
            ((double *)x)[i] = (double)(i * i % 23) / 7;
        else
            memset(x + i * item_bytes, (int)(i * i % 23), (size_t)item_bytes);
    reduce_rows(reduce, x, row_bytes, n_rows, n_columns, together);
    for (int64_t r = 0; r < n_rows; r++)
        reduce_rows(reduce, x + r * row_bytes, 0, 1, n_columns,
                    (char *)alone + (size_t)r * result_bytes);
    assert_memory_equal(together, alone, (size_t)n_rows * result_bytes);
    free(x);
}

static void rows_of_a_large_tile_give_what_each_gives_alone(void **state)
{
    (void)state;
    static const pl_dtype dtypes[] = {PL_U8, PL_I16, PL_I32, PL_I64, PL_F32, PL_F64};
    static const int64_t columns[] = {37, 64, 700, 2100};
    for (int op = 0; op < PL_N_REDUCE_OPS; op++)
        for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
            for (size_t n = 0; n < sizeof columns / sizeof columns[0]; n++) {
                pl_reduce reduce = {(pl_reduce_op)op, dtypes[d]};
                if (pl_reduce_result(reduce) != PL_DTYPE_NONE)
                    check_large_tile(reduce, columns[n]);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_have_numpys_dtypes),
        cmocka_unit_test(what_cannot_be_reduced_has_no_result),
        cmocka_unit_test(nothing_reduces_to_what_the_header_says),
        cmocka_unit_test(variances_take_any_number_from_the_count),
        cmocka_unit_test(a_variance_without_freedom_is_nan),
        cmocka_unit_test(rounding_errors_of_a_long_sum_are_kept),
        cmocka_unit_test(equal_elements_of_tiles_in_any_order_give_the_lowest_index),
        cmocka_unit_test(an_index_step_counts_along_what_is_reduced),
        cmocka_unit_test(rows_may_be_taken_from_the_last),
        cmocka_unit_test(outputs_that_are_not_meant_stay),
        cmocka_unit_test(unaligned_rows_and_all_lengths_are_read_as_they_are),
        cmocka_unit_test(columns_have_nothing_of_what_lies_between_rows),
        cmocka_unit_test(the_largest_is_found_wherever_it_is),
        cmocka_unit_test(rows_of_a_large_tile_give_what_each_gives_alone),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pl_isa_limit(PL_ISA_PLAIN);
    return failed + cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
