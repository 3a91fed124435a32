/* SPDX-License-Identifier: Apache-2.0 */
/* What is filled, numbered, set hot and gathered, at all sizes. NumPy is compared with in
 * tests/kernels/test_sorting.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/move/gather.h"

static void every_element_is_filled_and_no_byte_more(void **state)
{
    (void)state;
    const char value[] = "abcdefghijklmnopqrstuvwxyz";
    for (size_t item_bytes = 1; item_bytes < sizeof value; item_bytes++)
        for (int64_t n = 0; n < 700; n = n * 2 + 1) {
            size_t bytes = (size_t)n * item_bytes;
            char *out = malloc(bytes + 1);
            out[bytes] = '!';
            pl_fill(out, n, value, item_bytes);
            for (size_t i = 0; i < bytes; i++)
                assert_int_equal(out[i], value[i % item_bytes]);
            assert_int_equal(out[bytes], '!');
            free(out);
        }
}

static void elements_larger_than_the_step_are_filled(void **state)
{
    (void)state;
    static char value[5000], out[3][5000];
    memset(value, 7, sizeof value);
    pl_fill(out, 3, value, sizeof value);
    assert_memory_equal(out[2], value, sizeof value);
}

static void integers_of_a_range_wrap_around(void **state)
{
    (void)state;
    uint8_t start = 250, step = 3, out[4];
    pl_range(PL_U8, &start, &step, 0, 4, out);
    assert_int_equal(out[1], 253);
    assert_int_equal(out[2], 0);
    int64_t low = INT64_MAX, by = 1, wide[2];
    pl_range(PL_I64, &low, &by, 0, 2, wide);
    assert_true(wide[1] == INT64_MIN);
}

static void one_of_the_classes_is_hot(void **state)
{
    (void)state;
    const int32_t indices[] = {2, 0, -1, 5};
    const float on = 1, off = -1;
    float out[4][3];
    pl_one_hot(PL_I32, indices, 4, 0, 3, &on, &off, sizeof on, out);
    const float wanted[4][3] = {{-1, -1, 1}, {1, -1, -1}, {-1, -1, -1}, {-1, -1, -1}};
    assert_memory_equal(out, wanted, sizeof out);
    pl_one_hot(PL_I32, indices, 4, 4, 2, &on, &off, sizeof on, out);
    assert_true(out[0][0] == -1 && ((float *)out)[7] == 1);
}

static void an_unsigned_index_beyond_all_is_out_of_range(void **state)
{
    (void)state;
    const uint64_t indices[] = {1, UINT64_MAX};
    int64_t map[2];
    assert_int_equal(pl_gather_map(PL_U64, indices, 2, 5, map), 1);
    assert_int_equal(pl_gather_map(PL_U64, indices, 1, 5, map), -1);
    assert_int_equal(map[0], 1);
}

static void nothing_can_be_gathered_from_nothing(void **state)
{
    (void)state;
    const int64_t index = 0;
    int64_t map;
    assert_int_equal(pl_gather_map(PL_I64, &index, 1, 0, &map), 0);
    assert_int_equal(pl_gather_map(PL_I64, &index, 0, 0, &map), -1);
}

static void a_part_of_the_rows_is_enough(void **state)
{
    (void)state;
    const int16_t rows[][2] = {{50, 51}, {60, 61}};
    const int64_t map[] = {6, 5, 6};
    int16_t out[3][3] = {{0}};
    pl_gather_rows(out, sizeof out[0], rows, sizeof rows[0], sizeof rows[0], map, 3, 5);
    const int16_t wanted[3][3] = {{60, 61, 0}, {50, 51, 0}, {60, 61, 0}};
    assert_memory_equal(out, wanted, sizeof out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_is_filled_and_no_byte_more),
        cmocka_unit_test(elements_larger_than_the_step_are_filled),
        cmocka_unit_test(integers_of_a_range_wrap_around),
        cmocka_unit_test(one_of_the_classes_is_hot),
        cmocka_unit_test(an_unsigned_index_beyond_all_is_out_of_range),
        cmocka_unit_test(nothing_can_be_gathered_from_nothing),
        cmocka_unit_test(a_part_of_the_rows_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
