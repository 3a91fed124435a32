/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of programs that Python waits for: without the GIL, to be interrupted, telling how far they
 * are. */
#ifndef PL_PYTHON_TENSOR_RUN_H
#define PL_PYTHON_TENSOR_RUN_H

#include "python/program/program.h"

/* As program_run(), with the GIL, which is released meanwhile; cancel and progress are set here. An
 * exception may be set as well, and goes first: KeyboardInterrupt. */
int run_program(program *program, pl_tensor *const *leaves, const char *const *npy_paths,
                run_state *state, pl_tensor **outputs, pl_error *reterr);

/* Refuses results that could not be in memory, before anything is computed: what is left of the
 * budget is less. Those with a path do not count; `npy_paths` may be NULL. PL_EBUDGET. */
int run_check(tensor *const *fetches, int n_fetches, const char *const *npy_paths,
              pl_error *reterr);

/* Raises it. Of a budget that is too small, the ways out are told, if results were to be tensors.
 */
void run_raise(pl_error *error, bool as_tensors);

#endif
