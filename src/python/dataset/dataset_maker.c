/* SPDX-License-Identifier: Apache-2.0 */
#include "python/dataset/dataset_maker.h"

#include "python/dataset/dataset_type.h"
#include "python/dataset/iterator_type.h"
#include "python/module/failure.h"

/* ---- making datasets ---- */

static int make(const dataset_maker *maker, pl_runtime *runtime, dataset_arguments *a,
                pl_dataset **ret_dataset)
{
    pl_error error = {0};
    dataset_arguments_gave_function(a);
    PyThreadState *thread = maker->waits ? PyEval_SaveThread() : NULL;
    int r = maker->make(runtime, a->each, ret_dataset, &error);
    if (thread)
        PyEval_RestoreThread(thread);
    if (r < 0 && !PyErr_Occurred())
        failure_raise(&error);
    return r;
}

static PyObject *wrap(pl_dataset *made, const dataset_arguments *a)
{
    PyObject *inputs, *function, *self = NULL;
    if (dataset_arguments_origins(a, &inputs, &function) < 0)
        pl_dataset_unref(made);
    else
        self = dataset_of(made, inputs, function);
    Py_XDECREF(inputs);
    return self;
}

/* All ds_...() functions share this one; `self` tells them apart. */
static PyObject *call(PyObject *self, PyObject *const *given, Py_ssize_t n_given, PyObject *names)
{
    const dataset_maker *maker = PyCapsule_GetPointer(self, NULL);
    pl_runtime *runtime = module_runtime();
    dataset_arguments a;
    if (!runtime ||
        dataset_arguments_read(&a, maker->name, maker->signature, given, n_given, names) < 0)
        return NULL;
    pl_dataset *made;
    PyObject *result = make(maker, runtime, &a, &made) < 0 ? NULL : wrap(made, &a);
    dataset_arguments_done(&a);
    return result;
}

int dataset_makers_add(PyObject *module, const dataset_maker *table)
{
    for (; table->name; table++) {
        PyMethodDef *definition = PyMem_Calloc(1, sizeof *definition); /* never freed */
        if (!definition)
            return PyErr_NoMemory(), -1;
        *definition = (PyMethodDef){table->name, (PyCFunction)(void (*)(void))call,
                                    METH_FASTCALL | METH_KEYWORDS, table->signature};
        PyObject *which = PyCapsule_New((void *)table, NULL, NULL);
        PyObject *function = which ? PyCFunction_New(definition, which) : NULL;
        Py_XDECREF(which);
        if (!function || PyModule_AddObjectRef(module, table->name, function) < 0) {
            Py_XDECREF(function);
            return -1;
        }
        Py_DECREF(function);
    }
    return 0;
}

/* ---- running a whole dataset ---- */

#define REDUCE_SIGNATURE "input:D initial:T function:F"
#define SAVE_SIGNATURE   "input:D path:P shards:I="

/* The final state is the only element of a dataset, so that it can be cancelled like any pass. */
static PyObject *reduce(PyObject *module, PyObject *const *given, Py_ssize_t n_given,
                        PyObject *names)
{
    (void)module;
    dataset_arguments a;
    if (dataset_arguments_read(&a, "ds_reduce", REDUCE_SIGNATURE, given, n_given, names) < 0)
        return NULL;
    pl_dataset *reduction;
    pl_error error = {0};
    dataset_arguments_gave_function(&a);
    int r = pl_dataset_reduction(a.each[0].dataset, a.each[1].tensors, a.each[1].n,
                                 &a.each[2].function, &reduction, &error);
    PyObject *result = r < 0 ? failure_raise(&error) : iterator_only_element(reduction);
    dataset_arguments_done(&a);
    return result;
}

static PyObject *save(PyObject *module, PyObject *const *given, Py_ssize_t n_given, PyObject *names)
{
    (void)module;
    dataset_arguments a;
    if (dataset_arguments_read(&a, "ds_save", SAVE_SIGNATURE, given, n_given, names) < 0)
        return NULL;
    int64_t n_shards = a.each[2].object ? a.each[2].number : 1;
    PyObject *result = iterator_save_all(a.each[0].dataset, a.each[1].text, n_shards);
    dataset_arguments_done(&a);
    return result;
}

static PyMethodDef functions[] = {
    {"ds_reduce", (PyCFunction)(void (*)(void))reduce, METH_FASTCALL | METH_KEYWORDS,
     REDUCE_SIGNATURE},
    {"ds_save", (PyCFunction)(void (*)(void))save, METH_FASTCALL | METH_KEYWORDS, SAVE_SIGNATURE},
    {NULL},
};

int module_add_stages(PyObject *module)
{
    if (dataset_makers_add(module, dataset_sources) < 0 ||
        dataset_makers_add(module, dataset_stages) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
