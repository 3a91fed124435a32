/* SPDX-License-Identifier: Apache-2.0 */
/* What a stage has done. Counted by whoever pulls it, read by any thread: relaxed atomics. */
#ifndef PL_DATA_PROFILE_H
#define PL_DATA_PROFILE_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct pl_profile {
    _Atomic uint64_t n_elements;
    _Atomic uint64_t bytes;
    _Atomic uint64_t inside_ns;  /* in next(), with what it pulled from its inputs */
    _Atomic uint64_t busy_ns;    /* in calls of its function, by all threads together */
    _Atomic uint64_t waiting_ns; /* for what was being made ahead */
    _Atomic int64_t n_ahead;     /* elements that are ready now */
    _Atomic int64_t n_parallel;  /* calls that it would make at once */
    _Atomic int n_inside;        /* threads that are in a call of its function */
} pl_profile;

#endif
