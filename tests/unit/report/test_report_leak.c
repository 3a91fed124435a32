/* SPDX-License-Identifier: Apache-2.0 */
/* What is a leak, and what only looks like one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "report/leak.h"

enum { N = 100 };

static const uint64_t limit_bytes = 1000 * PL_MIB;

/* 10 s, ten points a second, from 100 MiB in a straight line to `top_mib`. */
static void make_rise(pl_leak_point points[N], uint64_t top_mib)
{
    for (int i = 0; i < N; i++)
        points[i] = (pl_leak_point){
            .time_s = i * 0.1,
            .bytes = (100 + (top_mib - 100) * (uint64_t)i / (N - 1)) * PL_MIB,
        };
}

static void a_straight_rise_to_the_line_is_a_leak(void **state)
{
    (void)state;
    pl_leak_point points[N];
    make_rise(points, 990);
    pl_leak leak = pl_leak_find(points, N, limit_bytes);
    assert_true(leak.found);
    assert_in_range((uint64_t)leak.bytes_per_s, 85 * PL_MIB, 95 * PL_MIB);
    assert_in_range(leak.from_bytes, 100 * PL_MIB, 150 * PL_MIB);
    assert_in_range(leak.to_bytes, 960 * PL_MIB, 990 * PL_MIB);
}

static void a_flat_start_and_a_stay_at_the_line_do_not_hide_it(void **state)
{
    (void)state;
    pl_leak_point points[3 * N];
    make_rise(points + N, 990);
    for (int i = 0; i < N; i++) {
        points[i] = (pl_leak_point){.time_s = -10 + i * 0.1, .bytes = 100 * PL_MIB};
        points[2 * N + i] = (pl_leak_point){.time_s = 10 + i * 0.1, .bytes = 990 * PL_MIB};
    }
    pl_leak leak = pl_leak_find(points, 3 * N, limit_bytes);
    assert_true(leak.found);
    assert_in_range((uint64_t)leak.bytes_per_s, 80 * PL_MIB, 95 * PL_MIB);
}

static void garbage_collections_on_the_way_are_allowed(void **state)
{
    (void)state;
    pl_leak_point points[N];
    make_rise(points, 990);
    for (int i = 10; i < N - 10; i += 10)
        points[i].bytes -= 40 * PL_MIB;
    assert_true(pl_leak_find(points, N, limit_bytes).found);
}

static void a_rise_that_stays_below_the_line_is_none(void **state)
{
    (void)state;
    pl_leak_point points[N];
    make_rise(points, 850);
    assert_false(pl_leak_find(points, N, limit_bytes).found);
}

/* Nearly half of the rise in one step; a straight line would still explain it well enough. */
static void one_large_allocation_is_none(void **state)
{
    (void)state;
    pl_leak_point points[N];
    make_rise(points, 990);
    for (int i = 0; i < N; i++)
        points[i].bytes = points[i].bytes * 58 / 100 + (i < N / 2 ? 42 : 416) * PL_MIB;
    assert_false(pl_leak_find(points, N, limit_bytes).found);
}

/* One dip of a fifth of the rise; a straight line would still explain it well enough. */
static void work_that_comes_and_goes_is_none(void **state)
{
    (void)state;
    pl_leak_point points[N];
    make_rise(points, 990);
    points[50].bytes -= 180 * PL_MIB;
    assert_false(pl_leak_find(points, N, limit_bytes).found);
}

/* Doubles every second: no jump, no drop, and no straight line either. */
static void a_curve_is_none(void **state)
{
    (void)state;
    pl_leak_point points[N];
    make_rise(points, 990);
    for (int i = 0; i < N; i++)
        points[i].bytes = (uint64_t)(990.0 * (double)PL_MIB * exp2(points[i].time_s - 9.9));
    assert_false(pl_leak_find(points, N, limit_bytes).found);
}

static void a_small_rise_near_the_line_is_none(void **state)
{
    (void)state;
    pl_leak_point points[N];
    make_rise(points, 990);
    for (int i = 0; i < N; i++)
        points[i].bytes = 800 * PL_MIB + points[i].bytes / 5;
    assert_false(pl_leak_find(points, N, limit_bytes).found);
}

static void few_points_or_little_time_prove_nothing(void **state)
{
    (void)state;
    pl_leak_point points[N];
    make_rise(points, 990);
    for (int i = 0; i < N; i++)
        points[i].time_s /= 11; /* all within 0.9 s */
    assert_false(pl_leak_find(points, N, limit_bytes).found);

    pl_leak_point nine[9];
    make_rise(points, 990);
    for (int i = 0; i < 9; i++)
        nine[i] = points[i * 12];
    assert_false(pl_leak_find(nine, 9, limit_bytes).found);
}

static void extreme_points_are_survived(void **state)
{
    (void)state;
    assert_false(pl_leak_find(NULL, 0, limit_bytes).found);
    pl_leak_point points[N] = {0};
    assert_false(pl_leak_find(points, N, limit_bytes).found);
    assert_false(pl_leak_find(points, N, 0).found);
    for (int i = 0; i < N; i++)
        points[i] = (pl_leak_point){.time_s = i * 1e18, .bytes = UINT64_MAX / N * (uint64_t)i};
    assert_true(pl_leak_find(points, N, limit_bytes).bytes_per_s >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_straight_rise_to_the_line_is_a_leak),
        cmocka_unit_test(a_flat_start_and_a_stay_at_the_line_do_not_hide_it),
        cmocka_unit_test(garbage_collections_on_the_way_are_allowed),
        cmocka_unit_test(a_rise_that_stays_below_the_line_is_none),
        cmocka_unit_test(one_large_allocation_is_none),
        cmocka_unit_test(work_that_comes_and_goes_is_none),
        cmocka_unit_test(a_curve_is_none),
        cmocka_unit_test(a_small_rise_near_the_line_is_none),
        cmocka_unit_test(few_points_or_little_time_prove_nothing),
        cmocka_unit_test(extreme_points_are_survived),
    };
    return cmocka_run_group_tests_name("leak", tests, NULL, NULL);
}
