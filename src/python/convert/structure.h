/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Structure: how the components of an element lie in tuples, lists, dicts and named
 * tuples, so that a pass packs each element without going through Python.
 *
 *   tree = None                       one component
 *        | ("tuple", [tree ...]) | ("list", [tree ...])
 *        | ("dict", [key ...], [tree ...])
 *        | ("named", class, [tree ...])      called with its items
 *        | ("dataset", function)             called with a component that is a Dataset
 *
 * Components are taken in the order of the tree. Constant once made. */
#ifndef PL_PYTHON_CONVERT_STRUCTURE_H
#define PL_PYTHON_CONVERT_STRUCTURE_H

#include "python/module/module.h"

extern PyTypeObject *structure_type;

int structure_n_components(PyObject *self);

/* Takes over the components, also on failure. A new reference, or NULL with an exception. */
PyObject *structure_pack(PyObject *self, PyObject **components);

#endif
