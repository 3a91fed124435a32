/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PL_PYTHON_FUNCTION_FUNCTION_PRIVATE_H
#define PL_PYTHON_FUNCTION_FUNCTION_PRIVATE_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "python/function/function.h"
#include "python/program/body.h"

/* What is captured and pending is computed ahead without a look at the budget. */
#define FUNCTION_EAGER_BYTES ((uint64_t)1 << 20)

struct function {
    PyObject ob_base;
    PyObject *name;
    int n_inputs, n_outputs;
    tensor **inputs, **outputs; /* references */
    body body;
    /* Set together, once, with the GIL; read without when `program` is there. */
    _Atomic(program *) program;
    pl_tensor **values; /* captured; behind inputs and captures */
    int n_values;
    uint64_t stream; /* that the program's streams count from */
    PyObject *weakrefs;
};

/* With the GIL. -1 with an exception. */
int function_make_program(function *self);

#endif
