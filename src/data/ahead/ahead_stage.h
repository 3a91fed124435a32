/* SPDX-License-Identifier: Apache-2.0 */
/* Stages that make one element from each element of their input, ahead of time: map and prefetch.
 *   begin    pulls the input: in order, by one thread at a time
 *   finish   calls the function: by any number of threads at once
 *   head     the next element that the consumer will ask for
 *
 *   head <= tail <= head + n_slots - n_beginning - n_unplaced
 *   slots [head, tail) are begun, or done
 *
 * In order, an element gets its slot when it is begun; in any order, when it is finished. While the
 * consumer waits for the head, it begins other elements, so that it does not idle. An element that
 * did not fit stays in its slot until it is the head, and is then tried again: see pl_pass_later().
 *
 * Locks: `pulling` is held while the input is pulled, so the locks of stages below are taken within
 * it; the engine's is a leaf. */
#ifndef PL_DATA_AHEAD_AHEAD_STAGE_H
#define PL_DATA_AHEAD_AHEAD_STAGE_H

#include "data/ahead/ahead.h"
#include "data/core/function.h"

typedef struct pl_ahead_stage {
    pl_stage base;
    pl_ahead ahead;
    pl_bound_function *function; /* constant; NULL: passes on the input's elements */
    int64_t n_slots;             /* constant once restored */
    pl_ahead_slot *slots;        /* NULL: not begun */
    pthread_mutex_t pulling;
    int64_t head, tail; /* the engine's mu, like all that follows */
    int n_beginning;    /* threads that pull, or wait for their turn */
    int n_unplaced;     /* elements in finish() that have no slot yet */
    bool starved;       /* the input's next element did not fit; until one is taken */
    bool ended;
} pl_ahead_stage;

/* After this, next() returns elements made ahead. At most `n_slots` elements and `n_parallel`
 * workers; PL_AUTO for either. Fails with -ENOMEM. */
PL_MUST_CHECK int pl_ahead_stage_begin(pl_stage *stage, pl_bound_function *function,
                                       int64_t n_slots, int n_parallel, pl_error *reterr);

static inline bool pl_ahead_stage_has_begun(const pl_stage *stage)
{
    return ((const pl_ahead_stage *)stage)->slots != NULL;
}

/* Functions for the class's table; they do nothing if the stage was not begun. */
void pl_ahead_stage_close(pl_stage *stage);
PL_MUST_CHECK int pl_ahead_stage_save(pl_stage *stage, pl_saver *saver, pl_error *reterr);
PL_MUST_CHECK int pl_ahead_stage_restore(pl_stage *stage, pl_loader *loader, pl_error *reterr);

#endif
