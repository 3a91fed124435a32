/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset that a function made of an element, within a pass: what flat_map and interleave pull.
 *   queue   elements that were pulled before they are asked for, in order
 *
 * Belongs to one thread at a time, as its stage does; but that the queue has the owner's lock. */
#ifndef PL_DATA_STAGE_SUBDATASET_H
#define PL_DATA_STAGE_SUBDATASET_H

#include "data/core/function.h"

/* What a pull gave. */
typedef struct pl_pulled {
    int result; /* 1, or a code */
    pl_element element;
    pl_error *error;     /* of a code */
    uint64_t room_bytes; /* of the headway */
} pl_pulled;

enum { PL_LANE_QUEUE = 16 };

typedef struct pl_lane {
    struct pl_lane *after; /* in a list */
    uint64_t number;       /* of the input's element, from 1 on */
    pl_element input;      /* what the function was called with; kept for its state */
    pl_stage *stage;       /* NULL: the element is bad; its error is in the queue */
    bool busy;             /* somebody pulls; the owner's lock, as all that follows */
    bool ended;
    pl_pulled queue[PL_LANE_QUEUE]; /* a ring */
    int head, n_queued;
} pl_lane;

/* Checks a function that makes one dataset, for a constructor. */
PL_MUST_CHECK int pl_lane_check(const pl_called *called, const char *what, pl_error *reterr);

/* Calls the function with an element of the stage's input, which is taken over, and opens what it
 * made, below `stage`. Negative: the element is bad, and what it was read from and counts is in
 * *ret_bad; or PL_REPORTED; or PL_RETRY_ALONE, and the element is as it was. */
PL_MUST_CHECK int pl_lane_open(pl_stage *stage, pl_called *called, uint64_t number,
                               pl_element *input, pl_lane **ret_lane, pl_element *ret_bad,
                               pl_error *reterr);

/* One that has nothing but the error of what should have been its input. NULL: no memory. */
pl_lane *pl_lane_of_error(uint64_t number, int result, pl_error *error, pl_element *bad);

/* What it has counted becomes the stage's, below which it was opened. NULL is allowed. */
void pl_lane_close(pl_stage *stage, pl_lane *lane);

/* ---- the queue ---- */

static inline pl_pulled *pl_lane_first(pl_lane *lane)
{
    return lane->n_queued > 0 ? &lane->queue[lane->head] : NULL;
}

/* Takes the element over; there is room for it. */
void pl_lane_put(pl_lane *lane, int result, pl_element *element, pl_error *error,
                 uint64_t room_bytes);

/* The first one; its room is given back. Of a bad one the element has what it was read from, and
 * counts. */
PL_MUST_CHECK int pl_lane_take(pl_lane *lane, pl_headway *headway, pl_element *ret_element,
                               pl_error *reterr);

/* ---- state ---- */

PL_MUST_CHECK int pl_lane_save(pl_lane *lane, pl_saver *saver, pl_error *reterr);
PL_MUST_CHECK int pl_lane_load(pl_stage *stage, pl_called *called, pl_loader *loader,
                               pl_lane **ret_lane, pl_error *reterr);

#endif
