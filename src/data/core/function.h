/* SPDX-License-Identifier: Apache-2.0 */
/* A function bound to a stage: a graph or a callback that the stage calls for each element, checked
 * once against the specs of its input. Reference-counted. As safe from any thread as the callback
 * is. */
#ifndef PL_DATA_CORE_FUNCTION_H
#define PL_DATA_CORE_FUNCTION_H

#include "data/core/stage.h"

typedef struct pl_bound_function pl_bound_function;

/* Takes the context of `function`, also on failure. Fails with -EINVAL if it cannot be called with
 * `inputs`. */
PL_MUST_CHECK int pl_bound_function_new(const pl_function *function, const pl_spec *inputs,
                                        int n_inputs, const char *what,
                                        pl_bound_function **ret_bound, pl_error *reterr);
pl_bound_function *pl_bound_function_ref(pl_bound_function *bound);
void pl_bound_function_unref(pl_bound_function *bound); /* NULL is allowed */

int pl_bound_function_n_outputs(const pl_bound_function *bound);
const pl_spec *pl_bound_function_spec(const pl_bound_function *bound, int output);

/* Returns whether it only returns its inputs, so that it costs almost nothing. */
bool pl_bound_function_is_trivial(const pl_bound_function *bound);

/* Returns the random stream of the call with the stage's latest input. It depends on pass, round
 * and position, not on threads. Never 0. If the call comes after the next pull, the element carries
 * it. */
uint64_t pl_bound_function_draw(pl_stage *stage);

/* Calls it with the items of `input`, which it keeps; scalars may become tensors. Origin and counts
 * move to the output. Errors name the element's file. */
PL_MUST_CHECK int pl_bound_function_run(pl_bound_function *bound, pl_stage *stage,
                                        pl_element *input, pl_element *ret_output,
                                        pl_error *reterr);

/* For stages that make one output from each input: pl_bound_function_run(), which then clears
 * `input`. A failed call is a bad element; or returns PL_RETRY_ALONE with `input` unchanged. */
PL_MUST_CHECK int pl_bound_function_map(pl_bound_function *bound, pl_stage *stage,
                                        pl_element *input, pl_element *ret_output,
                                        pl_error *reterr);

#endif
