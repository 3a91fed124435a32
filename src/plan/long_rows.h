/* SPDX-License-Identifier: Apache-2.0 */
/* Rows longer than memory: an op of class "row" that works along its axis part by part.
 *   tile    a box of the input, which the step's program computes: some rows, and a part of each
 *   part    a piece of the axis, numbered along it. One worker computes all parts of a row, first
 *           to last or last to first
 *   state   what is carried from one part of a row to the next
 *   pass    one traversal of all parts. In the last pass, every part yields a part of the result,
 *           or the last part yields all of it
 *
 *   cumsum   state: the sum so far, which kernels/row/scan.h carries
 *   softmax  state: partials of logsumexp from a first pass; the second pass divides by them
 *   top_k    state: the k best so far and their positions, which become the result
 *   sort     state: sorted runs on disk, one for each part, merged after the last
 *
 * Whole rows are faster, and the last bits of some results depend on the parts, so a step works by
 * parts only when whole rows do not fit. A worker's scratch has room for state, result and work
 * after the program's own; all rows of a tile have state at the same time. Pure. */
#ifndef PL_PLAN_LONG_ROWS_H
#define PL_PLAN_LONG_ROWS_H

#include "plan/plan.h"

typedef struct pl_long_rows {
    int axis;
    int n_passes;
    bool backwards;      /* the last part comes first */
    bool ends_with_all;  /* the whole result is ready after the last part, and not before */
    bool sorts;          /* ends with all as well, but on disk, and stores it part by part */
    pl_dtype in, out;    /* that it is computed in; the node's dtype may be a half */
    int64_t n_parts;     /* of a row */
    int64_t n_best;      /* of top_k: elements of a row's result */
    uint64_t disk_bytes; /* of a sort, for the rows of a tile: runs, and what they are merged to */
    uint64_t tile_bytes; /* of all that follow: places in the scratch behind the program's */
    uint64_t state, best_places, candidates, candidate_places, result, cast, work;
    /* For a sort: the sorted candidates and their order, and the blocks of runs. */
    uint64_t sorted, sorted_places, order, blocks, block_places;
} pl_long_rows;

/* Returns the layout of a long-rows step from the extents of its tiles. Pure. */
pl_long_rows pl_long_rows_of(const pl_step *step, const pl_shape *shapes);

/* Turns the step into a long-rows step, with tiles still to be cut. Returns 1 if it did; 0 if the
 * op cannot be one, or the step is one already; -ENOMEM. */
PL_MUST_CHECK int pl_step_make_long_rows(pl_plan *plan, pl_step *step, pl_error *reterr);

#endif
