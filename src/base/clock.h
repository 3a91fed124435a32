/* SPDX-License-Identifier: Apache-2.0 */
/* Time as nanoseconds. Async-signal-safe. */
#ifndef PL_BASE_CLOCK_H
#define PL_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t pl_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline uint64_t pl_clock_monotonic_ns(void)
{
    return pl_clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t pl_clock_realtime_ns(void)
{
    return pl_clock_ns(CLOCK_REALTIME);
}

/* The CPU time of this thread, without the time that it waited for a core. */
static inline uint64_t pl_clock_thread_ns(void)
{
    return pl_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

#endif
