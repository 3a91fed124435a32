/* SPDX-License-Identifier: Apache-2.0 */
/* Filters are undone by vectors as by plain loops, and nothing outside of the rows is touched. What
 * pictures should look like is tests/kernels/test_images.py's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "codec/image/png_filter.h"

enum { FILTERS = 5 };

/* Mostly any number; often those at the ends, where sums wrap. */
static uint8_t sample(void)
{
    static const uint8_t ends[] = {0, 1, 127, 128, 254, 255};
    long chance = random();
    return chance % 3 == 0 ? ends[chance / 3 % 6] : (uint8_t)(chance >> 8);
}

/* In blocks of their own, so that a sanitizer sees the first byte behind them. */
static void compare(uint32_t height, size_t width, size_t pixel_bytes)
{
    const pl_png_rows rows = {height, width * pixel_bytes, pixel_bytes};
    size_t n_filtered = height * (rows.row_bytes + 1), n = height * rows.row_bytes;
    uint8_t *filtered = malloc(n_filtered), *fast = malloc(n), *plain = malloc(n);
    for (size_t i = 0; i < n_filtered; i++)
        filtered[i] = sample();
    for (uint32_t y = 0; y < height; y++)
        filtered[y * (rows.row_bytes + 1)] = (uint8_t)(random() % FILTERS);
    assert_int_equal(pl_png_unfilter(&rows, filtered, fast), -1);
    assert_int_equal(pl_png_unfilter_plainly(&rows, filtered, plain), -1);
    assert_memory_equal(fast, plain, n);
    free(filtered);
    free(fast);
    free(plain);
}

static void vectors_and_plain_loops_give_the_same(void **state)
{
    (void)state;
    srandom(11);
    for (size_t pixel_bytes = 1; pixel_bytes <= 8; pixel_bytes++)
        for (size_t width = 1; width <= 40; width++)
            compare(1 + (uint32_t)(random() % 12), width, pixel_bytes);
    compare(60, 2000, 3);
    compare(60, 2000, 4);
}

/* Row by row: a picture of 2 x 2 pixels, each of one sample. */
static void filters_take_off_what_they_should(void **state)
{
    (void)state;
    static const struct {
        uint8_t filter, second[2];
    } cases[] = {{0, {7, 9}}, {1, {7, 16}}, {2, {17, 209}}, {3, {12, 115}}, {4, {17, 209}}};
    const pl_png_rows rows = {2, 2, 1};
    for (size_t i = 0; i < PL_COUNT_OF(cases); i++) {
        const uint8_t filtered[] = {0, 10, 200, cases[i].filter, 7, 9};
        uint8_t pixels[4];
        assert_int_equal(pl_png_unfilter(&rows, filtered, pixels), -1);
        assert_int_equal(pixels[0], 10);
        assert_int_equal(pixels[1], 200);
        assert_int_equal(pixels[2], cases[i].second[0]);
        assert_int_equal(pixels[3], cases[i].second[1]);
    }
}

static void a_filter_that_there_is_not_is_told_by_its_row(void **state)
{
    (void)state;
    const pl_png_rows rows = {3, 3, 3};
    const uint8_t filtered[] = {0, 1, 2, 3, 2, 1, 1, 1, FILTERS, 0, 0, 0};
    uint8_t pixels[9] = {0};
    assert_int_equal(pl_png_unfilter(&rows, filtered, pixels), 2);
    assert_int_equal(pixels[5], 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_and_plain_loops_give_the_same),
        cmocka_unit_test(filters_take_off_what_they_should),
        cmocka_unit_test(a_filter_that_there_is_not_is_told_by_its_row),
    };
    return cmocka_run_group_tests_name("png_filter", tests, NULL, NULL);
}
