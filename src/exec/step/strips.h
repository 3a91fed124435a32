/* SPDX-License-Identifier: Apache-2.0 */
/* Runs chains of elementwise instructions over strips of their box (plan/program.h).
 *   position  the number of an element in the box; a strip is [from, from + n)
 *   taker     receives the strips of the program's last register, in order
 *
 * Everything that does not depend on the tile is worked out once per frame, so that a strip costs
 * one call through a table per instruction, and a tile allocates nothing. Belongs to one frame. */
#ifndef PL_EXEC_STEP_STRIPS_H
#define PL_EXEC_STEP_STRIPS_H

#include "exec/step/run.h"

/* Elements of a long row: in a shorter one, calls cost more than a copy would. */
enum { PL_STRIPS_LONG_ROW = 256 };

/* How far a strip that begins at `from` may go, and what to do with a finished one. */
typedef struct pl_strip_taker {
    int64_t (*limit)(void *context, int64_t from, int64_t wanted);
    void (*take)(void *context, const char *data, int64_t from, int64_t n);
    void *context;
} pl_strip_taker;

/* Fails with -ENOMEM, or -ENOTSUP with a message for an op that has no kernel. */
PL_MUST_CHECK int pl_strips_init(pl_frame *frame, pl_error *reterr);
void pl_strips_done(pl_frame *frame);

/* Runs a chain in the regions that the frame has now. */
void pl_strips_run(pl_frame *frame, int chain);

#endif
