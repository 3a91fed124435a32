/* SPDX-License-Identifier: Apache-2.0 */
#include "python/dataset/dataset_arguments.h"

#include <limits.h>
#include <string.h>

#include "python/convert/component.h"
#include "python/convert/convert.h"
#include "python/dataset/dataset_type.h"
#include "python/function/callback.h"
#include "python/function/function.h"

/* ---- single arguments ---- */

static int wrong_kind(const argument *a, const char *expected)
{
    PyErr_Format(PyExc_TypeError, "%s is expected, not %.80s", expected,
                 Py_TYPE(a->object)->tp_name);
    return -1;
}

static int read_dataset(argument *a)
{
    if (!dataset_check(a->object))
        return wrong_kind(a, "a Dataset");
    a->dataset = ((dataset *)a->object)->set;
    return 0;
}

static int read_number(argument *a)
{
    PyObject *index = PyNumber_Index(a->object);
    a->number = index ? PyLong_AsLongLong(index) : -1;
    Py_XDECREF(index);
    if (PyErr_Occurred())
        return -1;
    if (a->kind == 'I' || (a->number >= INT_MIN && a->number <= INT_MAX))
        return 0;
    PyErr_Format(PyExc_OverflowError, "%lld is out of range", (long long)a->number);
    return -1;
}

static int read_path(argument *a)
{
    if (a->object == Py_None)
        return 0;
    if (!PyUnicode_FSConverter(a->object, &a->kept))
        return -1;
    a->text = PyBytes_AS_STRING(a->kept);
    return 0;
}

/* Makes a tuple of the items in `object`, and room for a pointer to each. */
static int read_sequence(argument *a, PyObject *object, void ***ret_room, size_t bytes)
{
    a->kept = PySequence_Tuple(object);
    if (!a->kept)
        return -1;
    a->n = (int)PyTuple_GET_SIZE(a->kept);
    *ret_room = PyMem_Calloc((size_t)a->n + 1, bytes);
    if (!*ret_room)
        PyErr_NoMemory();
    return *ret_room ? 0 : -1;
}

static int read_datasets(argument *a)
{
    if (read_sequence(a, a->object, (void ***)&a->datasets, sizeof *a->datasets) < 0)
        return -1;
    for (int i = 0; i < a->n; i++) {
        PyObject *one = PyTuple_GET_ITEM(a->kept, i);
        if (!dataset_check(one))
            return wrong_kind(a, "a sequence of Datasets");
        a->datasets[i] = ((dataset *)one)->set;
    }
    return 0;
}

/* Replaces the tuple's items by bytes objects, which hold the texts. */
static int read_paths(argument *a)
{
    bool one = PyUnicode_Check(a->object) || PyBytes_Check(a->object);
    PyObject *all = one ? PyTuple_Pack(1, a->object) : Py_NewRef(a->object);
    PyObject *list = all ? PySequence_List(all) : NULL;
    Py_XDECREF(all);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        PyObject *bytes;
        if (!PyUnicode_FSConverter(PyList_GET_ITEM(list, i), &bytes))
            Py_CLEAR(list);
        else
            PyList_SetItem(list, i, bytes);
    }
    int r = list ? read_sequence(a, list, (void ***)&a->texts, sizeof *a->texts) : -1;
    for (int i = 0; r == 0 && i < a->n; i++)
        a->texts[i] = PyBytes_AS_STRING(PyTuple_GET_ITEM(a->kept, i));
    Py_XDECREF(list);
    return r;
}

/* ---- arguments that depend on the Dataset and the values before them ---- */

static const argument *find(const dataset_arguments *self, char kind)
{
    for (int i = 0; i < self->n; i++)
        if (self->each[i].kind == kind)
            return &self->each[i];
    return NULL;
}

/* One value for each component; -1 with an exception. */
static int read_values(const dataset_arguments *self, argument *a)
{
    if (a->object == Py_None)
        return 0;
    const pl_dataset *input = find(self, 'D')->dataset;
    int n = pl_dataset_n_components(input);
    pl_dtype *dtypes = PyMem_Calloc((size_t)n + 1, sizeof *dtypes);
    if (!dtypes) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < n; i++)
        dtypes[i] = pl_dataset_spec(input, i)->dtype;
    int r = component_tensors(a->object, dtypes, n, &a->tensors, &a->n);
    PyMem_Free(dtypes);
    return r;
}

static int read_shapes(const dataset_arguments *self, argument *a)
{
    int n = pl_dataset_n_components(find(self, 'D')->dataset);
    if (a->object == Py_None)
        return 0;
    if (read_sequence(a, a->object, (void ***)&a->shapes, sizeof *a->shapes) < 0)
        return -1;
    if (a->n != n) {
        PyErr_Format(PyExc_ValueError, "%d shapes are given for %d components", a->n, n);
        return -1;
    }
    for (int i = 0; i < n; i++)
        if (convert_shape(PyTuple_GET_ITEM(a->kept, i), &a->shapes[i]) < 0)
            return -1;
    return 0;
}

/* The shape that a state may take: only dimensions that a traced function keeps stay known. */
static pl_shape state_shape(const pl_shape *initial, PyObject *function_object, int i)
{
    pl_shape shape = *initial;
    if (!PyObject_TypeCheck(function_object, function_type) ||
        ((function *)function_object)->n_outputs <= i)
        return shape;
    const pl_shape next = tensor_shape(((function *)function_object)->outputs[i]);
    if (next.rank != shape.rank)
        shape.rank = PL_RANK_UNKNOWN;
    for (int axis = 0; axis < shape.rank; axis++)
        if (next.dims[axis] != shape.dims[axis])
            shape.dims[axis] = PL_UNKNOWN;
    return shape;
}

/* The specs of the function's arguments: the values, then an element. */
static pl_spec *input_specs(const dataset_arguments *self, PyObject *function_object, int *ret_n)
{
    const argument *state = find(self, 'T');
    const pl_dataset *input = find(self, 'D')->dataset;
    int n_state = state ? state->n : 0, n_input = pl_dataset_n_components(input);
    pl_spec *specs = PyMem_Calloc((size_t)(n_state + n_input) + 1, sizeof *specs);
    if (!specs) {
        PyErr_NoMemory();
        return NULL;
    }
    for (int i = 0; i < n_state; i++)
        specs[i] =
            (pl_spec){.dtype = pl_tensor_dtype(state->tensors[i]),
                      .shape = state_shape(pl_tensor_shape(state->tensors[i]), function_object, i)};
    memcpy(specs + n_state, pl_dataset_spec(input, 0), (size_t)n_input * sizeof *specs);
    *ret_n = n_state + n_input;
    return specs;
}

static int read_function(dataset_arguments *self, argument *a)
{
    int n, r = 0;
    pl_spec *specs = input_specs(self, a->object, &n);
    if (!specs)
        return -1;
    if (Py_TYPE(a->object) == callback_type)
        a->function = callback_function(a->object, n);
    else if (PyObject_TypeCheck(a->object, function_type))
        r = function_for_dataset((function *)a->object, specs, n, &a->function);
    else
        r = wrong_kind(a, "a Function or a Callback");
    self->function_is_ours = r == 0;
    PyMem_Free(specs);
    return r;
}

static int read_generator(argument *a)
{
    a->kept = callback_new(a->object, a[1].object);
    return a->kept ? 0 : -1;
}

/* ---- reading them all ---- */

static int read_one(dataset_arguments *self, argument *a)
{
    switch (a->kind) {
    case 'D':
        return read_dataset(a);
    case 'I':
    case 'N':
        return read_number(a);
    case 'B':
        a->number = PyObject_IsTrue(a->object);
        return a->number < 0 ? -1 : 0;
    case 'R':
        a->real = PyFloat_AsDouble(a->object);
        return PyErr_Occurred() ? -1 : 0;
    case 'P':
        return read_path(a);
    case 'L':
        return read_datasets(a);
    case 'S':
        return read_paths(a);
    case 'T':
        return component_tensors(a->object, NULL, 0, &a->tensors, &a->n);
    case 'V':
        return read_values(self, a);
    case 'Z':
        return read_shapes(self, a);
    case 'F':
        return read_function(self, a);
    case 'G':
        return read_generator(a);
    default:
        return 0;
    }
}

/* Finds the argument given by the name at `at` in the signature; NULL: not given. */
static PyObject *given_by_name(const char *at, size_t length, PyObject *const *values,
                               PyObject *names)
{
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
        Py_ssize_t n;
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(names, i), &n);
        if (name && (size_t)n == length && memcmp(name, at, length) == 0)
            return values[i];
    }
    return NULL;
}

static int refuse(const char *function_name, const char *what, const char *signature)
{
    PyErr_Format(PyExc_TypeError, "%s() %s; its arguments are: %s", function_name, what, signature);
    return -1;
}

/* Who gets what. */
static int distribute(dataset_arguments *self, const char *function_name, const char *signature,
                      PyObject *const *given, Py_ssize_t n_given, PyObject *names)
{
    Py_ssize_t n_named = names ? PyTuple_GET_SIZE(names) : 0, n_used = 0;
    const char *at = signature;
    while (*at) {
        const char *colon = strchr(at, ':');
        bool optional = colon[2] == '=';
        argument *a = &self->each[self->n];
        *a = (argument){.kind = colon[1]};
        if (self->n < n_given)
            a->object = given[self->n];
        else
            a->object = given_by_name(at, (size_t)(colon - at), given + n_given, names);
        n_used += a->object && self->n >= n_given;
        if (!a->object && !optional)
            return refuse(function_name, "is given too little", signature);
        self->n++;
        at = colon + (optional ? 3 : 2);
        at += *at == ' ';
    }
    if (n_given > self->n || n_used < n_named)
        return refuse(function_name, "is given more than it takes", signature);
    return 0;
}

int dataset_arguments_read(dataset_arguments *self, const char *function_name,
                           const char *signature, PyObject *const *given, Py_ssize_t n_given,
                           PyObject *names)
{
    self->n = 0;
    self->function_is_ours = false;
    int r = distribute(self, function_name, signature, given, n_given, names);
    for (int i = 0; r == 0 && i < self->n; i++)
        if (self->each[i].object)
            r = read_one(self, &self->each[i]);
    if (r < 0)
        dataset_arguments_done(self);
    return r;
}

void dataset_arguments_gave_function(dataset_arguments *self)
{
    self->function_is_ours = false;
}

void dataset_arguments_done(dataset_arguments *self)
{
    const argument *called = find(self, 'F');
    if (self->function_is_ours && called->function.release)
        called->function.release(called->function.context);
    self->function_is_ours = false;
    for (int i = 0; i < self->n; i++) {
        argument *a = &self->each[i];
        component_tensors_free(a->tensors, a->n);
        PyMem_Free(a->datasets);
        PyMem_Free(a->texts);
        PyMem_Free(a->shapes);
        Py_CLEAR(a->kept);
    }
    self->n = 0;
}

int dataset_arguments_origins(const dataset_arguments *self, PyObject **ret_inputs,
                              PyObject **ret_function)
{
    const argument *many = find(self, 'L'), *called = find(self, 'F'), *begun = find(self, 'G');
    PyObject *inputs = PyList_New(0);
    int r = inputs ? 0 : -1;
    for (int i = 0; r == 0 && i < self->n; i++)
        if (self->each[i].kind == 'D')
            r = PyList_Append(inputs, self->each[i].object);
    *ret_function = called ? called->object : begun ? begun->kept : NULL;
    *ret_inputs = NULL;
    if (r == 0 && many)
        *ret_inputs = Py_NewRef(many->kept);
    else if (r == 0 && PyList_GET_SIZE(inputs) > 0)
        r = (*ret_inputs = PyList_AsTuple(inputs)) ? 0 : -1;
    Py_XDECREF(inputs);
    return r;
}
