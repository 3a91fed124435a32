/* SPDX-License-Identifier: Apache-2.0 */
/* A life: all that a library does for one user, from nothing to nothing, in a sum. It is lived once
 * for each allocation in it, which fails: every time an error or the same sum, a message with an
 * error, and nothing left behind. */
#ifndef PL_TESTS_UNIT_LIVES_H
#define PL_TESTS_UNIT_LIVES_H

#include "faults.h"
#include "plimsoll/error.h"

typedef struct whole_life {
    int (*live)(uint64_t *ret_sum, pl_error *reterr);
    bool (*has_left)(void); /* more than blocks; NULL: it leaves nothing else */
    int n_errors_least;     /* fewer would say that the failures are not where they are wanted */
} whole_life;

/* Without a failure, twice: what libc and others keep for good is kept from the first time on. */
static uint64_t live_well(const whole_life *life)
{
    pl_error error = {0};
    uint64_t sums[2] = {0};
    for (int i = 0; i < 2; i++)
        if (life->live(&sums[i], &error) < 0)
            fail_msg("%s", error.message);
    assert_int_equal(sums[0], sums[1]);
    return sums[0];
}

static void live_without(const whole_life *life, int number, uint64_t expected, bool *ret_hit,
                         int *ret_r)
{
    pl_error error = {0};
    uint64_t sum = 0;
    long live_before = fault_live;
    fault_alloc_begin(number);
    *ret_r = life->live(&sum, &error);
    *ret_hit = fault_alloc_end();
    if (fault_live != live_before)
        fail_msg("%ld blocks are left after allocation %d failed: %s",
                 (long)fault_live - live_before, number, error.message);
    if (*ret_r < 0 && (!*ret_hit || error.message[0] == '\0'))
        fail_msg("allocation %d: code %d, '%s'", number, *ret_r, error.message);
    if (*ret_r == 0 && sum != expected)
        fail_msg("allocation %d failed, and the result is another", number);
    if (life->has_left && life->has_left())
        fail_msg("allocation %d failed, and something is left", number);
}

static void live_through_failures(const whole_life *life)
{
    bool hit = true;
    int n_failed = 0, number = 0, r;
    fault_need_alloc();
    uint64_t expected = live_well(life);
    while (hit && number < 100000) {
        live_without(life, ++number, expected, &hit, &r);
        n_failed += r < 0;
    }
    print_message("# %d allocations, %d errors\n", number, n_failed);
    assert_false(hit);
    assert_true(n_failed > life->n_errors_least);
}

#endif
