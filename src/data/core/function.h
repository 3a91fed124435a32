/* SPDX-License-Identifier: Apache-2.0 */
/* A function that is bound to a stage: a graph or a callback that the stage calls for each element,
 * checked once against the specs of its input. Reference-counted. Safe from any thread, as far as a
 * callback is. */
#ifndef PL_DATA_CORE_FUNCTION_H
#define PL_DATA_CORE_FUNCTION_H

#include "data/core/stage.h"

typedef struct pl_bound_function pl_bound_function;

/* Takes over the context of `function`, also on failure. -EINVAL if it cannot be called with
 * `inputs`. */
PL_MUST_CHECK int pl_bound_function_new(const pl_function *function, const pl_spec *inputs,
                                        int n_inputs, const char *what,
                                        pl_bound_function **ret_bound, pl_error *reterr);
pl_bound_function *pl_bound_function_ref(pl_bound_function *bound);
void pl_bound_function_unref(pl_bound_function *bound); /* NULL is allowed */

int pl_bound_function_n_outputs(const pl_bound_function *bound);
const pl_spec *pl_bound_function_spec(const pl_bound_function *bound, int output);

/* Does it only return its inputs? Then it costs almost nothing. */
bool pl_bound_function_is_trivial(const pl_bound_function *bound);

/* The random stream of the call with the stage's latest input. It follows from pass, round and
 * place, so it does not depend on threads. Never 0. A call that comes after the next pull has it in
 * the element. */
uint64_t pl_bound_function_draw(pl_stage *stage);

/* Calls it with the items of `input`, which it keeps; its scalars may become tensors. Origin and
 * counts move to the output. Errors name the element's file. */
PL_MUST_CHECK int pl_bound_function_run(pl_bound_function *bound, pl_stage *stage,
                                        pl_element *input, pl_element *ret_output,
                                        pl_error *reterr);

/* For stages that make one output of each input: as pl_bound_function_run(), but clears `input`, and
 * a failed call is a bad element; or PL_RETRY_ALONE, and `input` is unchanged. */
PL_MUST_CHECK int pl_bound_function_map(pl_bound_function *bound, pl_stage *stage,
                                        pl_element *input, pl_element *ret_output,
                                        pl_error *reterr);

#endif
