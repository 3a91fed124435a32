/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Callback: a Python function that the library calls for elements, or that starts a
 * generator, and the specs of its results.
 *
 * The library holds a reference for each pl_function or pl_generator made of it. dataset_type.h
 * shows that reference to the garbage collector. A callback that the collector has cleared fails
 * with -ECANCELED. */
#ifndef PL_PYTHON_FUNCTION_CALLBACK_H
#define PL_PYTHON_FUNCTION_CALLBACK_H

#include "python/module/module.h"

extern PyTypeObject *callback_type;

/* `callable` returns a sequence of components or, for a generator, an iterator over such
 * sequences. */
PyObject *callback_new(PyObject *callable, PyObject *specs);

/* The library owns the references from now on, and drops them with release(). */
pl_function callback_function(PyObject *self, int n_inputs);
pl_generator callback_generator(PyObject *self, int64_t cardinality);

#endif
