/* SPDX-License-Identifier: Apache-2.0 */
/* Rows longer than memory: an op of class row that goes along its axis part by part.
 *   tile    a box of the input, which the step's program makes: some rows, and a part of each
 *   part    its number is counted along the axis; the parts of a row are done by one worker, in
 *           order, or from the last to the first
 *   state   what is known of a row between two parts
 *   pass    once over all parts. Every part of the last one gives a part of the result, or the last
 *           part gives all of it
 *
 *   cumsum   state: the sum so far, which kernels/row/scan.h carries
 *   softmax  state: partials of logsumexp, made in a first pass; the second divides by them
 *   top_k    state: the k best so far and where they were, which are the result in the end
 *   sort     state: sorted runs on disk, one for each part; they are merged when the last is there
 *
 * Whole rows are faster, and some last bits depend on parts: a step is made one of these when whole
 * rows do not fit, and not before. Behind what the program needs, a worker's scratch has room for
 * state, result and work; all rows of a tile have state at once. Pure. */
#ifndef PL_PLAN_LONG_ROWS_H
#define PL_PLAN_LONG_ROWS_H

#include "plan/plan.h"

typedef struct pl_long_rows {
    int axis;
    int n_passes;
    bool backwards;      /* the last part comes first */
    bool ends_with_all;  /* the result is there after the last part, and not before */
    bool sorts;          /* likewise, but on disk, and stored part by part */
    pl_dtype in, out;    /* that it is computed in; the node's dtype may be a half */
    int64_t n_parts;     /* of a row */
    int64_t n_best;      /* of top_k: elements of a row's result */
    uint64_t disk_bytes; /* of a sort, for the rows of a tile: runs, and what they are merged to */
    uint64_t tile_bytes; /* of all that follow: places in the scratch behind the program's */
    uint64_t state, best_places, candidates, candidate_places, result, cast, work;
    /* Of a sort: what candidates become, and in which order; blocks of runs. */
    uint64_t sorted, sorted_places, order, blocks, block_places;
} pl_long_rows;

/* Of a step of this kind, with its tiles' extents. Pure. */
pl_long_rows pl_long_rows_of(const pl_step *step, const pl_shape *shapes);

/* Makes it a step of this kind, with tiles still to be cut. 0: it is not an op that can be one, or is
 * one already; 1: it was done; -ENOMEM. */
PL_MUST_CHECK int pl_step_make_long_rows(pl_plan *plan, pl_step *step, pl_error *reterr);

#endif
