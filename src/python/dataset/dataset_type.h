/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Dataset: a pl_dataset, and the Python objects that it needs.
 *   inputs     the Datasets that it was made of
 *   function   the Callback or Function that the library calls for it; the pl_dataset has a reference
 *              of its own. We show that one to the collector as ours, so that it can free a dataset
 *              whose function refers to it
 *   given      we gave the library the pl_dataset as a component (see component.h), and it may outlive
 *              this object: then we no longer show that reference, or those of the inputs
 *
 * Never changed once made, except for its name. */
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

/* Another owner may have it from now on. */
void dataset_give(dataset *self);

/* Each adds one file's part to the module. 0, or -1 with an exception. */
int module_add_dataset_type(PyObject *module);
int module_add_stages(PyObject *module);
int module_add_callbacks(PyObject *module);
int module_add_structures(PyObject *module);
int module_add_iterators(PyObject *module);
int module_add_records(PyObject *module);

/* Makes a type of the module from its spec; NULL with an exception. */
PyTypeObject *dataset_add_type(PyObject *module, PyType_Spec *spec);

#endif
