/* SPDX-License-Identifier: Apache-2.0 */
#include "python/convert/structure.h"

#include <string.h>

#include "python/dataset/dataset_type.h"

typedef enum kind { LEAF, TUPLE, LIST, DICT, NAMED, DATASET, N_KINDS } kind;

static const char *const kind_names[N_KINDS] = {"", "tuple", "list", "dict", "named", "dataset"};

typedef struct tree {
    kind kind;
    PyObject *extra; /* keys (a tuple) of a DICT, class or function; NULL: none */
    int n;
    struct tree *parts;
} tree;

typedef struct structure {
    PyObject ob_base;
    tree root;
    int n_components;
} structure;

PyTypeObject *structure_type;

/* ---- making ---- */

static int tree_init(tree *self, PyObject *given, int depth, int *n_components);

static void tree_done(tree *self)
{
    for (int i = 0; i < self->n && self->parts; i++)
        tree_done(&self->parts[i]);
    PyMem_Free(self->parts);
    Py_CLEAR(self->extra);
    *self = (tree){0};
}

static int refuse(PyObject *given)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%.200R is not a structure of components", given);
    return -1;
}

static int add_parts(tree *self, PyObject *given, int depth, int *n_components)
{
    PyObject *tuple = PySequence_Tuple(given);
    if (!tuple)
        return -1;
    int n = (int)PyTuple_GET_SIZE(tuple), r = 0;
    self->parts = PyMem_Calloc((size_t)n + 1, sizeof *self->parts);
    if (self->parts)
        self->n = n;
    else
        r = (PyErr_NoMemory(), -1);
    for (int i = 0; r == 0 && i < n; i++)
        r = tree_init(&self->parts[i], PyTuple_GET_ITEM(tuple, i), depth + 1, n_components);
    Py_DECREF(tuple);
    return r;
}

static kind kind_of(PyObject *given)
{
    PyObject *name =
        PyTuple_Check(given) && PyTuple_GET_SIZE(given) > 1 ? PyTuple_GET_ITEM(given, 0) : Py_None;
    for (int i = TUPLE; i < N_KINDS && PyUnicode_Check(name); i++)
        if (PyUnicode_CompareWithASCIIString(name, kind_names[i]) == 0 &&
            PyTuple_GET_SIZE(given) == (i == DICT || i == NAMED ? 3 : 2))
            return (kind)i;
    return LEAF;
}

static int add_keys(tree *self, PyObject *keys)
{
    self->extra = PySequence_Tuple(keys);
    return self->extra ? 0 : -1;
}

static int tree_init(tree *self, PyObject *given, int depth, int *n_components)
{
    if (depth > 100) {
        PyErr_SetString(PyExc_RecursionError, "a structure is more than 100 levels deep");
        return -1;
    }
    if (given == Py_None) {
        ++*n_components;
        return 0;
    }
    self->kind = kind_of(given);
    PyObject *second = self->kind == LEAF ? NULL : PyTuple_GET_ITEM(given, 1);
    switch (self->kind) {
    case TUPLE:
    case LIST:
        return add_parts(self, second, depth, n_components);
    case DICT:
        if (add_keys(self, second) < 0 ||
            add_parts(self, PyTuple_GET_ITEM(given, 2), depth, n_components) < 0)
            return -1;
        return PyTuple_GET_SIZE(self->extra) == self->n ? 0 : refuse(given);
    case NAMED:
        self->extra = Py_NewRef(second);
        return add_parts(self, PyTuple_GET_ITEM(given, 2), depth, n_components);
    case DATASET:
        self->extra = Py_NewRef(second);
        ++*n_components;
        return 0;
    default:
        return refuse(given);
    }
}

/* ---- packing: `components` advances behind the taken ones, which become NULL ---- */

static PyObject *pack(const tree *self, PyObject ***components);

static PyObject *pack_dict(const tree *self, PyObject ***components)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < self->n; i++) {
        PyObject *part = pack(&self->parts[i], components);
        if (!part || PyDict_SetItem(dict, PyTuple_GET_ITEM(self->extra, i), part) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(part);
    }
    return dict;
}

/* Packs a tuple or a list. */
static PyObject *pack_sequence(const tree *self, PyObject ***components)
{
    bool list = self->kind == LIST;
    PyObject *made = list ? PyList_New(self->n) : PyTuple_New(self->n);
    for (int i = 0; made && i < self->n; i++) {
        PyObject *part = pack(&self->parts[i], components);
        if (!part)
            Py_CLEAR(made);
        else if (list)
            PyList_SET_ITEM(made, i, part);
        else
            PyTuple_SET_ITEM(made, i, part);
    }
    return made;
}

static PyObject *pack(const tree *self, PyObject ***components)
{
    PyObject *made, *first = self->kind == LEAF || self->kind == DATASET ? *(*components)++ : NULL;
    switch (self->kind) {
    case LEAF:
        (*components)[-1] = NULL;
        return first;
    case DATASET:
        return PyObject_CallOneArg(self->extra, first);
    case DICT:
        return pack_dict(self, components);
    case NAMED: {
        PyObject *parts = pack_sequence(self, components);
        made = parts ? PyObject_CallObject(self->extra, parts) : NULL;
        Py_XDECREF(parts);
        return made;
    }
    default:
        return pack_sequence(self, components);
    }
}

int structure_n_components(PyObject *self)
{
    return ((structure *)self)->n_components;
}

PyObject *structure_pack(PyObject *self, PyObject **components)
{
    const structure *own = (const structure *)self;
    PyObject **at = components;
    PyObject *made = pack(&own->root, &at);
    for (int i = 0; i < own->n_components; i++)
        Py_CLEAR(components[i]);
    return made;
}

static PyObject *method_pack(PyObject *self, PyObject *sequence)
{
    int n = structure_n_components(self);
    PyObject *tuple = PySequence_Tuple(sequence), *made = NULL;
    if (!tuple)
        return NULL;
    PyObject **components = PyMem_Calloc((size_t)n + 1, sizeof *components);
    if (!components)
        PyErr_NoMemory();
    else if (PyTuple_GET_SIZE(tuple) != n)
        PyErr_Format(PyExc_ValueError, "the structure has %d components, not %zd", n,
                     PyTuple_GET_SIZE(tuple));
    else {
        for (int i = 0; i < n; i++)
            components[i] = Py_NewRef(PyTuple_GET_ITEM(tuple, i));
        made = structure_pack(self, components);
    }
    PyMem_Free(components);
    Py_DECREF(tuple);
    return made;
}

/* ---- the type ---- */

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"tree", NULL};
    PyObject *given;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O:Structure", names, &given))
        return NULL;
    structure *self = (structure *)type->tp_alloc(type, 0);
    if (self && tree_init(&self->root, given, 0, &self->n_components) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int tree_visit(const tree *self, visitproc visit, void *arg)
{
    Py_VISIT(self->extra);
    for (int i = 0; i < self->n && self->parts; i++) {
        int r = tree_visit(&self->parts[i], visit, arg);
        if (r)
            return r;
    }
    return 0;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return tree_visit(&((structure *)self)->root, visit, arg);
}

/* There is no tp_clear: the collector breaks a cycle at the class or function in it. */
static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    tree_done(&((structure *)self)->root);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *get_n_components(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(structure_n_components(self));
}

static PyMethodDef methods[] = {
    {"pack", method_pack, METH_O, "The components of a sequence, in their structure."},
    {NULL},
};

static PyGetSetDef attributes_of_type[] = {
    {"n_components", get_n_components, NULL, "how many components it takes", NULL},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, make},
    {Py_tp_traverse, traverse},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes_of_type},
    {Py_tp_doc, "Structure(tree): how components lie in tuples, lists, dicts and named tuples"},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "plimsoll._core.Structure",
    .basicsize = sizeof(structure),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

int module_add_structures(PyObject *module)
{
    structure_type = dataset_add_type(module, &spec);
    return structure_type ? 0 : -1;
}
