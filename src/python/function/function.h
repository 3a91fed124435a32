/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Function: traced once, called often.
 *   input     a placeholder
 *   output    a node over inputs
 *   captured  what else the outputs hang on. Values, and eager nodes that are pending (they are
 *             computed once), go with the function. Nodes of another trace or graph, and foreign
 *             placeholders, have a value only where that is run: who calls the function there
 *             (cond, while_loop) gives it, behind the inputs
 *   own       a node that belongs to the function: made in the same trace as its inputs, or hanging
 *             on them
 *
 * In Python a call substitutes: new nodes for the own ones, pending. In the library's threads the
 * function is a program. */
#ifndef PL_PYTHON_FUNCTION_FUNCTION_H
#define PL_PYTHON_FUNCTION_FUNCTION_H

#include "python/program/program.h"

typedef struct function function; /* a Python object */

extern PyTypeObject *function_type;

int function_n_inputs(const function *self);
int function_n_outputs(const function *self);
const pl_type *function_input_type(const function *self, int i);
const pl_type *function_output_type(const function *self, int i);

/* Does it call what has effects? */
bool function_is_impure(const function *self);

/* Of other traces; borrowed. */
int function_n_captures(const function *self);
tensor *const *function_captures(const function *self);

/* No GIL, but for the first time. `inputs`: what is captured of other traces lies behind them. */
int function_run(function *self, pl_tensor *const *inputs, const run_state *state,
                 pl_tensor **outputs, pl_error *reterr);

/* For a stage of a dataset: as one graph where that can be, else as a callback without the GIL.
 * `inputs` are the specs of what it will be called with. Fills *ret, whose release() lets go of
 * the function; -1 with an exception. */
int function_for_dataset(function *self, const pl_spec *inputs, int n_inputs, pl_function *ret);

#endif
