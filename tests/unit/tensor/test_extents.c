/* SPDX-License-Identifier: Apache-2.0 */
/* Places are handed out once, and what comes back is one piece again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "faults.h"
#include "tensor/extents.h"

enum { UNIT = 64 };

static pl_extent take(pl_extents *extents, uint64_t bytes)
{
    pl_extent extent = {0};
    assert_int_equal(pl_extents_take(extents, bytes, &extent), 0);
    return extent;
}

static void the_first_place_that_fits_is_taken(void **state)
{
    (void)state;
    pl_extents extents;
    pl_extents_init(&extents, UNIT);
    assert_int_equal(pl_extents_grow(&extents, 10 * UNIT), 0);
    pl_extent a = take(&extents, 3 * UNIT), b = take(&extents, UNIT - 1), c = take(&extents, UNIT);
    assert_int_equal(a.offset, 0);
    assert_int_equal(b.offset, 3 * UNIT);
    assert_int_equal(b.bytes, UNIT);
    assert_int_equal(c.offset, 4 * UNIT);
    pl_extents_give(&extents, a);
    assert_int_equal(take(&extents, 4 * UNIT).offset, 5 * UNIT);
    assert_int_equal(take(&extents, 2 * UNIT).offset, 0);
    assert_int_equal(take(&extents, UNIT).offset, 2 * UNIT);
    assert_int_equal(extents.free_bytes, UNIT);
    assert_int_equal(pl_extents_take(&extents, 2 * UNIT, &a), -ENOSPC);
    pl_extents_done(&extents);
}

static void neighbours_become_one_and_the_end_can_be_cut_off(void **state)
{
    (void)state;
    pl_extents extents;
    pl_extents_init(&extents, UNIT);
    assert_int_equal(pl_extents_grow(&extents, 4 * UNIT), 0);
    pl_extent e[4];
    for (int i = 0; i < 4; i++)
        e[i] = take(&extents, UNIT);
    pl_extents_give(&extents, e[0]);
    pl_extents_give(&extents, e[2]);
    assert_int_equal(extents.n_free, 2);
    assert_int_equal(pl_extents_take(&extents, 2 * UNIT, &e[0]), -ENOSPC);
    pl_extents_give(&extents, e[1]);
    assert_int_equal(extents.n_free, 1);
    assert_int_equal(pl_extents_tail_bytes(&extents), 0);
    assert_int_equal(pl_extents_grow(&extents, UNIT), 0);
    assert_int_equal(pl_extents_tail_bytes(&extents), UNIT);
    pl_extents_give(&extents, e[3]);
    assert_int_equal(pl_extents_tail_bytes(&extents), 5 * UNIT);
    pl_extents_give(&extents, take(&extents, 5 * UNIT));
    assert_int_equal(pl_extents_shrink(&extents, 2 * UNIT), 2 * UNIT);
    assert_int_equal(extents.free_bytes, 2 * UNIT);
    assert_int_equal(pl_extents_shrink(&extents, 0), 0);
    assert_int_equal(extents.n_free, 0);
    pl_extents_done(&extents);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* Against a map with one mark for each unit. */
static void no_place_is_handed_out_twice(void **state)
{
    (void)state;
    enum { N_UNITS = 512, N_HELD = 100 };
    static char taken[N_UNITS];
    pl_extent held[N_HELD] = {0};
    uint32_t seed = 7;
    uint64_t n_refused = 0;
    pl_extents extents;
    memset(taken, 0, sizeof taken);
    pl_extents_init(&extents, UNIT);
    assert_int_equal(pl_extents_grow(&extents, (uint64_t)N_UNITS * UNIT), 0);
    for (int i = 0; i < 50000; i++) {
        pl_extent *e = &held[next_random(&seed) % N_HELD];
        char mark = e->bytes ? 0 : 1;
        if (e->bytes)
            pl_extents_give(&extents, *e);
        else if (pl_extents_take(&extents, 1 + next_random(&seed) % (16 * UNIT), e) < 0)
            n_refused++;
        for (uint64_t u = e->offset / UNIT; u < (e->offset + e->bytes) / UNIT; u++) {
            assert_true(taken[u] != mark);
            taken[u] = mark;
        }
        if (!mark)
            *e = (pl_extent){0};
        uint64_t n_taken = 0;
        for (int u = 0; u < N_UNITS; u++)
            n_taken += (uint64_t)taken[u];
        assert_int_equal(extents.free_bytes, (N_UNITS - n_taken) * UNIT);
    }
    assert_true(n_refused > 0);
    for (int i = 0; i < N_HELD; i++)
        if (held[i].bytes)
            pl_extents_give(&extents, held[i]);
    assert_int_equal(extents.n_free, 1);
    assert_int_equal(extents.n_taken, 0);
    pl_extents_done(&extents);
}

static void giving_back_needs_no_memory(void **state)
{
    (void)state;
    enum { N = 100 };
    fault_need_alloc();
    pl_extents extents;
    pl_extent held[N];
    pl_extents_init(&extents, UNIT);
    assert_int_equal(pl_extents_grow(&extents, N * UNIT), 0);
    for (int i = 0; i < N; i++)
        held[i] = take(&extents, UNIT);
    for (int i = 0; i < N; i++) {
        fault_alloc_begin(1);
        pl_extents_give(&extents, held[(i * 2) % N + (i * 2) / N]);
        assert_false(fault_alloc_end());
    }
    assert_int_equal(extents.n_free, 1);
    pl_extents_done(&extents);

    fault_alloc_begin(1);
    pl_extents_init(&extents, UNIT);
    assert_int_equal(pl_extents_grow(&extents, UNIT), -ENOMEM);
    assert_true(fault_alloc_end());
    assert_int_equal(extents.end_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_place_that_fits_is_taken),
        cmocka_unit_test(neighbours_become_one_and_the_end_can_be_cut_off),
        cmocka_unit_test(no_place_is_handed_out_twice),
        cmocka_unit_test(giving_back_needs_no_memory),
    };
    return cmocka_run_group_tests_name("extents", tests, NULL, NULL);
}
