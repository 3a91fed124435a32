/* SPDX-License-Identifier: Apache-2.0 */
/* What Python asks for: pending nodes computed, and runs that Python waits for. */
#ifndef PL_PYTHON_TENSOR_EVALUATE_H
#define PL_PYTHON_TENSOR_EVALUATE_H

#include "python/tensor/tensor.h"

/* Computes what is pending in these nodes, in one program: see pl_evaluate(). -1 with an exception.
 * Releases the GIL meanwhile. */
int evaluate(tensor *const *nodes, int n_nodes);
int evaluate_exprs(pl_expr *const *exprs, int n_exprs);

/* pl_evaluation_run() with the GIL, which is released meanwhile; cancel and progress are set here. An
 * exception may be set as well, and goes first: KeyboardInterrupt. */
int evaluate_run(pl_evaluation *evaluation, const char *const *npy_paths, pl_run_options *options,
                 pl_tensor **outputs, pl_error *reterr);

/* What is evaluated in this thread from now on is part of that run, and cancelled with it: of a
 * Python function that the run calls. Returns what it was before; NULL: of none. */
const pl_run_options *evaluate_within(const pl_run_options *options);

/* The one it is in now; NULL: none. */
const pl_run_options *evaluate_outer(void);

/* A Python function that the run calls raised an exception: whatever code it has, nothing was
 * cancelled. */
void evaluate_note_raised(void);

#endif
