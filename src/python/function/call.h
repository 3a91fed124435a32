/* SPDX-License-Identifier: Apache-2.0 */
/* What is called between the graphs of a program: a condition, a loop, a Python function, a
 * parser. Each is a class in a file of its own. Counted, atomically; constant once made. */
#ifndef PL_PYTHON_FUNCTION_CALL_H
#define PL_PYTHON_FUNCTION_CALL_H

#include <stdatomic.h>

#include "python/module/module.h"

typedef struct call call;
typedef struct run_state run_state; /* of program.h: cancel flag, budget, random stream */

typedef struct call_class {
    const char *name; /* in messages: "cond", "while_loop", "py_function" */
    /* No GIL. The inputs are borrowed; n_outputs new references into `outputs`. */
    int (*run)(call *self, pl_tensor *const *inputs, pl_tensor **outputs, const run_state *state,
               pl_error *reterr);
    void (*free)(call *self); /* with the GIL */
    bool impure;              /* see call */
    bool draws;               /* random ops may be in it: its nodes have a `stream`, as theirs */
} call_class;

/* The first member of each class's own struct. */
struct call {
    const call_class *class;
    _Atomic int n_refs;
    int n_inputs, n_outputs;
    bool impure; /* it has effects, or calls what has: a program calls those in its own order */
    pl_type *outputs; /* as far as they are known before; malloc'ed, freed with it */
};

call *call_ref(call *self);
void call_unref(call *self); /* with the GIL; NULL is allowed */

#endif
