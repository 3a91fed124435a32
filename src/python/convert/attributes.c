/* SPDX-License-Identifier: Apache-2.0 */
/* Reads attributes of ops from a dict. See tensor.h. */
#include <string.h>

#include "python/convert/convert.h"
#include "python/tensor/tensor.h"

static int refuse(int op, const char *name, PyObject *value, const char *wanted)
{
    if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "%s: attribute '%s' is %R: it takes %s", pl_op_name(op), name,
                     value, wanted);
    return -1;
}

static int take_int(int op, const char *name, PyObject *value, pl_attr *ret)
{
    PyObject *number = PyNumber_Index(value);
    if (!number)
        return refuse(op, name, value, "an integer");
    int64_t i = PyLong_AsLongLong(number);
    Py_DECREF(number);
    if (i == -1 && PyErr_Occurred())
        return -1;
    *ret = pl_attr_int(name, i);
    return 0;
}

static int take_float(int op, const char *name, PyObject *value, pl_attr *ret)
{
    double f = PyFloat_AsDouble(value);
    if (f == -1.0 && PyErr_Occurred())
        return refuse(op, name, value, "a number");
    *ret = pl_attr_float(name, f);
    return 0;
}

/* Returns a list in PyMem, which the caller frees; a single number is a list of one. */
static int take_ints(int op, const char *name, PyObject *value, pl_attr *ret)
{
    bool is_one = PyIndex_Check(value) && !PySequence_Check(value);
    PyObject *items = is_one ? PyTuple_Pack(1, value) : PySequence_Fast(value, "");
    if (!items)
        return refuse(op, name, value, "a list of integers");
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    int64_t *values = n <= INT32_MAX ? PyMem_New(int64_t, n + 1) : NULL;
    for (Py_ssize_t i = 0; values && i < n; i++) {
        PyObject *number = PyNumber_Index(PySequence_Fast_GET_ITEM(items, i));
        values[i] = number ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
        if (values[i] == -1 && PyErr_Occurred()) {
            PyMem_Free(values);
            Py_DECREF(items);
            return refuse(op, name, value, "a list of integers");
        }
    }
    Py_DECREF(items);
    if (!values) {
        PyErr_NoMemory();
        return -1;
    }
    *ret = pl_attr_ints(name, values, (int)n);
    return 0;
}

static int take_shape(int op, const char *name, PyObject *value, pl_attr *ret)
{
    pl_shape shape;
    if (convert_shape(value, &shape) < 0)
        return -1;
    if (shape.rank < 0)
        return refuse(op, name, value, "a shape whose rank is known");
    int64_t *values = PyMem_New(int64_t, shape.rank + 1);
    if (!values) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(values, shape.dims, (size_t)shape.rank * sizeof *values);
    *ret = (pl_attr){.name = name, .type = PL_ATTR_SHAPE, .n = shape.rank, .value.values = values};
    return 0;
}

static int take_text(int op, const char *name, PyObject *value, pl_attr *ret)
{
    const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8(value)
                       : PyBytes_Check(value) ? PyBytes_AS_STRING(value)
                                              : NULL;
    if (!text)
        return refuse(op, name, value, "a text");
    *ret = pl_attr_string(name, text);
    return 0;
}

/* The texts belong to the value; the lists are in PyMem. */
static int take(int op, int place, PyObject *value, pl_attr *ret)
{
    const char *name = pl_op_attr_name(op, place);
    switch (pl_op_attr_type(op, place)) {
    case PL_ATTR_INT:
        return take_int(op, name, value, ret);
    case PL_ATTR_NUMBER:
        if (PyIndex_Check(value) && !PyFloat_Check(value))
            return take_int(op, name, value, ret);
        return take_float(op, name, value, ret);
    case PL_ATTR_FLOAT:
        return take_float(op, name, value, ret);
    case PL_ATTR_BOOL: {
        int truth = PyObject_IsTrue(value);
        *ret = pl_attr_bool(name, truth > 0);
        return truth < 0 ? -1 : 0;
    }
    case PL_ATTR_DTYPE: {
        int dtype = convert_dtype(value);
        *ret = pl_attr_dtype(name, dtype > 0 ? (pl_dtype)dtype : PL_DTYPE_NONE);
        return dtype < 0 ? -1 : 0;
    }
    case PL_ATTR_SHAPE:
        return take_shape(op, name, value, ret);
    case PL_ATTR_INTS:
        return take_ints(op, name, value, ret);
    case PL_ATTR_STRING:
        return take_text(op, name, value, ret);
    case PL_ATTR_NONE:
        break;
    }
    return refuse(op, name, value, "nothing that is known here");
}

static int take_all(int op, PyObject *dict, pl_attr *by_place, int n_places)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : NULL;
        int place = name ? pl_op_attr_find(op, name) : -1;
        if (place < 0 || place >= n_places) {
            PyErr_Format(PyExc_TypeError, "%s has no attribute %R", pl_op_name(op), key);
            return -1;
        }
        if (value != Py_None && take(op, place, value, &by_place[place]) < 0)
            return -1;
    }
    return 0;
}

static void drop_lists(pl_attr *attrs, int n)
{
    for (int i = 0; i < n; i++)
        if (attrs[i].type == PL_ATTR_INTS || attrs[i].type == PL_ATTR_SHAPE)
            PyMem_Free((void *)attrs[i].value.values);
}

void attributes_drop(attributes *attrs)
{
    drop_lists(attrs->attrs, attrs->n);
}

int attributes_of_dict(int op, PyObject *dict, attributes *ret)
{
    ret->n = 0;
    if (!dict || dict == Py_None)
        return 0;
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_TypeError, "%s: attributes are a dict, not %R", pl_op_name(op), dict);
        return -1;
    }
    int n_places = pl_op_n_attrs(op);
    if (n_places > ATTRIBUTES_MAX)
        n_places = ATTRIBUTES_MAX;
    memset(ret->attrs, 0, (size_t)n_places * sizeof *ret->attrs);
    if (take_all(op, dict, ret->attrs, n_places) < 0) {
        drop_lists(ret->attrs, n_places);
        return -1;
    }
    for (int i = 0; i < n_places; i++)
        if (ret->attrs[i].type != PL_ATTR_NONE)
            ret->attrs[ret->n++] = ret->attrs[i];
    return 0;
}
