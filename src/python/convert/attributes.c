/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of ops: from a dict, into one piece of memory. See tensor.h.
 *
 * The bytes are, for each attribute that was given in the order of the op's places: a head of
 * place, type and length, then what it is, padded to 8. Numbers that an op takes as either stay
 * what they were: 1 and 1.0 are different attributes. */
#include <string.h>

#include "python/convert/convert.h"
#include "python/tensor/tensor.h"

typedef struct head {
    int32_t place, type;
    int64_t n;
} head;

enum { PLACES_MAX = 32 };

static size_t payload_bytes(const pl_attr *attr)
{
    switch (attr->type) {
    case PL_ATTR_SHAPE:
    case PL_ATTR_INTS:
        return (size_t)attr->n * sizeof(int64_t);
    case PL_ATTR_STRING:
        return (strlen(attr->value.text) + 8) / 8 * 8;
    default:
        return sizeof(int64_t);
    }
}

/* The attribute as it then is, whose lists and texts lie behind the head. */
static pl_attr write_one(const pl_attr *attr, int place, char *to)
{
    pl_attr copy = *attr;
    const head first = {.place = place, .type = attr->type, .n = attr->n};
    memcpy(to, &first, sizeof first);
    char *payload = to + sizeof first;
    switch (attr->type) {
    case PL_ATTR_SHAPE:
    case PL_ATTR_INTS:
        if (attr->n > 0)
            memcpy(payload, attr->value.values, payload_bytes(attr));
        copy.value.values = (const int64_t *)payload;
        break;
    case PL_ATTR_STRING:
        memset(payload, 0, payload_bytes(attr));
        memcpy(payload, attr->value.text, strlen(attr->value.text));
        copy.value.text = payload;
        break;
    case PL_ATTR_DTYPE: {
        int64_t dtype = attr->value.dtype;
        memcpy(payload, &dtype, sizeof dtype);
        break;
    }
    default:
        memcpy(payload, &attr->value, sizeof(int64_t));
    }
    return copy;
}

/* By place; those of type NONE are not there. */
static attributes *pack(int op, const pl_attr *by_place, int n_places)
{
    size_t n_bytes = 0;
    int n_attrs = 0;
    for (int i = 0; i < n_places; i++) {
        if (by_place[i].type == PL_ATTR_NONE)
            continue;
        n_attrs++;
        n_bytes += sizeof(head) + payload_bytes(&by_place[i]);
    }
    attributes *made = PyMem_Malloc(sizeof *made + (size_t)n_attrs * sizeof *made->attrs + n_bytes);
    if (!made) {
        PyErr_NoMemory();
        return NULL;
    }
    char *bytes = (char *)&made->attrs[n_attrs];
    *made = (attributes){.n_refs = 1, .n_attrs = n_attrs, .n_bytes = n_bytes, .bytes = bytes};
    for (int i = 0, k = 0; i < n_places; i++) {
        if (by_place[i].type == PL_ATTR_NONE)
            continue;
        made->attrs[k] = write_one(&by_place[i], i, bytes);
        made->attrs[k++].name = pl_op_attr_name(op, i);
        bytes += sizeof(head) + payload_bytes(&by_place[i]);
    }
    return made;
}

attributes *attributes_of(int op, const pl_attr *attrs, int n_attrs)
{
    pl_attr by_place[PLACES_MAX] = {0};
    int n_places = pl_op_n_attrs(op);
    for (int i = 0; i < n_attrs; i++) {
        int place = pl_op_attr_find(op, attrs[i].name);
        if (place < 0 || place >= PLACES_MAX || n_places > PLACES_MAX) {
            PyErr_Format(PyExc_SystemError, "%s has no attribute '%s'", pl_op_name(op),
                         attrs[i].name);
            return NULL;
        }
        by_place[place] = attrs[i];
    }
    return pack(op, by_place, n_places);
}

attributes *attributes_ref(attributes *attrs)
{
    if (attrs)
        attrs->n_refs++;
    return attrs;
}

void attributes_unref(attributes *attrs)
{
    if (attrs && --attrs->n_refs == 0)
        PyMem_Free(attrs);
}

/* ---- from Python ---- */

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

/* The list is PyMem's, and the caller's; a single number is a list of one. */
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

/* The texts are the value's, the lists PyMem's. */
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

int attributes_of_dict(int op, PyObject *dict, attributes **ret)
{
    *ret = NULL;
    if (!dict || dict == Py_None)
        return 0;
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_TypeError, "%s: attributes are a dict, not %R", pl_op_name(op), dict);
        return -1;
    }
    pl_attr by_place[PLACES_MAX] = {0};
    int n_places = pl_op_n_attrs(op);
    if (n_places > PLACES_MAX)
        n_places = PLACES_MAX;
    int r = take_all(op, dict, by_place, n_places);
    if (r == 0) {
        *ret = pack(op, by_place, n_places);
        r = *ret ? (*ret)->n_attrs > 0 : -1;
        if (r == 0) {
            attributes_unref(*ret);
            *ret = NULL;
        }
    }
    for (int i = 0; i < n_places; i++)
        if (by_place[i].type == PL_ATTR_INTS || by_place[i].type == PL_ATTR_SHAPE)
            PyMem_Free((void *)by_place[i].value.values);
    return r;
}
