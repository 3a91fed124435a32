/* SPDX-License-Identifier: Apache-2.0 */
/* Runs side by side in one runtime: each may count on what its plan says that it claims.
 *   promised  the sum of the peaks of all runs that are under way
 *   budget    of a new run: what could be claimed now, less what is promised. What others have
 *             claimed already is so counted twice: runs wait rather than fail
 *   urgent    a run that waited: no other begins before it
 *
 * A run that does not fit beside the others waits until one of them has ended, and is planned anew.
 * Waits are not for ever, because whoever is under way waits for nobody here, and for a
 * device only until its step there has ended (device/room.h).
 *
 * A turn belongs to the thread of its run; what turns share is the runtime's, behind its lock. */
#ifndef PL_EXEC_SESSION_ADMISSION_H
#define PL_EXEC_SESSION_ADMISSION_H

#include <time.h>

#include "plimsoll/tensor.h"
#include "tensor/runtime.h"

/* One who wants to run. */
typedef struct pl_turn {
    pl_runtime *runtime;
    int (*check)(const void *context); /* called now and then while it waits: negative ends it */
    const void *context;
    bool may_wait;
    bool urgent;
    bool waited;      /* for others, and has not looked twice since */
    bool crowded;     /* the budget that was read would have been larger without others */
    uint64_t n_ended; /* runs, when the budget was read */
} pl_turn;

/* When whoever waits should look next at whether its run was cancelled; CLOCK_MONOTONIC. */
struct timespec pl_turn_look_at(void);

/* What a new run can count on, but no more than `most`. */
uint64_t pl_turn_budget_bytes(pl_turn *turn, uint64_t most);

/* The same, but perhaps less: as it was measured lately, if that leaves much. */
uint64_t pl_turn_sure_bytes(pl_turn *turn, uint64_t most);

/* Whether that is at least `bytes`. Asks the system only if it may be close. */
bool pl_turn_allows(pl_turn *turn, uint64_t bytes, uint64_t most);

/* Begins a run that claims up to `bytes`: 1. 0 if others were promised too much meanwhile; or what
 * `check` gave. */
PL_MUST_CHECK int pl_turn_begin(pl_turn *turn, uint64_t bytes);
void pl_turn_end(pl_turn *turn, uint64_t bytes);

/* After a refusal: waits until a run has ended since the budget was read, and once more for a
 * moment, until what that one left is given back. -EAGAIN: there is nothing to wait for; or what
 * `check` gave. */
PL_MUST_CHECK int pl_turn_wait(pl_turn *turn);

/* Whatever came of it: it is not urgent any more. */
void pl_turn_done(pl_turn *turn);

#endif
