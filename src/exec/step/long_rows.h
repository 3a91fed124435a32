/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that compute long rows: see plan/long_rows.h. A part belongs to one
 * worker. */
#ifndef PL_EXEC_STEP_LONG_ROWS_H
#define PL_EXEC_STEP_LONG_ROWS_H

#include "exec/step/run.h"
#include "plan/long_rows.h"

typedef struct pl_long_run {
    const pl_step *step;
    const pl_shape *shape; /* of the input */
    pl_long_rows rows;
} pl_long_run;

/* A part of some rows. */
typedef struct pl_row_part {
    const pl_long_run *run;
    pl_frame *frame;
    pl_region tile;
    int64_t n_rows, n_behind; /* rows; those of them that lie side by side */
    int64_t n_before;         /* elements of each row before the part, as the op goes */
    char *space;              /* after the program's scratch */
    const char *in;
} pl_row_part;

/* Moves to the part with this number, in the order in which the op goes; numbers count up from
 * 0. */
void pl_row_part_set(pl_row_part *part, int64_t number);

/* Stores the part's result in the value. */
PL_MUST_CHECK int pl_row_part_store(const pl_row_part *part);

/* ---- long_sort.c ---- */

typedef struct pl_long_sort {
    pl_buffer *values[2]; /* row by row, on disk: sorted runs, and what they are merged to */
    pl_buffer *places[2]; /* of argsort, the same for places */
} pl_long_sort;

PL_MUST_CHECK int pl_long_sort_init(pl_long_sort *sort, const pl_row_part *part);
void pl_long_sort_done(pl_long_sort *sort);

/* Makes a run from the part of each row. */
PL_MUST_CHECK int pl_long_sort_add(const pl_long_sort *sort, const pl_row_part *part);

/* Merges all runs, and stores the rows in the value. */
PL_MUST_CHECK int pl_long_sort_finish(pl_long_sort *sort, pl_row_part *part);

#endif
