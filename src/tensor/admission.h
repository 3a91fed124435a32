/* SPDX-License-Identifier: Apache-2.0 */
/* Runs side by side in one runtime: each may count on the memory that its plan says it claims.
 *   promised  the sum of the peaks of all runs under way
 *   budget    of a new run: what could be claimed now, less what is promised. What others have
 *             claimed already counts twice: runs wait rather than fail
 *   urgent    a run that has waited: no other begins before it
 *
 * A run that does not fit beside the others waits until one of them has ended, and is planned anew.
 * Every wait ends: a run under way waits for no other run, and for a device only until the step
 * there has ended (device/room.h).
 *
 * A pl_admission belongs to the thread of its run; pl_admissions is the runtime's, behind its lock. */
#ifndef PL_TENSOR_ADMISSION_H
#define PL_TENSOR_ADMISSION_H

#include <time.h>

#include "plimsoll/tensor.h"
#include "tensor/runtime.h"

/* One run that wants to begin. */
typedef struct pl_admission {
    pl_runtime *runtime;
    int (*check)(const void *context); /* called now and then in a wait: negative ends it */
    const void *context;
    uint64_t most_bytes; /* the run's own budget; 0: none */
    bool may_wait;
    bool urgent;
    bool waited;      /* for others, and has not looked twice since */
    bool crowded;     /* the budget would have been larger without other runs */
    bool admitted;    /* between begin and end */
    uint64_t n_ended; /* runs, when the budget was read */
    uint64_t promised_bytes;
} pl_admission;

/* When a waiting run should next look whether it was cancelled; CLOCK_MONOTONIC. */
struct timespec pl_admission_poll_at(void);

/* The memory that a new run can count on. */
uint64_t pl_admission_budget_bytes(pl_admission *admission);

/* The same, but perhaps less: measured recently, if that leaves plenty. */
uint64_t pl_admission_sure_bytes(pl_admission *admission);

/* Is the budget at least `bytes`? Asks the system only if it may be close. */
bool pl_admission_allows(pl_admission *admission, uint64_t bytes);

/* Begins a run that claims up to `bytes`: 1. 0 if others were promised too much meanwhile; or the
 * code of `check`. */
PL_MUST_CHECK int pl_admission_begin(pl_admission *admission, uint64_t bytes);

/* Ends it. False if it had not begun. */
bool pl_admission_end(pl_admission *admission);

/* After a refusal: waits until a run has ended since the budget was read, and then once for a
 * moment, until the memory of that run is given back. -EAGAIN: no run to wait for; or the code of
 * `check`. */
PL_MUST_CHECK int pl_admission_wait(pl_admission *admission);

/* The run is not urgent any more, whether it was admitted or not. */
void pl_admission_done(pl_admission *admission);

#endif
