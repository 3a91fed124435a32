/* SPDX-License-Identifier: Apache-2.0 */
#include "python/dataset/dataset_type.h"

#include <stddef.h>
#include <structmember.h>

#include "python/convert/specs.h"
#include "python/function/callback.h"
#include "python/module/failure.h"

PyTypeObject *dataset_type;

PyObject *dataset_of(pl_dataset *set, PyObject *inputs, PyObject *function)
{
    dataset *self = PyObject_GC_New(dataset, dataset_type);
    if (!self) {
        pl_dataset_unref(set);
        return NULL;
    }
    self->set = set;
    self->inputs = Py_XNewRef(inputs);
    self->function = Py_XNewRef(function);
    self->given = false;
    self->weakrefs = NULL;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

void dataset_give(dataset *self)
{
    if (self->given)
        return;
    self->given = true;
    Py_ssize_t n = self->inputs ? PyTuple_GET_SIZE(self->inputs) : 0;
    for (Py_ssize_t i = 0; i < n; i++)
        dataset_give((dataset *)PyTuple_GET_ITEM(self->inputs, i));
}

/* ---- attributes ---- */

static PyObject *get_n_components(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(pl_dataset_n_components(((dataset *)self)->set));
}

static PyObject *get_specs(PyObject *self, void *unused)
{
    (void)unused;
    const pl_dataset *set = ((dataset *)self)->set;
    return specs_object(pl_dataset_spec(set, 0), pl_dataset_n_components(set));
}

static PyObject *get_cardinality(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(pl_dataset_cardinality(((dataset *)self)->set));
}

static PyObject *get_name(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_DecodeFSDefault(pl_dataset_name(((dataset *)self)->set));
}

static int set_name(PyObject *self, PyObject *name, void *unused)
{
    (void)unused;
    const char *text = name ? PyUnicode_AsUTF8(name) : NULL;
    if (!text) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_AttributeError, "a dataset's name cannot be deleted");
        return -1;
    }
    pl_error error = {0};
    if (pl_dataset_set_name(((dataset *)self)->set, text, &error) == 0)
        return 0;
    failure_raise(&error);
    return -1;
}

/* The class names of an image folder; empty for other datasets. */
static PyObject *get_class_names(PyObject *self, void *unused)
{
    (void)unused;
    const pl_dataset *set = ((dataset *)self)->set;
    PyObject *list = PyList_New(0);
    const char *name;
    for (int64_t i = 0; list && (name = pl_dataset_class_name(set, i)); i++) {
        PyObject *text = PyUnicode_DecodeFSDefault(name);
        if (!text || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyObject *show(PyObject *self)
{
    const pl_dataset *set = ((dataset *)self)->set;
    return PyUnicode_FromFormat("<plimsoll._core.Dataset '%s' of %d components>",
                                pl_dataset_name(set), pl_dataset_n_components(set));
}

/* ---- the type ---- */

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    dataset *self = (dataset *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->inputs);
    Py_VISIT(self->function);
    if (!self->given && self->function && Py_IS_TYPE(self->function, callback_type))
        Py_VISIT(self->function); /* the pl_dataset's; of a Function it has the pl_traced */
    return 0;
}

/* There is no tp_clear: a cycle goes through the callable of some Callback, and is cleared
 * there. */
static void dealloc(PyObject *object)
{
    dataset *self = (dataset *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_TRASHCAN_BEGIN(object, dealloc); /* a chain of datasets may be thousands long */
    if (self->weakrefs)
        PyObject_ClearWeakRefs(object);
    pl_dataset_unref(self->set);
    Py_XDECREF(self->inputs);
    Py_XDECREF(self->function);
    type->tp_free(object);
    Py_DECREF(type);
    Py_TRASHCAN_END;
}

static PyGetSetDef attributes_of_type[] = {
    {"n_components", get_n_components, NULL, "of an element", NULL},
    {"specs", get_specs, NULL, "[(dtype, shape or None, None) or (None, None, specs)]", NULL},
    {"cardinality", get_cardinality, NULL, "-1: without end, -2: not known", NULL},
    {"name", get_name, set_name, "what messages call it", NULL},
    {"class_names", get_class_names, NULL, "of an image folder, by label", NULL},
    {NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(dataset, weakrefs), READONLY, NULL},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_traverse, traverse},
    {Py_tp_new, module_refuse_new},
    {Py_tp_dealloc, dealloc},
    {Py_tp_repr, show},
    {Py_tp_getset, attributes_of_type},
    {Py_tp_members, members},
    {Py_tp_doc, "Elements in order, made as they are asked for. Made by the ds_...() functions."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "plimsoll._core.Dataset",
    .basicsize = sizeof(dataset),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

PyTypeObject *dataset_add_type(PyObject *module, PyType_Spec *of)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(of);
    if (type && PyModule_AddType(module, type) < 0)
        Py_CLEAR(type);
    return type;
}

int module_add_dataset_type(PyObject *module)
{
    dataset_type = dataset_add_type(module, &spec);
    return dataset_type ? 0 : -1;
}

int module_add_datasets(PyObject *module)
{
    static int (*const parts[])(PyObject *) = {
        module_add_dataset_type, module_add_callbacks, module_add_structures,
        module_add_iterators,    module_add_stages,    module_add_records,
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i](module) < 0)
            return -1;
    return 0;
}
