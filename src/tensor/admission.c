/* SPDX-License-Identifier: Apache-2.0 */
/* See admission.h. */
#include "tensor/admission.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"

/* Between two looks at whether the waiting run was cancelled. */
#define LOOK_NS (10 * PL_NS_PER_MS)

/* More than most runs want: beyond this the exact headroom does not matter. */
#define PLENTY_BYTES (256 * PL_MIB)

/* Measured if `wanted`, beside what is promised, is not far below it. */
static uint64_t claimable_bytes(pl_runtime *runtime, uint64_t wanted)
{
    pthread_mutex_lock(&runtime->admissions.mu);
    uint64_t promised = runtime->admissions.promised_bytes;
    pthread_mutex_unlock(&runtime->admissions.mu);
    return pl_add_sat_u64(pl_memory_headroom_for(runtime->memory, pl_add_sat_u64(wanted, promised)),
                          pl_runtime_idle_bytes(runtime));
}

static uint64_t budget_bytes(pl_admission *admission, uint64_t wanted)
{
    uint64_t most = admission->most_bytes > 0 ? admission->most_bytes : UINT64_MAX;
    pl_admissions *all = &admission->runtime->admissions;
    uint64_t alone = claimable_bytes(admission->runtime, wanted);
    pthread_mutex_lock(&all->mu);
    uint64_t beside = pl_sub_sat_u64(alone, all->promised_bytes);
    admission->n_ended = all->n_ended;
    pthread_mutex_unlock(&all->mu);
    admission->crowded = beside < pl_min_u64(alone, most);
    return pl_min_u64(beside, most);
}

uint64_t pl_admission_budget_bytes(pl_admission *admission)
{
    return budget_bytes(admission, UINT64_MAX);
}

uint64_t pl_admission_sure_bytes(pl_admission *admission)
{
    return budget_bytes(admission, PLENTY_BYTES);
}

bool pl_admission_allows(pl_admission *admission, uint64_t bytes)
{
    return bytes <= budget_bytes(admission, bytes);
}

struct timespec pl_admission_poll_at(void)
{
    uint64_t at = pl_clock_monotonic_ns() + LOOK_NS;
    return (struct timespec){(time_t)(at / PL_NS_PER_SEC), (long)(at % PL_NS_PER_SEC)};
}

/* With the lock held: waits for something to have changed, or for a while. */
static int wait_a_little(const pl_admission *admission)
{
    pl_admissions *all = &admission->runtime->admissions;
    struct timespec until = pl_admission_poll_at();
    pthread_cond_clockwait(&all->ended, &all->mu, CLOCK_MONOTONIC, &until);
    return admission->check(admission->context);
}

/* With the lock held: 1 if somebody went first, 0 if nobody had to. */
static int let_urgent_go(const pl_admission *admission)
{
    const pl_admissions *all = &admission->runtime->admissions;
    int r = 0, waited = 0;
    for (; r == 0 && all->n_urgent > 0 && !admission->urgent && admission->may_wait; waited = 1)
        r = wait_a_little(admission);
    return r < 0 ? r : waited;
}

/* Alone, a run begins whatever was claimed since it was planned: its claims decide. But one that let
 * others go first can still be planned anew, for what they have left. */
int pl_admission_begin(pl_admission *admission, uint64_t bytes)
{
    pl_admissions *all = &admission->runtime->admissions;
    bool waited = false;
    for (;;) {
        uint64_t claimable = claimable_bytes(admission->runtime, bytes);
        pthread_mutex_lock(&all->mu);
        int r = let_urgent_go(admission);
        bool begins = r == 0 && ((!waited && all->n_running == 0) ||
                                 bytes <= pl_sub_sat_u64(claimable, all->promised_bytes));
        if (begins) {
            all->n_running++;
            all->promised_bytes += bytes;
            admission->promised_bytes = bytes;
            admission->admitted = true;
        }
        pthread_mutex_unlock(&all->mu);
        if (r <= 0)
            return r < 0 ? r : begins;
        waited = true; /* what could be claimed before says nothing now */
    }
}

bool pl_admission_end(pl_admission *admission)
{
    pl_admissions *all = &admission->runtime->admissions;
    if (!admission->admitted)
        return false;
    pthread_mutex_lock(&all->mu);
    all->n_running--;
    all->n_ended++;
    all->promised_bytes -= admission->promised_bytes;
    pthread_cond_broadcast(&all->ended);
    pthread_mutex_unlock(&all->mu);
    admission->admitted = false;
    return true;
}

/* The memory of the run that has ended may be freed, but not given back yet. */
static int look_again(pl_admission *admission)
{
    admission->waited = false;
    nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    return admission->check(admission->context);
}

int pl_admission_wait(pl_admission *admission)
{
    pl_admissions *all = &admission->runtime->admissions;
    if (!admission->may_wait || (!admission->crowded && !admission->waited))
        return -EAGAIN;
    if (!admission->crowded)
        return look_again(admission);
    int r = 0;
    admission->waited = true;
    pthread_mutex_lock(&all->mu);
    all->n_urgent += !admission->urgent;
    admission->urgent = true;
    while (r == 0 && all->n_ended == admission->n_ended && all->n_running > 0)
        r = wait_a_little(admission);
    pthread_mutex_unlock(&all->mu);
    return r;
}

void pl_admission_done(pl_admission *admission)
{
    pl_admissions *all = &admission->runtime->admissions;
    if (!admission->urgent)
        return;
    pthread_mutex_lock(&all->mu);
    all->n_urgent--;
    admission->urgent = false;
    pthread_cond_broadcast(&all->ended);
    pthread_mutex_unlock(&all->mu);
}
