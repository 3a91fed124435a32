/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset that a function made from an element, within a pass of flat_map or interleave.
 *   queue   elements that were pulled ahead, in order
 *
 * Belongs to one thread at a time, like its stage; the owner's lock guards the queue. */
#ifndef PL_DATA_STAGE_SUBDATASET_H
#define PL_DATA_STAGE_SUBDATASET_H

#include "data/ahead/ahead.h"
#include "data/core/function.h"

enum { PL_SUBDATASET_QUEUE = 16 };

typedef struct pl_subdataset {
    struct pl_subdataset *after; /* in a list */
    uint64_t number;             /* of the input's element, from 1 on */
    pl_element input;            /* the function's argument, for checkpoints */
    pl_stage *stage;             /* NULL: the element is bad; its error is in the queue */
    bool busy;                   /* a thread pulls it; the owner's lock, as all that follows */
    bool ended;
    pl_ahead_slot queue[PL_SUBDATASET_QUEUE]; /* a ring */
    int head, n_queued;
} pl_subdataset;

/* For constructors: fails with -EINVAL unless the function makes one dataset. */
PL_MUST_CHECK int pl_subdataset_check(const pl_bound_function *function, const char *what,
                                      pl_error *reterr);

/* Calls the function with an element of the stage's input, takes the element, and opens the new
 * dataset below `stage`. Negative: the element is bad, and its origin and counts are in *ret_bad;
 * or PL_REPORTED; or PL_RETRY_ALONE, with the element unchanged. */
PL_MUST_CHECK int pl_subdataset_open(pl_stage *stage, pl_bound_function *function, uint64_t number,
                                     pl_element *input, pl_subdataset **ret_subdataset,
                                     pl_element *ret_bad, pl_error *reterr);

/* Stands in for a subdataset whose input was bad: has only its error. NULL if out of memory. */
pl_subdataset *pl_subdataset_of_error(uint64_t number, int result, pl_error *error,
                                      pl_element *bad);

/* Moves its counts to `stage`, below which it was opened. NULL is allowed. */
void pl_subdataset_close(pl_stage *stage, pl_subdataset *subdataset);

/* ---- the queue ---- */

static inline pl_ahead_slot *pl_subdataset_first(pl_subdataset *subdataset)
{
    return subdataset->n_queued > 0 ? &subdataset->queue[subdataset->head] : NULL;
}

/* Adds a slot, which the caller fills; there must be room. */
pl_ahead_slot *pl_subdataset_add(pl_subdataset *subdataset, uint64_t room_bytes);

/* Takes the first slot: see pl_ahead_slot_take(). */
PL_MUST_CHECK int pl_subdataset_take(pl_subdataset *subdataset, pl_prefetch_budget *budget,
                                     pl_element *ret_element, pl_error *reterr);

/* ---- state ---- */

PL_MUST_CHECK int pl_subdataset_save(pl_subdataset *subdataset, pl_saver *saver, pl_error *reterr);
PL_MUST_CHECK int pl_subdataset_load(pl_stage *stage, pl_bound_function *function,
                                     pl_loader *loader, pl_subdataset **ret_subdataset,
                                     pl_error *reterr);

#endif
