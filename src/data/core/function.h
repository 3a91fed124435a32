/* SPDX-License-Identifier: Apache-2.0 */
/* What a stage calls for an element: a graph or a callback, checked once against the element's
 * specs. Counted; safe from any thread, as far as a callback is. */
#ifndef PL_DATA_CORE_FUNCTION_H
#define PL_DATA_CORE_FUNCTION_H

#include "data/core/stage.h"

typedef struct pl_bound_function pl_bound_function;

/* Takes over what `function` has to release, also on failure. `input` gives the specs of what it is
 * called with; -EINVAL if it cannot be. Output specs: pl_bound_function_spec(). */
PL_MUST_CHECK int pl_bound_function_new(const pl_function *function, const pl_spec *inputs,
                                        int n_inputs, const char *what,
                                        pl_bound_function **ret_bound, pl_error *reterr);
pl_bound_function *pl_bound_function_ref(pl_bound_function *bound);
void pl_bound_function_unref(pl_bound_function *bound); /* NULL is allowed */

int pl_bound_function_n_outputs(const pl_bound_function *bound);
const pl_spec *pl_bound_function_spec(const pl_bound_function *bound, int output);

/* Does it only hand on its inputs? Then it costs nothing to speak of. */
bool pl_bound_function_is_trivial(const pl_bound_function *bound);

/* The number that random ops of the call with the stage's latest input draw by: of pass, round and
 * place, so that it is the same whatever the threads. Never 0. Whoever calls later than the input
 * was pulled keeps it in the element. */
uint64_t pl_bound_function_draw(pl_stage *stage);

/* Calls it with the items of `input`, which stay as they are but for scalars, which may get
 * tensors. Origin and counts are passed on to the output. Errors name the element's file. */
PL_MUST_CHECK int pl_bound_function_run(pl_bound_function *bound, pl_stage *stage,
                                        pl_element *input, pl_element *ret_output,
                                        pl_error *reterr);

/* The same for a class's next() that makes one element of each: clears `input`, and what fails is a
 * bad element; or PL_LATER, and `input` is as it was. */
PL_MUST_CHECK int pl_bound_function_map(pl_bound_function *bound, pl_stage *stage,
                                        pl_element *input, pl_element *ret_output,
                                        pl_error *reterr);

#endif
