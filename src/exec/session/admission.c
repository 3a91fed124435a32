/* SPDX-License-Identifier: Apache-2.0 */
/* See admission.h. */
#include "exec/session/admission.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"

/* Between two looks at whether the waiting run was cancelled. */
#define LOOK_NS (10 * PL_NS_PER_MS)

/* More than most want: who is told of so much, or more, need not know of all. */
#define MUCH_BYTES (256 * PL_MIB)

/* Measured if `wanted`, beside what is promised, is not far below it. */
static uint64_t claimable_bytes(pl_runtime *runtime, uint64_t wanted)
{
    pthread_mutex_lock(&runtime->turns.mu);
    uint64_t promised = runtime->turns.promised_bytes;
    pthread_mutex_unlock(&runtime->turns.mu);
    return pl_add_sat_u64(pl_memory_headroom_for(runtime->memory, pl_add_sat_u64(wanted, promised)),
                          pl_runtime_idle_bytes(runtime));
}

static uint64_t budget_bytes(pl_turn *turn, uint64_t wanted, uint64_t most)
{
    pl_turns *turns = &turn->runtime->turns;
    uint64_t alone = claimable_bytes(turn->runtime, wanted);
    pthread_mutex_lock(&turns->mu);
    uint64_t beside = pl_sub_sat_u64(alone, turns->promised_bytes);
    turn->n_ended = turns->n_ended;
    pthread_mutex_unlock(&turns->mu);
    turn->crowded = beside < pl_min_u64(alone, most);
    return pl_min_u64(beside, most);
}

uint64_t pl_turn_budget_bytes(pl_turn *turn, uint64_t most)
{
    return budget_bytes(turn, UINT64_MAX, most);
}

uint64_t pl_turn_sure_bytes(pl_turn *turn, uint64_t most)
{
    return budget_bytes(turn, MUCH_BYTES, most);
}

bool pl_turn_allows(pl_turn *turn, uint64_t bytes, uint64_t most)
{
    return bytes <= budget_bytes(turn, bytes, most);
}

struct timespec pl_turn_look_at(void)
{
    uint64_t at = pl_clock_monotonic_ns() + LOOK_NS;
    return (struct timespec){(time_t)(at / PL_NS_PER_SEC), (long)(at % PL_NS_PER_SEC)};
}

/* With the lock held: waits for something to have changed, or for a while. */
static int wait_a_little(const pl_turn *turn)
{
    pl_turns *turns = &turn->runtime->turns;
    struct timespec until = pl_turn_look_at();
    pthread_cond_clockwait(&turns->ended, &turns->mu, CLOCK_MONOTONIC, &until);
    return turn->check(turn->context);
}

/* With the lock held: 1 if somebody went first, 0 if nobody had to. */
static int let_urgent_go(const pl_turn *turn)
{
    const pl_turns *turns = &turn->runtime->turns;
    int r = 0, waited = 0;
    for (; r == 0 && turns->n_urgent > 0 && !turn->urgent && turn->may_wait; waited = 1)
        r = wait_a_little(turn);
    return r < 0 ? r : waited;
}

/* Alone, a run is begun whatever was claimed since it was planned: claiming is what decides. But
 * who let others go first can still be planned anew, for what they have left. */
int pl_turn_begin(pl_turn *turn, uint64_t bytes)
{
    pl_turns *turns = &turn->runtime->turns;
    bool waited = false;
    for (;;) {
        uint64_t claimable = claimable_bytes(turn->runtime, bytes);
        pthread_mutex_lock(&turns->mu);
        int r = let_urgent_go(turn);
        bool begins = r == 0 && ((!waited && turns->n_running == 0) ||
                                 bytes <= pl_sub_sat_u64(claimable, turns->promised_bytes));
        if (begins) {
            turns->n_running++;
            turns->promised_bytes += bytes;
        }
        pthread_mutex_unlock(&turns->mu);
        if (r <= 0)
            return r < 0 ? r : begins;
        waited = true; /* what could be claimed before says nothing now */
    }
}

void pl_turn_end(pl_turn *turn, uint64_t bytes)
{
    pl_turns *turns = &turn->runtime->turns;
    pthread_mutex_lock(&turns->mu);
    turns->n_running--;
    turns->n_ended++;
    turns->promised_bytes -= bytes;
    pthread_cond_broadcast(&turns->ended);
    pthread_mutex_unlock(&turns->mu);
}

/* What the run that it waited for has left may be on its way out: freed, but not given back. */
static int look_again(pl_turn *turn)
{
    turn->waited = false;
    nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    return turn->check(turn->context);
}

int pl_turn_wait(pl_turn *turn)
{
    pl_turns *turns = &turn->runtime->turns;
    if (!turn->may_wait || (!turn->crowded && !turn->waited))
        return -EAGAIN;
    if (!turn->crowded)
        return look_again(turn);
    int r = 0;
    turn->waited = true;
    pthread_mutex_lock(&turns->mu);
    turns->n_urgent += !turn->urgent;
    turn->urgent = true;
    while (r == 0 && turns->n_ended == turn->n_ended && turns->n_running > 0)
        r = wait_a_little(turn);
    pthread_mutex_unlock(&turns->mu);
    return r;
}

void pl_turn_done(pl_turn *turn)
{
    pl_turns *turns = &turn->runtime->turns;
    if (!turn->urgent)
        return;
    pthread_mutex_lock(&turns->mu);
    turns->n_urgent--;
    turn->urgent = false;
    pthread_cond_broadcast(&turns->ended);
    pthread_mutex_unlock(&turns->mu);
}
