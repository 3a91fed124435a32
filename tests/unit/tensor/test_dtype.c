/* SPDX-License-Identifier: Apache-2.0 */
/* Dtypes have the properties of their NumPy namesakes; halves convert as IEEE 754 says, by either
 * way. What NumPy converts them to is compared in tests/cli/test_runtime_oracle.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "tensor/dtype.h"

static uint16_t half_of(float value)
{
    uint16_t fast[8], portable;
    const float eight[8] = {value, value, value, value, value, value, value, value};
    pl_f32_to_f16(eight, fast, 8);
    pl_f32_to_f16_portable(&value, &portable, 1);
    assert_int_equal(fast[0], portable);
    assert_int_equal(fast[7], portable);
    return portable;
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void the_table_says_what_each_dtype_is(void **state)
{
    (void)state;
    const pl_dtype_info *f32 = pl_dtype_info_of(PL_F32), *text = pl_dtype_info_of(PL_STRING);
    assert_string_equal(f32->name, "float32");
    assert_string_equal(f32->descr, "<f4");
    assert_int_equal(f32->item_bytes, 4);
    assert_int_equal(f32->kind, PL_KIND_FLOAT);
    assert_false(f32->is_storage);
    assert_true(pl_dtype_info_of(PL_F16)->is_storage && pl_dtype_info_of(PL_BF16)->is_storage);
    assert_int_equal(text->item_bytes, 0);
    assert_int_equal(pl_dtype_info_of(PL_BOOL)->kind, PL_KIND_BOOL);
    assert_int_equal(pl_dtype_info_of(PL_I64)->kind, PL_KIND_SIGNED);
    assert_int_equal(pl_dtype_info_of(PL_U64)->kind, PL_KIND_UNSIGNED);
}

static void a_number_that_is_no_dtype_is_none(void **state)
{
    (void)state;
    assert_string_equal(pl_dtype_info_of(PL_DTYPE_NONE)->name, "none");
    assert_ptr_equal(pl_dtype_info_of((pl_dtype)(PL_STRING + 1)), pl_dtype_info_of(PL_DTYPE_NONE));
    assert_ptr_equal(pl_dtype_info_of((pl_dtype)-1), pl_dtype_info_of(PL_DTYPE_NONE));
}

static void every_dtype_is_found_by_its_name(void **state)
{
    (void)state;
    for (int i = PL_BOOL; i <= PL_STRING; i++)
        assert_int_equal(pl_dtype_by_name(pl_dtype_info_of((pl_dtype)i)->name), i);
    assert_int_equal(pl_dtype_by_name("float"), PL_DTYPE_NONE);
    assert_int_equal(pl_dtype_by_name("none"), PL_DTYPE_NONE);
    assert_int_equal(pl_dtype_by_name(""), PL_DTYPE_NONE);
}

static void halves_round_to_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(half_of(1.0f), 0x3c00);
    assert_int_equal(half_of(-2.0f), 0xc000);
    assert_int_equal(half_of(1.0f + 0x1p-11f), 0x3c00);     /* a tie, to even */
    assert_int_equal(half_of(1.0f + 3 * 0x1p-11f), 0x3c02); /* a tie, to even */
    assert_int_equal(half_of(nextafterf(1.0f + 0x1p-11f, 2)), 0x3c01);
    assert_int_equal(half_of(65504.0f), 0x7bff);
    assert_int_equal(half_of(nextafterf(65520.0f, 0)), 0x7bff);
    assert_int_equal(half_of(65520.0f), 0x7c00);
    assert_int_equal(half_of(-1e30f), 0xfc00);
    assert_int_equal(half_of(INFINITY), 0x7c00);
}

static void small_halves_are_subnormal_and_the_smallest_zero(void **state)
{
    (void)state;
    assert_int_equal(half_of(0x1p-14f), 0x0400);
    assert_int_equal(half_of(0x1p-24f), 0x0001);
    assert_int_equal(half_of(0x1p-25f), 0x0000); /* a tie, to even */
    assert_int_equal(half_of(nextafterf(0x1p-25f, 1)), 0x0001);
    assert_int_equal(half_of(3 * 0x1p-25f), 0x0002);
    assert_int_equal(half_of(nextafterf(0x1p-14f, 0)), 0x0400);
    assert_int_equal(half_of(-0.0f), 0x8000);
    assert_int_equal(half_of(from_bits(1)), 0x0000);
}

static void a_nan_stays_one_and_becomes_quiet(void **state)
{
    (void)state;
    uint16_t half = 0x7c01, brain = 0x7f81, quiet;
    float value, signalling = from_bits(0x7f800001);
    assert_int_equal(half_of(signalling), 0x7e00);
    assert_int_equal(half_of(from_bits(0xffc02000)), 0xfe01);
    pl_f16_to_f32_portable(&half, &value, 1);
    assert_int_equal(bits_of(value), 0x7fc02000);
    pl_bf16_to_f32(&brain, &value, 1);
    assert_int_equal(bits_of(value), 0x7fc10000);
    pl_f32_to_bf16(&signalling, &quiet, 1);
    assert_int_equal(quiet, 0x7fc0);
}

static uint16_t brain_of(float value)
{
    uint16_t brain;
    pl_f32_to_bf16(&value, &brain, 1);
    return brain;
}

static void brain_floats_round_to_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(brain_of(1.0f), 0x3f80);
    assert_int_equal(brain_of(from_bits(0x3f808000)), 0x3f80); /* a tie, to even */
    assert_int_equal(brain_of(from_bits(0x3f818000)), 0x3f82); /* a tie, to even */
    assert_int_equal(brain_of(from_bits(0x3f808001)), 0x3f81);
    assert_int_equal(brain_of(from_bits(0x7f7fffff)), 0x7f80); /* FLT_MAX */
    assert_int_equal(brain_of(from_bits(0x00008001)), 0x0001);
    assert_int_equal(brain_of(-0.0f), 0x8000);
}

/* All of them, so that every tail of a vector is met as well. */
static void every_half_comes_back_and_both_ways_agree_on_it(void **state)
{
    (void)state;
    static uint16_t halves[65536], back[65536];
    static float fast[65536], portable[65536];
    for (uint32_t i = 0; i < 65536; i++)
        halves[i] = (uint16_t)i;
    for (size_t skip = 0; skip < 9; skip++) {
        size_t n = 65536 - skip;
        pl_f16_to_f32(halves + skip, fast, n);
        pl_f16_to_f32_portable(halves + skip, portable, n);
        assert_memory_equal(fast, portable, n * sizeof fast[0]);
        pl_f32_to_f16(fast, back, n);
        for (size_t i = 0; i < n; i++) {
            bool is_nan = (halves[i + skip] & 0x7fff) > 0x7c00;
            assert_int_equal(back[i], is_nan ? halves[i + skip] | 0x200 : halves[i + skip]);
        }
    }
}

static void both_ways_to_halves_agree_on_floats_of_every_exponent(void **state)
{
    (void)state;
    static float values[1 << 16];
    static uint16_t fast[1 << 16], portable[1 << 16];
    for (uint32_t high = 0; high < 1 << 9; high++) { /* sign and exponent */
        for (uint32_t i = 0; i < 1 << 16; i++)
            values[i] = from_bits(high << 23 | ((i << 7 | (i & 3)) & 0x7fffff));
        pl_f32_to_f16(values, fast, 1 << 16);
        pl_f32_to_f16_portable(values, portable, 1 << 16);
        assert_memory_equal(fast, portable, sizeof fast);
    }
}

static void bytes_are_swapped_at_any_alignment(void **state)
{
    (void)state;
    uint8_t bytes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    const uint8_t twos[] = {0, 2, 1, 4, 3, 6, 5, 8, 7};
    const uint8_t fours[] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
    const uint8_t eights[] = {0, 6, 5, 8, 7, 2, 1, 4, 3};
    pl_bytes_swap(bytes + 1, 4, 2);
    assert_memory_equal(bytes, twos, sizeof bytes);
    pl_bytes_swap(bytes + 1, 2, 4);
    assert_memory_equal(bytes, fours, sizeof bytes);
    pl_bytes_swap(bytes + 1, 1, 8);
    assert_memory_equal(bytes, eights, sizeof bytes);
    pl_bytes_swap(bytes + 1, 8, 1);
    assert_memory_equal(bytes, eights, sizeof bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_says_what_each_dtype_is),
        cmocka_unit_test(a_number_that_is_no_dtype_is_none),
        cmocka_unit_test(every_dtype_is_found_by_its_name),
        cmocka_unit_test(halves_round_to_nearest_even),
        cmocka_unit_test(small_halves_are_subnormal_and_the_smallest_zero),
        cmocka_unit_test(a_nan_stays_one_and_becomes_quiet),
        cmocka_unit_test(brain_floats_round_to_nearest_even),
        cmocka_unit_test(every_half_comes_back_and_both_ways_agree_on_it),
        cmocka_unit_test(both_ways_to_halves_agree_on_floats_of_every_exponent),
        cmocka_unit_test(bytes_are_swapped_at_any_alignment),
    };
    return cmocka_run_group_tests_name("dtype", tests, NULL, NULL);
}
