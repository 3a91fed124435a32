/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of a stage. The thread that pulls it counts, and any thread may read: relaxed atomics.
 *   sampled  reading the clock twice costs more than an empty stage. Only about one in 16 quick
 *            calls is timed, at random, and stands for those since the last one; every slow call is
 *            timed */
#ifndef PL_DATA_CORE_PROFILE_H
#define PL_DATA_CORE_PROFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct pl_profile {
    _Atomic uint64_t n_elements;
    _Atomic uint64_t n_bad; /* skipped here */
    _Atomic uint64_t bytes;
    _Atomic uint64_t inside_ns;  /* in next(), with what it pulled from its inputs */
    _Atomic uint64_t busy_ns;    /* in calls of its function, by all threads together */
    _Atomic uint64_t waiting_ns; /* for elements that were being made ahead */
    _Atomic int64_t n_ahead;     /* elements that are ready now */
    _Atomic int64_t n_parallel;  /* calls that it would make at once */
    _Atomic uint64_t n_held;     /* how often there was no room for another element ahead */
    _Atomic int n_inside;        /* threads that are in a call of its function */
    _Atomic int entered;         /* a thread is in its next() */
} pl_profile;

/* Belongs to the thread that pulls. */
typedef struct pl_sampled_clock {
    uint32_t n_since, gap; /* calls since one was timed; and until the next one is */
    uint64_t random;
} pl_sampled_clock;

/* Only one thread counts, so this needs no locked instruction. */
static inline void pl_profile_add(_Atomic uint64_t *counter, uint64_t n)
{
    uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, before + n, memory_order_relaxed);
}

static inline bool pl_clock_is_due(pl_sampled_clock *clock)
{
    return ++clock->n_since >= clock->gap;
}

/* Call after a timed call, which took `took_ns`: estimates the time of all calls since the last
 * one. */
static inline uint64_t pl_clock_sampled(pl_sampled_clock *clock, uint64_t took_ns)
{
    enum { SLOW_NS = 5000, GAP_BITS = 5 };
    uint64_t all_ns = took_ns * clock->n_since;
    clock->random = clock->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    clock->gap = took_ns >= SLOW_NS ? 1 : 1 + (uint32_t)(clock->random >> (64 - GAP_BITS));
    clock->n_since = 0;
    return all_ns;
}

#endif
