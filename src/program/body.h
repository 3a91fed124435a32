/* SPDX-License-Identifier: Apache-2.0 */
/* What lies between inputs and outputs, to be made anew with others in their place.
 *   own       an expr that depends on the inputs, or is of the same trace as they are
 *   outside   an expr that is not own and is symbolic, or of another trace
 *   eager     one that is not own, and pending
 *
 * Links are numbers: of an own expr its place, below the number of own exprs; of an input that number
 * and its own; -1 of what stays as it is. Nothing is referenced but by inputs and outputs, which are
 * the caller's to hold. */
#ifndef PL_PROGRAM_BODY_H
#define PL_PROGRAM_BODY_H

#include "program/walk.h"

typedef struct pl_body {
    pl_expr *const *inputs;
    int n_inputs;
    pl_expr *const *outputs;
    int n_outputs;
    pl_expr_list own;     /* inputs before users */
    pl_expr_list outside; /* that own exprs or outputs use, each once */
    pl_expr_list eager;
    int *links;            /* of the own exprs' inputs, one after the other; then of the outputs */
    int *first;            /* by own expr: where its links begin; then the outputs' */
    uint64_t first_stream; /* of own exprs that draw: the lowest, and how many from there */
    uint64_t n_streams;
} pl_body;

/* `trace` is the inputs'; 0: none. */
PL_MUST_CHECK int pl_body_init(pl_body *self, pl_expr *const *inputs, int n_inputs,
                               pl_expr *const *outputs, int n_outputs, uint64_t trace,
                               pl_error *reterr);
void pl_body_done(pl_body *self);

/* The outputs, made of these inputs: new references. Random ops draw from `first_stream` on. */
PL_MUST_CHECK int pl_body_substitute(const pl_body *self, pl_expr *const *given,
                                     uint64_t first_stream, const pl_traced_copied *copied,
                                     pl_expr **ret_outputs, pl_error *reterr);

#endif
