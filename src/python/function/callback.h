/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Callback: a Python function that the library calls for elements, or that begins a
 * generator, and the specs of what it gives.
 *
 * The library has a reference for each pl_function or pl_generator made of it. Its collector's
 * part: see dataset_type.h. One that the collector has cleared calls nothing: -ECANCELED. */
#ifndef PL_PYTHON_FUNCTION_CALLBACK_H
#define PL_PYTHON_FUNCTION_CALLBACK_H

#include "python/module/module.h"

extern PyTypeObject *callback_type;

/* `callable` gives a sequence of components, or, of a generator, an iterator over such. */
PyObject *callback_new(PyObject *callable, PyObject *specs);

/* References are the library's from now on: given back by release(). */
pl_function callback_function(PyObject *self, int n_inputs);
pl_generator callback_generator(PyObject *self, int64_t cardinality);

#endif
