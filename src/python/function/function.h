/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Function: a traced function of the library (pl_traced) as a Python object, with the
 * objects of its placeholders and outputs.
 *
 * In Python a call substitutes: new nodes for the function's own, pending. In the library's threads
 * the function is a program. */
#ifndef PL_PYTHON_FUNCTION_FUNCTION_H
#define PL_PYTHON_FUNCTION_FUNCTION_H

#include "python/tensor/tensor.h"

typedef struct function {
    PyObject ob_base;
    PyObject *name;
    pl_traced *traced;
    int n_inputs, n_outputs;
    tensor **inputs, **outputs; /* references */
    PyObject *weakrefs;
} function;

extern PyTypeObject *function_type;

/* For a stage of a dataset: see pl_traced_function(). -1 with an exception. */
int function_for_dataset(const function *self, const pl_spec *inputs, int n_inputs,
                         pl_function *ret);

#endif
