/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing gives the same bits with every instruction set, and stays inside of its rows. What it
 * should give is tests/kernels/test_data.py's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/isa_table.h"
#include "kernels/move/resize.h"

static void fill(uint8_t *row, pl_dtype dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (dtype == PL_U8)
            row[i] = (uint8_t)random();
        else
            ((float *)row)[i] = (float)random() / 1000;
}

/* From blocks of their own, so that a sanitizer sees the first byte behind a row. */
static void compare(pl_dtype dtype, int64_t n_in, int64_t n_out, int64_t n_channels)
{
    size_t item_bytes = dtype == PL_U8 ? 1 : 4, n = (size_t)(n_out * n_channels);
    uint8_t *row = malloc((size_t)(n_in * n_channels) * item_bytes);
    float *rows[2];
    pl_resize_tap *taps = calloc((size_t)n_out, sizeof *taps);
    fill(row, dtype, n_in * n_channels);
    pl_resize_taps(n_in, n_out, taps);
    for (int i = 0; i < 2; i++) {
        rows[i] = malloc((n + PL_RESIZE_EXTRA) * sizeof(float));
        pl_isa_limit(i == 0 ? PL_ISA_PLAIN : PL_ISA_AVX2);
        pl_resize_row(dtype, row, n_in, n_channels, taps, n_out, rows[i]);
    }
    assert_memory_equal(rows[0], rows[1], n * sizeof(float));
    for (int64_t x = 0; x < n_out; x++) {
        assert_in_range(taps[x].lower, 0, n_in - 1);
        assert_in_range(taps[x].upper, taps[x].lower, n_in - 1);
    }
    free(row);
    free(rows[0]);
    free(rows[1]);
    free(taps);
}

/* What picks give is what rows give, of all instruction sets that have them; and nothing is written
 * behind the room that there is to be. */
static void compare_picks(int64_t n_in, int64_t n_out, int64_t n_channels, bool fits)
{
    size_t n = (size_t)(n_out * n_channels);
    uint8_t *row = malloc((size_t)(n_in * n_channels));
    uint64_t table_bytes = pl_resize_picks_bytes(n_out, n_channels);
    void *table = aligned_alloc(64, table_bytes);
    float *wanted = malloc((n + PL_RESIZE_EXTRA) * sizeof(float));
    float *made = malloc((n + PL_RESIZE_EXTRA) * sizeof(float));
    pl_resize_tap *taps = calloc((size_t)n_out, sizeof *taps);
    assert_true(table_bytes > 0);
    fill(row, PL_U8, n_in * n_channels);
    pl_resize_taps(n_in, n_out, taps);
    pl_isa_limit(PL_ISA_PLAIN);
    pl_resize_picks picks;
    assert_false(pl_resize_picks_set(&picks, taps, n_in, n_channels, n_out, table));
    pl_resize_row(PL_U8, row, n_in, n_channels, taps, n_out, wanted);
    for (int isa = PL_ISA_AVX2; isa <= (int)pl_isa_best(); isa++) {
        pl_isa_limit((pl_isa)isa);
        bool is_set = pl_resize_picks_set(&picks, taps, n_in, n_channels, n_out, table);
        if (fits)
            assert_true(is_set);
        if (!is_set)
            continue;
        memset(made, 0xff, n * sizeof(float));
        pl_resize_picked_row(&picks, row, made);
        assert_memory_equal(made, wanted, n * sizeof(float));
    }
    pl_isa_limit(pl_isa_best());
    free(row);
    free(table);
    free(wanted);
    free(made);
    free(taps);
}

static void picks_give_the_same_bits(void **state)
{
    (void)state;
    srandom(6);
    for (int64_t n_channels = 1; n_channels <= 5; n_channels++)
        for (int64_t n_in = 1; n_in <= 70; n_in++)
            for (int64_t n_out = 1; n_out <= 90; n_out += n_out < 20 ? 1 : 7)
                compare_picks(n_in, n_out, n_channels, false);
    compare_picks(500, 256, 3, true);
    compare_picks(500, 256, 1, true);
    compare_picks(500, 256, 4, true);
    compare_picks(224, 1365, 3, true);
    compare_picks(900, 229, 3, true);
    compare_picks(5000, 77, 3, false);
}

static void picks_are_for_rows_that_stay_in_the_cache(void **state)
{
    (void)state;
    assert_int_equal(pl_resize_picks_bytes(256, 3), 48 * PL_RESIZE_PICK_BYTES);
    assert_int_equal(pl_resize_picks_bytes(1, 1), PL_RESIZE_PICK_BYTES);
    assert_int_equal(pl_resize_picks_bytes(0, 3), 0);
    assert_int_equal(pl_resize_picks_bytes(4097, 1), 0);
    assert_int_equal(pl_resize_picks_bytes(INT64_MAX, 3), 0);
}

/* The same antialiased: spans added up place by place, as resize.h has it, is what both give. */
static void compare_spans(pl_dtype dtype, int64_t n_in, int64_t n_out, int64_t n_channels)
{
    size_t item_bytes = dtype == PL_U8 ? 1 : 4, n = (size_t)(n_out * n_channels);
    int64_t places = pl_resize_span_places(n_in, n_out);
    uint8_t *row = malloc((size_t)(n_in * n_channels) * item_bytes);
    float *weights = malloc((size_t)(n_out * places) * sizeof(float));
    float *made = malloc((n + PL_RESIZE_EXTRA) * sizeof(float));
    pl_resize_span *spans = calloc((size_t)n_out, sizeof *spans);
    fill(row, dtype, n_in * n_channels);
    pl_resize_spans(n_in, n_out, spans, weights);
    for (int isa = 0; isa < 2; isa++) {
        pl_isa_limit(isa == 0 ? PL_ISA_PLAIN : PL_ISA_AVX2);
        pl_resize_span_row(dtype, row, n_in, n_channels, spans, weights, places, n_out, made);
        for (int64_t i = 0; i < (int64_t)n; i++) {
            const pl_resize_span *span = &spans[i / n_channels];
            float wanted = 0;
            for (int64_t k = 0; k < span->n; k++) {
                int64_t at = (span->begin + k) * n_channels + i % n_channels;
                float value = dtype == PL_U8 ? (float)row[at] : ((float *)row)[at];
                float part = value * weights[i / n_channels * places + k];
                wanted += part;
            }
            assert_memory_equal(&made[i], &wanted, sizeof wanted);
        }
    }
    free(row);
    free(weights);
    free(made);
    free(spans);
}

static void spans_are_added_up_place_by_place(void **state)
{
    (void)state;
    srandom(4);
    for (int64_t n_channels = 1; n_channels <= 5; n_channels++)
        for (int64_t n_in = 1; n_in <= 40; n_in += 2)
            for (int64_t n_out = 1; n_out <= 24; n_out += 3) {
                compare_spans(PL_U8, n_in, n_out, n_channels);
                compare_spans(PL_F32, n_in, n_out, n_channels);
            }
    compare_spans(PL_U8, 500, 256, 3);
    compare_spans(PL_U8, 1000, 91, 3);
    compare_spans(PL_U8, 1000, 91, 4);
}

static void rows_are_added_up_one_after_the_other(void **state)
{
    (void)state;
    enum { ROWS = 6, N = 77 };
    static float rows[ROWS][N];
    const float *at[ROWS];
    float weights[ROWS], made[N];
    srandom(5);
    for (int k = 0; k < ROWS; k++) {
        at[k] = rows[k];
        weights[k] = (float)random() / 1e6f;
        fill((uint8_t *)rows[k], PL_F32, N);
    }
    for (int isa = 0; isa < 2; isa++) {
        pl_isa_limit(isa == 0 ? PL_ISA_PLAIN : PL_ISA_AVX2);
        pl_resize_sum(at, weights, 2, true, made, N);
        pl_resize_sum(at + 2, weights + 2, ROWS - 2, false, made, N);
        for (int i = 0; i < N; i++) {
            float wanted = rows[0][i] * weights[0];
            for (int k = 1; k < ROWS; k++) {
                float part = rows[k][i] * weights[k];
                wanted += part;
            }
            assert_memory_equal(&made[i], &wanted, sizeof wanted);
        }
    }
}

static void all_instruction_sets_give_the_same_bits(void **state)
{
    (void)state;
    srandom(3);
    for (int64_t n_channels = 1; n_channels <= 5; n_channels++)
        for (int64_t n_in = 1; n_in <= 24; n_in++)
            for (int64_t n_out = 1; n_out <= 40; n_out += 3) {
                compare(PL_U8, n_in, n_out, n_channels);
                compare(PL_F32, n_in, n_out, n_channels);
            }
    compare(PL_U8, 5000, 771, 3);
    compare(PL_U8, 771, 5000, 4);
}

static void the_nearest_pixel_is_always_one(void **state)
{
    (void)state;
    for (int64_t n_in = 1; n_in < 60; n_in++)
        for (int64_t n_out = 1; n_out < 60; n_out++)
            for (int64_t at = 0; at < n_out; at++)
                assert_in_range(pl_resize_nearest(n_in, n_out, at), 0, n_in - 1);
    /* Where f32 cannot tell neighbours apart. */
    int64_t many = INT64_C(1) << 40;
    assert_in_range(pl_resize_nearest(many, many, many - 1), many - (1 << 20), many - 1);
    assert_int_equal(pl_resize_nearest(4, 2, 1), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_instruction_sets_give_the_same_bits),
        cmocka_unit_test(picks_give_the_same_bits),
        cmocka_unit_test(picks_are_for_rows_that_stay_in_the_cache),
        cmocka_unit_test(spans_are_added_up_place_by_place),
        cmocka_unit_test(rows_are_added_up_one_after_the_other),
        cmocka_unit_test(the_nearest_pixel_is_always_one),
    };
    return cmocka_run_group_tests_name("resize", tests, NULL, NULL);
}
