/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Function: a traced function of the library (pl_traced) as a Python object, with
 * the objects of its placeholders and outputs.
 *
 * A call from Python substitutes: it makes new pending nodes in place of the function's own. The
 * library's threads run the function as a program. */
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

/* The function for a stage of a dataset: see pl_traced_function(). -1 with an exception. */
int function_for_dataset(const function *self, const pl_spec *inputs, int n_inputs,
                         pl_function *ret);

#endif
