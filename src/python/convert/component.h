/* SPDX-License-Identifier: Apache-2.0 */
/* Components of elements, between Python and the library: a Tensor with a value, or a Dataset. */
#ifndef PL_PYTHON_CONVERT_COMPONENT_H
#define PL_PYTHON_CONVERT_COMPONENT_H

#include "python/module/module.h"

/* Takes over the values in `value`, also on failure. */
PyObject *component_object(pl_value value);

/* Converts and computes the result of a user's function: a sequence with as many items as there are
 * specs. -1 with an exception, and then it gives out nothing. */
int components_of(PyObject *sequence, const pl_spec *specs, int n, pl_value *ret_values);

/* Converts values and computes them in one program, into a PyMem array. With `dtypes` (may be
 * NULL), there are as many values, each converted to its dtype, and None becomes NULL. -1 with an
 * exception. */
int component_tensors(PyObject *sequence, const pl_dtype *dtypes, int n_dtypes,
                      pl_tensor ***ret_tensors, int *ret_n);
void component_tensors_free(pl_tensor **tensors, int n); /* NULL is allowed */

#endif
