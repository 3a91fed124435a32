/* SPDX-License-Identifier: Apache-2.0 */
/* Computes pending nodes, and does runs that Python waits for. */
#ifndef PL_PYTHON_TENSOR_EVALUATE_H
#define PL_PYTHON_TENSOR_EVALUATE_H

#include "python/tensor/tensor.h"

/* Computes the pending ones of these nodes in one program: see pl_evaluate(). -1 with an exception.
 * Releases the GIL meanwhile. */
int evaluate(tensor *const *nodes, int n_nodes);
int evaluate_exprs(pl_expr *const *exprs, int n_exprs);

/* Calls pl_evaluation_run() without the GIL; sets cancel and progress. An exception may be set as
 * well, and goes first: KeyboardInterrupt. */
int evaluate_run(pl_evaluation *evaluation, const char *const *npy_paths, pl_run_options *options,
                 pl_tensor **outputs, pl_error *reterr);

/* From now on, evaluations in this thread belong to that run, which calls a Python function, and
 * are cancelled with it. Returns the run before; NULL: none. */
const pl_run_options *evaluate_within(const pl_run_options *options);

/* The run that this thread belongs to; NULL: none. */
const pl_run_options *evaluate_outer(void);

/* Notes that a Python function in the run raised an exception: whatever its code, it is not a
 * cancellation. */
void evaluate_note_raised(void);

#endif
