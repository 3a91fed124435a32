/* SPDX-License-Identifier: Apache-2.0 */
/* The exprs between a function's inputs and outputs, which can be copied with other inputs.
 *   own       an expr that depends on the inputs, or belongs to their trace
 *   outside   an expr that is not own, and is symbolic or belongs to another trace
 *   eager     an expr that is not own, and is pending
 *
 * Links are numbers: for an own expr its place, below the number of own exprs; for an input that
 * number plus its own; -1 for an expr that stays as it is. The body holds references to inputs and
 * outputs only; the caller must keep those alive. */
#ifndef PL_PROGRAM_BODY_H
#define PL_PROGRAM_BODY_H

#include "program/walk.h"

typedef struct pl_body {
    pl_expr *const *inputs;
    int n_inputs;
    pl_expr *const *outputs;
    int n_outputs;
    pl_expr_list own;     /* inputs before users */
    pl_expr_list outside; /* used by own exprs or outputs, each once */
    pl_expr_list eager;
    int *links;            /* of the own exprs' inputs, in order; then of the outputs */
    int *first;            /* by own expr: where its links begin; last, the outputs' */
    uint64_t first_stream; /* of own exprs that draw: the lowest stream, and how many follow */
    uint64_t n_streams;
} pl_body;

/* `trace` is the inputs' trace; 0: none. */
PL_MUST_CHECK int pl_body_init(pl_body *self, pl_expr *const *inputs, int n_inputs,
                               pl_expr *const *outputs, int n_outputs, uint64_t trace,
                               pl_error *reterr);
void pl_body_done(pl_body *self);

/* Makes the outputs from these inputs: new references. Random ops draw from `first_stream` on. */
PL_MUST_CHECK int pl_body_substitute(const pl_body *self, pl_expr *const *given,
                                     uint64_t first_stream, const pl_traced_copied *copied,
                                     pl_expr **ret_outputs, pl_error *reterr);

#endif
