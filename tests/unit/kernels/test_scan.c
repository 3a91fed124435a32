/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums carry over from tile to tile, and in place; exp() and log() of the kernels are as
 * near as scalar_math.h says. Values are compared with NumPy's in tests/kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "kernels/elementwise/scalar_math.h"
#include "kernels/row/scan.h"

static void tiles_carry_on_where_the_last_one_ended(void **state)
{
    (void)state;
    const int32_t x[] = {1, 2, 3, 4, 5, 6, 7};
    int64_t sums[7], carry = 0;
    pl_scan scan = {.dtype = PL_I32};
    pl_scan_rows(scan, &(pl_scan_tile){x, sums, 0, 0, 1, 5}, &carry);
    assert_int_equal(carry, 15);
    pl_scan_rows(scan, &(pl_scan_tile){x + 5, sums + 5, 0, 0, 1, 2}, &carry);
    assert_int_equal(sums[4], 15);
    assert_int_equal(sums[5], 21);
    assert_int_equal(sums[6], 28);
}

static void a_reverse_exclusive_scan_begins_at_the_end_with_nothing(void **state)
{
    (void)state;
    const float x[2][3] = {{1, 2, 3}, {4, 5, 6}};
    float sums[2][3];
    double carry[3] = {0};
    pl_scan scan = {.dtype = PL_F32, .exclusive = true, .reverse = true};
    pl_scan_rows(scan, &(pl_scan_tile){x, sums, 12, 12, 2, 3}, carry);
    assert_true(sums[0][2] == 0 && sums[0][1] == 3 && sums[0][0] == 5);
    assert_true(sums[1][2] == 0 && sums[1][1] == 6 && sums[1][0] == 11);
    assert_true(carry[0] == 6 && carry[1] == 15);
}

static void a_scan_may_be_in_place(void **state)
{
    (void)state;
    for (int reverse = 0; reverse < 2; reverse++)
        for (int exclusive = 0; exclusive < 2; exclusive++) {
            double x[9], wanted[9], carry[2] = {0};
            pl_scan scan = {.dtype = PL_F64, .exclusive = exclusive, .reverse = reverse};
            for (int i = 0; i < 9; i++)
                x[i] = i + 1;
            pl_scan_rows(scan, &(pl_scan_tile){x, wanted, 0, 0, 1, 9}, &carry[0]);
            pl_scan_rows(scan, &(pl_scan_tile){x, x, 0, 0, 1, 9}, &carry[1]);
            assert_memory_equal(x, wanted, sizeof x);
        }
}

static void integers_wrap_around(void **state)
{
    (void)state;
    const int64_t x[] = {INT64_MAX, 1};
    int64_t sums[2], carry = 0;
    pl_scan_rows((pl_scan){.dtype = PL_I64}, &(pl_scan_tile){x, sums, 0, 0, 1, 2}, &carry);
    assert_true(sums[1] == INT64_MIN);
}

static double ulps_f64(double got, long double wanted)
{
    int exponent;
    (void)frexpl(wanted, &exponent);
    return (double)(fabsl((long double)got - wanted) / ldexpl(1, exponent - 53));
}

static double ulps_f32(float got, double wanted)
{
    int exponent;
    (void)frexp(wanted, &exponent);
    return fabs((double)got - wanted) / ldexp(1, exponent - 24);
}

static void exponentials_and_logarithms_are_within_an_ulp_or_two(void **state)
{
    (void)state;
    double exp_32 = 0, exp_64 = 0, log_32 = 0, log_64 = 0;
    for (int i = 1; i < 200000; i++) {
        float x = -87.0f * (float)i / 200000;
        double y = -708.0 * i / 200000, z = exp(-y / 20 - 17) * (1 + i * 1e-6);
        exp_32 = fmax(exp_32, ulps_f32(exp_f32(x), exp((double)x)));
        exp_64 = fmax(exp_64, ulps_f64(exp_f64(y), expl(y)));
        log_32 = fmax(log_32, ulps_f32(log_f32((float)z), log((double)(float)z)));
        log_64 = fmax(log_64, ulps_f64(log_f64(z), logl(z)));
    }
    print_message("# ulps: exp %.2f %.2f, log %.2f %.2f\n", exp_32, exp_64, log_32, log_64);
    assert_true(exp_32 < 2 && exp_64 < 2 && log_32 < 2 && log_64 < 2);
}

static void the_ends_of_the_exponential_are_right(void **state)
{
    (void)state;
    assert_true(exp_f32(0) == 1 && exp_f64(0) == 1);
    assert_true(exp_f32(-INFINITY) == 0 && exp_f64(-INFINITY) == 0);
    assert_true(exp_f32(-1000) == 0 && exp_f64(-1000) == 0);
    assert_true(isnan(exp_f32(NAN)) && isnan(exp_f64(NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_carry_on_where_the_last_one_ended),
        cmocka_unit_test(a_reverse_exclusive_scan_begins_at_the_end_with_nothing),
        cmocka_unit_test(a_scan_may_be_in_place),
        cmocka_unit_test(integers_wrap_around),
        cmocka_unit_test(exponentials_and_logarithms_are_within_an_ulp_or_two),
        cmocka_unit_test(the_ends_of_the_exponential_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
