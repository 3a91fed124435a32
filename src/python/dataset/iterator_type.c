/* SPDX-License-Identifier: Apache-2.0 */
#include "python/dataset/iterator_type.h"

#include <stdlib.h>

#include "python/convert/component.h"
#include "python/convert/structure.h"
#include "python/dataset/dataset_type.h"
#include "python/dataset/pass.h"
#include "python/module/failure.h"
#include "python/tensor/tensor.h"

typedef struct iterator {
    PyObject ob_base;
    pass pass;
    PyObject *over; /* the Dataset */
    PyObject *structure;
    int n_components;
} iterator;

static PyTypeObject *iterator_type;

static pass *pass_of(PyObject *self)
{
    return &((iterator *)self)->pass;
}

/* ---- elements ---- */

/* Makes objects for all values, which it takes over; on failure it frees them all. */
static int make_objects(const pl_value *values, int n, PyObject **objects)
{
    bool failed = false;
    for (int i = 0; i < n; i++) {
        objects[i] = failed ? NULL : component_object(values[i]);
        if (failed) {
            pl_tensor_unref(values[i].tensor);
            pl_dataset_unref(values[i].dataset);
        }
        failed = failed || !objects[i];
    }
    for (int i = 0; failed && i < n; i++)
        Py_CLEAR(objects[i]);
    return failed ? -1 : 0;
}

static PyObject *pack(iterator *self, PyObject **objects)
{
    if (self->structure)
        return structure_pack(self->structure, objects);
    if (self->n_components == 1)
        return objects[0];
    PyObject *tuple = PyTuple_New(self->n_components);
    for (int i = 0; i < self->n_components; i++)
        if (tuple)
            PyTuple_SET_ITEM(tuple, i, objects[i]);
        else
            Py_DECREF(objects[i]);
    return tuple;
}

/* Tracing the function would keep the element alive: it must run in Python instead. -1 with an
 * exception. */
static int refuse_in_trace(void)
{
    PyObject *is_trace = PyObject_GetAttrString(tensor_in.graph, "_is_trace");
    if (!is_trace && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        return 0;
    }
    int refused = is_trace ? PyObject_IsTrue(is_trace) : -1;
    Py_XDECREF(is_trace);
    if (refused > 0)
        failure_raise_class("OperatorNotAllowedInGraphError",
                            "the next element of a dataset is asked for");
    return refused == 0 ? 0 : -1;
}

static PyObject *next(PyObject *object)
{
    iterator *self = (iterator *)object;
    if (tensor_in.graph && refuse_in_trace() < 0)
        return NULL;
    struct {
        pl_value value;
        PyObject *object;
    } few[8];
    int n = self->n_components;
    pl_value *values = n <= 8 ? (pl_value *)few : PyMem_Malloc((size_t)n * sizeof few[0]);
    if (!values)
        return PyErr_NoMemory();
    PyObject **objects = (PyObject **)(values + n), *element = NULL;
    if (pass_pull(&self->pass, values) > 0 && make_objects(values, n, objects) == 0)
        element = pack(self, objects);
    if (n > 8)
        PyMem_Free(values);
    return element;
}

/* ---- the state of the pass ---- */

static PyObject *explain(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"json", NULL};
    pass *self = pass_of(object);
    int as_json = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|p:explain", names, &as_json) ||
        pass_enter(self) < 0)
        return NULL;
    char *text = NULL;
    pl_error error = {0};
    int r = pl_iterator_explain(self->iterator, as_json != 0, &text, &error);
    pass_leave(self);
    PyObject *result = r < 0 ? failure_raise(&error) : PyUnicode_DecodeFSDefault(text);
    free(text);
    return result;
}

static PyObject *text_or_none(const char *text)
{
    return text ? PyUnicode_DecodeFSDefault(text) : Py_NewRef(Py_None);
}

static PyObject *number_or_none(int64_t number)
{
    return number >= 0 ? PyLong_FromLongLong(number) : Py_NewRef(Py_None);
}

/* The same words as in a quarantine's manifest. */
static PyObject *bad_object(const pl_bad_element *bad)
{
    return Py_BuildValue("{sNsNsNsNsNsssNsN}", "message", text_or_none(bad->message), "stage",
                         text_or_none(bad->stage), "index", number_or_none(bad->index), "path",
                         text_or_none(bad->path), "offset", number_or_none(bad->offset), "code",
                         pl_error_name(bad->code), "reason", text_or_none(bad->reason), "op",
                         text_or_none(bad->error->op[0] ? bad->error->op : NULL));
}

static PyObject *bads(PyObject *object, PyObject *unused)
{
    (void)unused;
    pass *self = pass_of(object);
    pl_bad_element found[64];
    if (pass_enter(self) < 0)
        return NULL;
    int n = pl_iterator_bads(self->iterator, found, 64);
    n = n < 64 ? n : 64;
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *bad = bad_object(&found[i]);
        if (bad)
            PyList_SET_ITEM(list, i, bad);
        else
            Py_CLEAR(list);
    }
    pass_leave(self);
    return list;
}

static PyObject *bad_count(PyObject *object, PyObject *unused)
{
    (void)unused;
    pass *self = pass_of(object);
    if (pass_enter(self) < 0)
        return NULL;
    pl_bad_count count = pl_iterator_bad_count(self->iterator);
    pass_leave(self);
    return Py_BuildValue("(KK)", (unsigned long long)count.n_bad,
                         (unsigned long long)count.n_items);
}

/* ---- checkpoints ---- */

static int save_to(pl_iterator *pulled, void *path, pl_error *reterr)
{
    return pl_iterator_save(pulled, path, reterr);
}

static int restore_from(pl_iterator *pulled, void *path, pl_error *reterr)
{
    return pl_iterator_restore(pulled, path, reterr);
}

static PyObject *at_path(PyObject *object, PyObject *path, pass_call *act)
{
    pass *self = pass_of(object);
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    int r = pass_enter(self);
    if (r == 0) {
        r = pass_wait(self, act, PyBytes_AS_STRING(bytes));
        pass_leave(self);
    }
    Py_DECREF(bytes);
    return r < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *save(PyObject *self, PyObject *path)
{
    return at_path(self, path, save_to);
}

static PyObject *restore(PyObject *self, PyObject *path)
{
    return at_path(self, path, restore_from);
}

static PyObject *cancel(PyObject *self, PyObject *unused)
{
    (void)unused;
    pass_cancel(pass_of(self));
    Py_RETURN_NONE;
}

/* ---- the type ---- */

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"dataset", "structure", NULL};
    PyObject *over, *structure = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!|O:Iterator", names, dataset_type,
                                     &over, &structure))
        return NULL;
    int n = pl_dataset_n_components(((dataset *)over)->set);
    if (structure != Py_None && Py_TYPE(structure) != structure_type)
        return PyErr_Format(PyExc_TypeError, "a Structure is expected, not %.80s",
                            Py_TYPE(structure)->tp_name);
    if (structure != Py_None && structure_n_components(structure) != n)
        return PyErr_Format(PyExc_ValueError, "the structure has %d components, the dataset %d",
                            structure_n_components(structure), n);
    iterator *self = (iterator *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->over = Py_NewRef(over);
    self->structure = structure == Py_None ? NULL : Py_NewRef(structure);
    self->n_components = n;
    if (pass_begin(&self->pass, ((dataset *)over)->set) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    iterator *self = (iterator *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->over);
    Py_VISIT(self->structure);
    return 0;
}

static void dealloc(PyObject *object)
{
    iterator *self = (iterator *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    pass_end(&self->pass);
    Py_XDECREF(self->over);
    Py_XDECREF(self->structure);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"explain", (PyCFunction)(void (*)(void))explain, METH_VARARGS | METH_KEYWORDS,
     "What each stage did and waited for: a table, or JSON."},
    {"bads", bads, METH_NOARGS, "The first 64 bad elements up to here: dicts."},
    {"bad_count", bad_count, METH_NOARGS, "(bad elements, all elements of sources) up to here."},
    {"save", save, METH_O, "Writes the pass as it is to a file."},
    {"restore", restore, METH_O, "Goes on where the file was written."},
    {"cancel", cancel, METH_NOARGS, "Ends the pass: next() raises CancelledError."},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, make},
    {Py_tp_traverse, traverse},
    {Py_tp_dealloc, dealloc},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, next},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Iterator(dataset, structure=None): one pass"},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "plimsoll._core.Iterator",
    .basicsize = sizeof(iterator),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int module_add_iterators(PyObject *module)
{
    iterator_type = dataset_add_type(module, &spec);
    return iterator_type ? pass_add_exit() : -1;
}

/* ---- running a whole dataset ---- */

static PyObject *take_only(pass *self, int n)
{
    pl_value *values = PyMem_Calloc((size_t)n + 1, sizeof *values);
    if (!values)
        return PyErr_NoMemory();
    int r = pass_pull(self, values);
    if (r == 0)
        PyErr_SetString(PyExc_RuntimeError, "the dataset has no element");
    PyObject *list = r > 0 ? PyList_New(n) : NULL;
    if (list && make_objects(values, n, ((PyListObject *)list)->ob_item) < 0)
        Py_CLEAR(list);
    PyMem_Free(values);
    return list;
}

PyObject *iterator_only_element(pl_dataset *set)
{
    pass one;
    int n = pl_dataset_n_components(set), r = pass_begin(&one, set);
    pl_dataset_unref(set);
    if (r < 0)
        return NULL;
    PyObject *list = take_only(&one, n);
    pass_end(&one);
    return list;
}

typedef struct folder {
    const char *path;
    int64_t n_shards;
} folder;

static int save_rest(pl_iterator *pulled, void *context, pl_error *reterr)
{
    const folder *to = context;
    return pl_iterator_save_rest(pulled, to->path, to->n_shards, reterr);
}

PyObject *iterator_save_all(pl_dataset *set, const char *path, int64_t n_shards)
{
    pass one;
    folder to = {path, n_shards};
    if (pass_begin(&one, set) < 0)
        return NULL;
    int r = pass_enter(&one);
    if (r == 0) {
        r = pass_wait(&one, save_rest, &to);
        pass_leave(&one);
    }
    pass_end(&one);
    return r < 0 ? NULL : Py_NewRef(Py_None);
}
