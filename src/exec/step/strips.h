/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of elementwise instructions, run over strips of their box (plan/program.h).
 *   position  of an element in the box, in the order of its elements; a strip is [from, from + n)
 *   taker     gets the strips of the program's last register, one after the other in their order
 *
 * What does not depend on the tile is worked out once for each frame, so that a strip costs a call
 * through a table for each instruction, and nothing is allocated for a tile. Belongs to one frame.
 */
#ifndef PL_EXEC_STEP_STRIPS_H
#define PL_EXEC_STEP_STRIPS_H

#include "exec/step/run.h"

/* Elements of a row: a shorter one costs more in calls than a copy would. */
enum { PL_STRIPS_LONG_ROW = 256 };

/* How far a strip may go that begins at `from`, and one that was made. */
typedef struct pl_strip_taker {
    int64_t (*limit)(void *context, int64_t from, int64_t wanted);
    void (*take)(void *context, const char *data, int64_t from, int64_t n);
    void *context;
} pl_strip_taker;

/* -ENOMEM; -ENOTSUP with a message for what has no kernel. */
PL_MUST_CHECK int pl_strips_init(pl_frame *frame, pl_error *reterr);
void pl_strips_done(pl_frame *frame);

/* Runs a chain in the regions that the frame has now. */
void pl_strips_run(pl_frame *frame, int chain);

#endif
