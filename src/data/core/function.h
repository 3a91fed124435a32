/* SPDX-License-Identifier: Apache-2.0 */
/* What a stage calls for an element: a graph or a callback, checked once against the element's
 * specs. Counted; safe from any thread, as far as a callback is. */
#ifndef PL_DATA_CORE_FUNCTION_H
#define PL_DATA_CORE_FUNCTION_H

#include "data/core/stage.h"

typedef struct pl_called pl_called;

/* Takes over what `function` has to release, also on failure. `input` gives the specs of what it is
 * called with; -EINVAL if it cannot be. Output specs: pl_called_spec(). */
PL_MUST_CHECK int pl_called_new(const pl_function *function, const pl_spec *inputs, int n_inputs,
                                const char *what, pl_called **ret_called, pl_error *reterr);
pl_called *pl_called_ref(pl_called *called);
void pl_called_unref(pl_called *called); /* NULL is allowed */

int pl_called_n_outputs(const pl_called *called);
const pl_spec *pl_called_spec(const pl_called *called, int output);

/* Does it only hand on its inputs? Then it costs nothing to speak of. */
bool pl_called_is_trivial(const pl_called *called);

/* The number that random ops of the call with the stage's latest input draw by: of pass, round and
 * place, so that it is the same whatever the threads. Never 0. Whoever calls later than the input
 * was pulled keeps it in the element. */
uint64_t pl_called_draw(pl_stage *stage);

/* Calls it with the items of `input`, which stay as they are but for scalars, which may get
 * tensors. Origin and counts are passed on to the output. Errors name the element's file. */
PL_MUST_CHECK int pl_called_run(pl_called *called, pl_stage *stage, pl_element *input,
                                pl_element *ret_output, pl_error *reterr);

#endif
