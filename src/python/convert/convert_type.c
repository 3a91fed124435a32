/* SPDX-License-Identifier: Apache-2.0 */
/* Dtypes and shapes between Python and the library. Python defines the classes and passes them to
 * register(). */
#include <string.h>

#include "python/convert/convert.h"

enum { N_DTYPES = PL_STRING + 1 };

static PyObject *dtype_objects[N_DTYPES]; /* by number; NULL: not registered yet */
static PyObject *shape_class;

static const struct {
    const char *name;
    pl_kind kind;
    size_t bytes;
} rows[N_DTYPES] = {[PL_DTYPE_NONE] = {"none", PL_KIND_NONE, 0},
#define ROW(number, constant, name, descr, bytes, kind) [number] = {name, kind, bytes},
                    PL_DTYPE_TABLE(ROW)
#undef ROW
};

const char *convert_dtype_name(pl_dtype dtype)
{
    return (unsigned)dtype < N_DTYPES ? rows[dtype].name : "none";
}

pl_kind convert_dtype_kind(pl_dtype dtype)
{
    return (unsigned)dtype < N_DTYPES ? rows[dtype].kind : PL_KIND_NONE;
}

size_t convert_dtype_bytes(pl_dtype dtype)
{
    return (unsigned)dtype < N_DTYPES ? rows[dtype].bytes : 0;
}

static bool is_integer(pl_kind kind)
{
    return kind == PL_KIND_SIGNED || kind == PL_KIND_UNSIGNED;
}

bool convert_dtype_fits(pl_dtype from, pl_dtype to)
{
    pl_kind own = convert_dtype_kind(from), wanted = convert_dtype_kind(to);
    if (is_integer(own))
        return is_integer(wanted) || wanted == PL_KIND_FLOAT;
    return own == wanted;
}

PyObject *convert_dtype_object(pl_dtype dtype)
{
    PyObject *object = (unsigned)dtype < N_DTYPES ? dtype_objects[dtype] : NULL;
    return object ? Py_NewRef(object) : PyUnicode_FromString(convert_dtype_name(dtype));
}

/* ---- dtypes that Python names ---- */

static int by_name(const char *text)
{
    static const struct {
        const char *name;
        pl_dtype dtype;
    } others[] = {
        {"float", PL_F32},     {"double", PL_F64},    {"half", PL_F16},       {"int", PL_I32},
        {"bool_", PL_BOOL},    {"str", PL_STRING},    {"bytes", PL_STRING},   {"str_", PL_STRING},
        {"bytes_", PL_STRING}, {"object", PL_STRING}, {"object_", PL_STRING},
    };
    for (int i = 1; i < N_DTYPES; i++)
        if (strcmp(rows[i].name, text) == 0)
            return i;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, text) == 0)
            return others[i].dtype;
    return -1;
}

/* Classes of Python or NumPy. */
static int by_class(PyTypeObject *class)
{
    if (class == &PyFloat_Type)
        return PL_F32;
    if (class == &PyLong_Type)
        return PL_I32;
    if (class == &PyBool_Type)
        return PL_BOOL;
    const char *dot = strrchr(class->tp_name, '.');
    return by_name(dot ? dot + 1 : class->tp_name);
}

/* "bytes24" and "str96" include a width. */
static int by_attribute(PyObject *value)
{
    PyObject *name = PyObject_GetAttrString(value, "name");
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    int found = -1;
    if (text) {
        found = by_name(text);
        if (found < 0 && (strncmp(text, "bytes", 5) == 0 || strncmp(text, "str", 3) == 0))
            found = PL_STRING;
    }
    PyErr_Clear();
    Py_XDECREF(name);
    return found;
}

int convert_dtype(PyObject *value)
{
    for (int i = 1; i < N_DTYPES; i++)
        if (dtype_objects[i] == value)
            return i;
    if (value == Py_None)
        return PL_DTYPE_NONE;
    int found = -1;
    if (PyUnicode_Check(value)) {
        const char *text = PyUnicode_AsUTF8(value);
        found = text ? by_name(text) : -1;
    } else if (PyType_Check(value)) {
        found = by_class((PyTypeObject *)value);
    } else if (PyLong_CheckExact(value)) {
        long number = PyLong_AsLong(value);
        found = number >= 0 && number < N_DTYPES ? (int)number : -1;
    } else {
        found = by_attribute(value);
    }
    if (found < 0 && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "Cannot convert the argument %R to a TensorFlow DType.",
                     value);
    return found;
}

/* ---- shapes ---- */

static int take_dim(PyObject *item, int64_t *ret_dim)
{
    *ret_dim = PL_UNKNOWN;
    if (item == Py_None)
        return 0;
    PyObject *number = PyNumber_Index(item);
    if (!number) {
        PyObject *value = PyObject_GetAttrString(item, "value"); /* a Dimension */
        if (!value || value == item)
            return -1;
        PyErr_Clear();
        int r = value == Py_None ? 0 : take_dim(value, ret_dim);
        Py_DECREF(value);
        return r;
    }
    *ret_dim = PyLong_AsLongLong(number);
    Py_DECREF(number);
    if (*ret_dim == -1 && PyErr_Occurred())
        return -1;
    if (*ret_dim < -1) {
        PyErr_Format(PyExc_ValueError, "Dimension %R must be >= 0", item);
        return -1;
    }
    return 0;
}

static int take_dims(PyObject *value, pl_shape *ret_shape)
{
    PyObject *items = PySequence_Fast(value, "a shape is None or a list of dimensions");
    if (!items)
        return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    int r = 0;
    if (n > PL_RANK_MAX) {
        PyErr_Format(PyExc_ValueError, "a shape of %zd axes: at most %d are possible", n,
                     PL_RANK_MAX);
        r = -1;
    }
    pl_shape shape = {.rank = (int32_t)n};
    for (Py_ssize_t i = 0; r == 0 && i < n; i++)
        r = take_dim(PySequence_Fast_GET_ITEM(items, i), &shape.dims[i]);
    Py_DECREF(items);
    if (r == 0)
        *ret_shape = shape;
    return r;
}

int convert_shape(PyObject *value, pl_shape *ret_shape)
{
    *ret_shape = (pl_shape){.rank = PL_RANK_UNKNOWN};
    if (value == Py_None)
        return 0;
    if (PyLong_Check(value)) {
        ret_shape->rank = 1;
        return take_dim(value, &ret_shape->dims[0]);
    }
    if (shape_class && PyObject_TypeCheck(value, (PyTypeObject *)shape_class)) {
        PyObject *rank = PyObject_GetAttrString(value, "rank");
        bool unknown = rank == Py_None;
        Py_XDECREF(rank);
        if (!rank)
            return -1;
        if (unknown)
            return 0;
    }
    return take_dims(value, ret_shape);
}

PyObject *convert_shape_tuple(const pl_shape *shape)
{
    if (shape->rank < 0)
        Py_RETURN_NONE;
    PyObject *tuple = PyTuple_New(shape->rank);
    for (int i = 0; tuple && i < shape->rank; i++) {
        int64_t dim = shape->dims[i];
        PyObject *item = dim < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(dim);
        if (!item)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

PyObject *convert_shape_object(const pl_shape *shape)
{
    PyObject *tuple = convert_shape_tuple(shape);
    if (!tuple || !shape_class)
        return tuple;
    PyObject *made = PyObject_CallOneArg(shape_class, tuple);
    Py_DECREF(tuple);
    return made;
}

/* ---- the classes ---- */

static PyObject *set_classes(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"dtypes", "tensor_shape", NULL};
    PyObject *list, *class;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO:register", names, &list, &class))
        return NULL;
    if (!PyType_Check(class))
        return PyErr_Format(PyExc_TypeError, "register(): tensor_shape is %R: it takes a class",
                            class);
    PyObject *items = PySequence_Fast(list, "register(): dtypes is a list");
    if (!items)
        return NULL;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    for (Py_ssize_t i = 1; i < n && i < N_DTYPES; i++)
        Py_XSETREF(dtype_objects[i], Py_NewRef(PySequence_Fast_GET_ITEM(items, i)));
    Py_DECREF(items);
    Py_XSETREF(shape_class, Py_NewRef(class));
    Py_RETURN_NONE;
}

static PyObject *dtype_number(PyObject *module, PyObject *value)
{
    (void)module;
    int number = convert_dtype(value);
    return number < 0 ? NULL : PyLong_FromLong(number);
}

static PyMethodDef functions[] = {
    {"register", (PyCFunction)(void (*)(void))set_classes, METH_VARARGS | METH_KEYWORDS,
     "register(dtypes, tensor_shape)\n--\n\nThe classes that dtypes and shapes are given as."},
    {"dtype_number", dtype_number, METH_O,
     "dtype_number(dtype)\n--\n\nThe library's number of a dtype; 0 for None."},
    {NULL, NULL, 0, NULL},
};

int module_add_types(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
