/* SPDX-License-Identifier: Apache-2.0 */
/* Specs of components in Python: (DType, shape or None, None), or (None, None, [specs]) for a
 * dataset. */
#ifndef PL_PYTHON_CONVERT_SPECS_H
#define PL_PYTHON_CONVERT_SPECS_H

#include "python/module/module.h"

/* -1 with an exception. Free the specs with specs_free(). */
int specs_of(PyObject *sequence, pl_spec **ret_specs, int *ret_n);
void specs_free(pl_spec *specs, int n); /* NULL is allowed */

/* A list; NULL with an exception. */
PyObject *specs_object(const pl_spec *specs, int n);

#endif
