/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as buffers and NumPy arrays: views of the tensor's memory, which stays pinned as long as
 * a view exists. See convert.h. */
#include <string.h>

#include "python/convert/convert.h"
#include "python/module/failure.h"
#include "python/tensor/tensor_slots.h"

enum { NUMPY_COPY_BYTES = 1 << 20 }; /* .numpy() copies up to this size, writable */

/* ---- buffers ---- */

typedef struct layout {
    Py_ssize_t shape[PL_RANK_MAX], strides[PL_RANK_MAX];
} layout;

static const char *format_of(pl_dtype dtype)
{
    switch (dtype) {
    case PL_BOOL:
        return "?";
    case PL_U8:
        return "B";
    case PL_I8:
        return "b";
    case PL_U16:
        return "H";
    case PL_I16:
        return "h";
    case PL_U32:
        return "I";
    case PL_I32:
        return "i";
    case PL_U64:
        return "L";
    case PL_I64:
        return "l";
    case PL_F16:
        return "e";
    case PL_F32:
        return "f";
    case PL_F64:
        return "d";
    default:
        return NULL;
    }
}

/* When NumPy asks for a buffer, it ignores every error and tries __array__(). An interrupt is
 * reported only once, so we note it here and raise it there. */
static PyObject *interrupted;

static void note_interrupt(PyObject *self)
{
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        interrupted = self; /* compared, never used */
}

static bool take_interrupt(PyObject *self)
{
    bool was = interrupted == self;
    interrupted = NULL;
    if (was)
        PyErr_SetNone(PyExc_KeyboardInterrupt);
    return was;
}

/* A tensor that does not fit in memory as an array may still be written to a file, and read in
 * parts. */
static void pin_failed(pl_error *error)
{
    if (error->code == PL_EBUDGET)
        pl_error_reword(error, "%.360s, or write it to a file: plimsoll.save(tensor, path)",
                        pl_error_reason(error));
    failure_raise(error);
}

static int fill_view(PyObject *self, pl_tensor *value, Py_buffer *view, int flags)
{
    const void *data;
    int64_t strides[PL_RANK_MAX];
    pl_error error;
    pl_error_init(&error);
    pl_dtype dtype = pl_tensor_dtype(value);
    const pl_shape *shape = pl_tensor_shape(value);
    layout *own = PyMem_New(layout, 1);
    if (!own) {
        PyErr_NoMemory();
        return -1;
    }
    if (pl_tensor_pin(value, &data, strides, &error) < 0) {
        PyMem_Free(own);
        pin_failed(&error);
        return -1;
    }
    Py_ssize_t n = 1;
    for (int i = 0; i < shape->rank; i++) {
        own->shape[i] = (Py_ssize_t)shape->dims[i];
        own->strides[i] = (Py_ssize_t)strides[i];
        n *= own->shape[i];
    }
    static char nothing[8];
    *view = (Py_buffer){.buf = data ? (void *)data : nothing,
                        .obj = Py_NewRef(self),
                        .len = n * (Py_ssize_t)convert_dtype_bytes(dtype),
                        .itemsize = (Py_ssize_t)convert_dtype_bytes(dtype),
                        .readonly = 1,
                        .ndim = shape->rank,
                        .format = flags & PyBUF_FORMAT ? (char *)format_of(dtype) : NULL,
                        .shape = own->shape,
                        .strides = own->strides,
                        .internal = own};
    return 0;
}

/* A consumer that does not ask for strides can only use row-major memory. */
static int check_flags(Py_buffer *view, int flags)
{
    bool in_order = PyBuffer_IsContiguous(view, 'C');
    bool bad =
        ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !in_order) ||
        ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !in_order) ||
        ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !PyBuffer_IsContiguous(view, 'F')) ||
        ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS &&
         !PyBuffer_IsContiguous(view, 'A'));
    if (!bad) {
        if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES)
            view->strides = NULL;
        if ((flags & PyBUF_ND) != PyBUF_ND)
            view->shape = NULL;
        return 0;
    }
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_BufferError, "the tensor's elements do not lie one after the other");
    return -1;
}

int convert_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    tensor *node = (tensor *)self;
    view->obj = NULL;
    if (flags & PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "a tensor is never changed: copy it");
        return -1;
    }
    if (!format_of(node->dtype)) {
        PyErr_Format(PyExc_BufferError, "%s has no buffer: use .numpy()",
                     convert_dtype_name(node->dtype));
        return -1;
    }
    pl_tensor *value = tensor_value(node, "a buffer");
    if (!value || fill_view(self, value, view, flags) < 0) {
        note_interrupt(self);
        return -1;
    }
    return check_flags(view, flags);
}

void convert_release_buffer(PyObject *self, Py_buffer *view)
{
    pl_tensor_unpin(tensor_has((tensor *)self));
    PyMem_Free(view->internal);
}

/* ---- arrays ---- */

static PyObject *call_numpy(const char *name, PyObject *argument)
{
    PyObject *function = convert_numpy(name);
    return function ? PyObject_CallOneArg(function, argument) : NULL;
}

/* An array over the memory of a value that has a buffer. NumPy gets the buffer, not the tensor: if
 * there were no buffer, it would call __array__(), which is this function. */
static PyObject *view_of(pl_tensor *value)
{
    tensor *node = tensor_of_value(pl_tensor_ref(value), NULL);
    PyObject *buffer = node ? PyMemoryView_FromObject((PyObject *)node) : NULL;
    PyObject *array = buffer ? call_numpy("asarray", buffer) : NULL;
    Py_XDECREF(buffer);
    Py_XDECREF(node);
    return array;
}

/* The string at a row and column. */
static PyObject *bytes_at(pl_tensor *value, int64_t index)
{
    const pl_shape *shape = pl_tensor_shape(value);
    int64_t at[PL_RANK_MAX];
    pl_string text;
    pl_error error;
    pl_error_init(&error);
    for (int i = shape->rank - 1; i >= 0; i--) {
        at[i] = index % shape->dims[i];
        index /= shape->dims[i];
    }
    if (pl_tensor_pin_string(value, at, &text, &error) < 0)
        return failure_raise(&error);
    PyObject *bytes = PyBytes_FromStringAndSize(text.data, (Py_ssize_t)text.n);
    pl_tensor_unpin(value);
    return bytes;
}

static int64_t count(const pl_shape *shape)
{
    int64_t n = 1;
    for (int i = 0; i < shape->rank; i++)
        n *= shape->dims[i];
    return n;
}

/* Makes an object array: a flat one is filled, then reshaped. */
static PyObject *strings_array(pl_tensor *value)
{
    int64_t n = count(pl_tensor_shape(value));
    PyObject *make = convert_numpy("empty");
    PyObject *flat = make ? PyObject_CallFunction(make, "Ls", (long long)n, "O") : NULL;
    for (int64_t i = 0; flat && i < n; i++) {
        PyObject *bytes = bytes_at(value, i);
        if (!bytes || PySequence_SetItem(flat, (Py_ssize_t)i, bytes) < 0)
            Py_CLEAR(flat);
        Py_XDECREF(bytes);
    }
    PyObject *shape = flat ? convert_shape_tuple(pl_tensor_shape(value)) : NULL;
    PyObject *array = shape ? PyObject_CallMethod(flat, "reshape", "(O)", shape) : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(flat);
    return array;
}

/* NumPy does not have bfloat16: makes a copy in float32. */
static PyObject *widened_array(pl_tensor *value)
{
    PyObject *make = convert_numpy("empty"), *shape = convert_shape_tuple(pl_tensor_shape(value));
    PyObject *array = make && shape ? PyObject_CallFunction(make, "Os", shape, "f4") : NULL;
    Py_buffer view;
    Py_XDECREF(shape);
    if (!array || PyObject_GetBuffer(array, &view, PyBUF_CONTIG) < 0) {
        Py_XDECREF(array);
        return NULL;
    }
    const int64_t begin[PL_RANK_MAX] = {0};
    pl_error error;
    pl_error_init(&error);
    int64_t n = count(pl_tensor_shape(value));
    uint32_t *to = view.buf;
    const uint16_t *from = (uint16_t *)view.buf + n; /* the upper half, which is written last */
    int r = n == 0
                ? 0
                : pl_tensor_read(value, begin, pl_tensor_shape(value)->dims, (void *)from, &error);
    for (int64_t i = 0; r == 0 && i < n; i++)
        to[i] = (uint32_t)from[i] << 16;
    PyBuffer_Release(&view);
    if (r == 0)
        return array;
    Py_DECREF(array);
    return failure_raise(&error);
}

PyObject *convert_to_numpy(pl_tensor *value)
{
    switch (pl_tensor_dtype(value)) {
    case PL_STRING:
        return strings_array(value);
    case PL_BF16:
        return widened_array(value);
    default:
        return view_of(value);
    }
}

/* ---- one element ---- */

static PyObject *read_element(pl_dtype dtype, const void *element)
{
    switch (dtype) {
#define READ(constant, type, make)                                                                 \
    case constant: {                                                                               \
        type number;                                                                               \
        memcpy(&number, element, sizeof number);                                                   \
        return make(number);                                                                       \
    }
        READ(PL_BOOL, uint8_t, PyBool_FromLong)
        READ(PL_U8, uint8_t, PyLong_FromLong)
        READ(PL_I8, int8_t, PyLong_FromLong)
        READ(PL_U16, uint16_t, PyLong_FromLong)
        READ(PL_I16, int16_t, PyLong_FromLong)
        READ(PL_U32, uint32_t, PyLong_FromUnsignedLong)
        READ(PL_I32, int32_t, PyLong_FromLong)
        READ(PL_U64, uint64_t, PyLong_FromUnsignedLongLong)
        READ(PL_I64, int64_t, PyLong_FromLongLong)
        READ(PL_F32, float, PyFloat_FromDouble)
        READ(PL_F64, double, PyFloat_FromDouble)
#undef READ
    case PL_F16:
        return PyFloat_FromDouble(PyFloat_Unpack2(element, 1));
    case PL_BF16: {
        uint32_t bits = 0;
        float number;
        memcpy((char *)&bits + 2, element, 2);
        memcpy(&number, &bits, sizeof number);
        return PyFloat_FromDouble(number);
    }
    default:
        return PyErr_Format(PyExc_SystemError, "dtype %d has no elements", (int)dtype);
    }
}

PyObject *convert_to_scalar(pl_tensor *value)
{
    static const int64_t begin[PL_RANK_MAX], extent[PL_RANK_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
    uint64_t element;
    pl_error error;
    pl_error_init(&error);
    if (pl_tensor_dtype(value) == PL_STRING)
        return bytes_at(value, 0);
    if (pl_tensor_read(value, begin, extent, &element, &error) < 0)
        return failure_raise(&error);
    return read_element(pl_tensor_dtype(value), &element);
}

static PyObject *numpy_scalar(pl_tensor *value)
{
    pl_dtype dtype = pl_tensor_dtype(value);
    PyObject *number = convert_to_scalar(value);
    if (!number || dtype == PL_STRING)
        return number;
    const char *name = dtype == PL_BOOL   ? "bool_"
                       : dtype == PL_BF16 ? "float32"
                                          : convert_dtype_name(dtype);
    PyObject *made = call_numpy(name, number);
    Py_DECREF(number);
    return made;
}

PyObject *convert_to_numpy_value(pl_tensor *value)
{
    if (pl_tensor_shape(value)->rank == 0)
        return numpy_scalar(value);
    PyObject *array = convert_to_numpy(value);
    bool is_view = format_of(pl_tensor_dtype(value)) != NULL;
    if (!array || !is_view || pl_tensor_bytes(value) > NUMPY_COPY_BYTES)
        return array;
    PyObject *copied = call_numpy("array", array);
    Py_DECREF(array);
    return copied;
}

/* ---- methods ---- */

PyObject *convert_method_numpy(PyObject *self, PyObject *unused)
{
    (void)unused;
    pl_tensor *value = tensor_value((tensor *)self, "numpy()");
    return value ? convert_to_numpy_value(value) : NULL;
}

PyObject *convert_method_array(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OO:__array__", names, &dtype, &copy) ||
        take_interrupt(self))
        return NULL;
    pl_tensor *value = tensor_value((tensor *)self, "an array");
    PyObject *array = value ? convert_to_numpy(value) : NULL;
    if (!array || (dtype == Py_None && copy != Py_True))
        return array;
    PyObject *made = dtype == Py_None ? PyObject_CallMethod(array, "copy", NULL)
                                      : PyObject_CallMethod(array, "astype", "O", dtype);
    Py_DECREF(array);
    return made;
}
