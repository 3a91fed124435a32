/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Dataset: a pl_dataset, and what of Python it hangs on.
 *   inputs     the Datasets that it was made of
 *   function   the Callback or Function that the library calls for it, of which the pl_dataset has
 *              a reference of its own. Told to the collector as ours, so that a dataset whose
 *              function refers to it is collected
 *   given      the library has got the pl_dataset from us as a component (see component.h), and may
 *              have it longer than we: that reference is then no longer told, nor are those of its
 *              inputs
 *
 * Never changed once made, but for its name. */
#ifndef PL_PYTHON_DATASET_DATASET_TYPE_H
#define PL_PYTHON_DATASET_DATASET_TYPE_H

#include "python/module/module.h"

typedef struct dataset {
    PyObject ob_base;
    pl_dataset *set;
    PyObject *inputs; /* a tuple; NULL: none */
    PyObject *function;
    bool given;
    PyObject *weakrefs;
} dataset;

extern PyTypeObject *dataset_type;

static inline bool dataset_check(PyObject *object)
{
    return Py_TYPE(object) == dataset_type;
}

/* Takes over the reference to `set`, also on failure. `inputs` and `function` may be NULL. */
PyObject *dataset_of(pl_dataset *set, PyObject *inputs, PyObject *function);

/* From now on somebody else may have it as well. */
void dataset_give(dataset *self);

/* Each file's own part of the module. 0, or -1 with an exception. */
int module_add_dataset_type(PyObject *module);
int module_add_stages(PyObject *module);
int module_add_callbacks(PyObject *module);
int module_add_structures(PyObject *module);
int module_add_iterators(PyObject *module);
int module_add_records(PyObject *module);

/* A type of the module, from its spec; NULL with an exception. */
PyTypeObject *dataset_add_type(PyObject *module, PyType_Spec *spec);

#endif
