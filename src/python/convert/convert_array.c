/* SPDX-License-Identifier: Apache-2.0 */
/* Makes tensors from objects that have elements of their own: by the buffer protocol, by DLPack, or
 * by an array that NumPy makes of them. See convert.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "python/convert/convert.h"
#include "python/module/failure.h"

static PyObject *array_method, *interface_attribute, *dlpack_method;

static int intern_names(void)
{
    if (array_method)
        return 0;
    interface_attribute = PyUnicode_InternFromString("__array_interface__");
    dlpack_method = PyUnicode_InternFromString("__dlpack__");
    array_method =
        interface_attribute && dlpack_method ? PyUnicode_InternFromString("__array__") : NULL;
    return array_method ? 0 : -1;
}

bool convert_type_has(PyObject *value, PyObject *name)
{
    /* Before 3.13 this function swallows every exception; from 3.13 on it reports those other than
     * AttributeError as unraisable. Either way no exception is left set. */
    return PyObject_HasAttr((PyObject *)Py_TYPE(value), name);
}

bool convert_is_array(PyObject *value)
{
    if (PyFloat_CheckExact(value) || PyLong_Check(value) || PyList_CheckExact(value) ||
        PyTuple_CheckExact(value) || PyUnicode_Check(value) || PyBytes_Check(value) ||
        tensor_check(value) || PyType_Check(value) || PyDict_Check(value))
        return false;
    if (PyObject_CheckBuffer(value))
        return true;
    if (intern_names() < 0) {
        PyErr_Clear();
        return false;
    }
    return convert_type_has(value, array_method) || convert_type_has(value, interface_attribute) ||
           convert_type_has(value, dlpack_method);
}

PyObject *convert_numpy(const char *name)
{
    static PyObject *module;
    static PyObject *found; /* dict of the names that were looked up */
    if (!module && !(module = PyImport_ImportModule("numpy")))
        return NULL;
    if (!found && !(found = PyDict_New()))
        return NULL;
    PyObject *object = PyDict_GetItemString(found, name);
    if (object)
        return object;
    object = PyObject_GetAttrString(module, name);
    int r = object ? PyDict_SetItemString(found, name, object) : -1;
    Py_XDECREF(object);
    return r < 0 ? NULL : object;
}

/* ---- buffers ---- */

/* Integers by their size, because the size of 'l' depends on the platform. */
static int of_integer(bool is_signed, Py_ssize_t bytes)
{
    switch (bytes) {
    case 1:
        return is_signed ? PL_I8 : PL_U8;
    case 2:
        return is_signed ? PL_I16 : PL_U16;
    case 4:
        return is_signed ? PL_I32 : PL_U32;
    case 8:
        return is_signed ? PL_I64 : PL_U64;
    default:
        return -1;
    }
}

/* -1: the dtype is not supported, or the byte order is another. */
static int dtype_of_view(const Py_buffer *view)
{
    const char *format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=' || *format == '<')
        format++;
    if (format[0] == '\0' || format[1] != '\0')
        return -1;
    switch (*format) {
    case '?':
        return PL_BOOL;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
        return of_integer(true, view->itemsize);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
        return of_integer(false, view->itemsize);
    case 'e':
        return PL_F16;
    case 'f':
        return PL_F32;
    case 'd':
        return view->itemsize == 8 ? PL_F64 : -1;
    default:
        return -1;
    }
}

int convert_array_dtype(PyObject *value)
{
    Py_buffer view;
    if (PyObject_CheckBuffer(value) && PyObject_GetBuffer(value, &view, PyBUF_FULL_RO) == 0) {
        int found = dtype_of_view(&view);
        PyBuffer_Release(&view);
        return found;
    }
    PyErr_Clear();
    PyObject *own = PyObject_GetAttrString(value, "dtype");
    int found = own ? convert_dtype(own) : -1;
    PyErr_Clear();
    Py_XDECREF(own);
    return found;
}

static int shape_of_view(const Py_buffer *view, pl_shape *ret_shape)
{
    if (view->ndim > PL_RANK_MAX) {
        PyErr_Format(PyExc_ValueError, "an array of %d axes: at most %d are possible", view->ndim,
                     PL_RANK_MAX);
        return -1;
    }
    ret_shape->rank = view->ndim;
    for (int i = 0; i < view->ndim; i++)
        ret_shape->dims[i] = view->shape[i];
    return 0;
}

static bool is_aligned(const Py_buffer *view)
{
    uintptr_t all = (uintptr_t)view->buf;
    for (int i = 0; i < view->ndim; i++)
        all |= view->shape[i] > 1 ? (uintptr_t)view->strides[i] : 0;
    return all % (uintptr_t)view->itemsize == 0;
}

/* ---- borrowed memory: any thread may release it, and takes the GIL for that ---- */

typedef struct borrowed {
    later base;
    Py_buffer view;
} borrowed;

static void give_back(later *self)
{
    borrowed *what = (borrowed *)self;
    PyBuffer_Release(&what->view);
    free(what);
}

static void release_borrowed(void *context)
{
    module_later(context);
}

/* Takes over the view, also on failure. */
static pl_tensor *borrow(Py_buffer *view, pl_dtype dtype, const pl_shape *shape, bool in_order,
                         const char *what)
{
    borrowed *self = malloc(sizeof *self);
    pl_runtime *runtime = self ? module_runtime() : (pl_runtime *)PyErr_NoMemory();
    if (!runtime) {
        free(self);
        PyBuffer_Release(view);
        return NULL;
    }
    self->base = (later){.run = give_back};
    self->view = *view;
    int64_t strides[PL_RANK_MAX];
    for (int i = 0; !in_order && i < view->ndim; i++)
        strides[i] = view->strides[i];
    pl_tensor *made;
    pl_error error;
    pl_error_init(&error);
    int r = pl_tensor_borrow(runtime, dtype, shape, in_order ? NULL : strides, self->view.buf,
                             release_borrowed, self, what, &made, &error);
    return r < 0 ? (pl_tensor *)failure_raise(&error) : made;
}

/* ---- copies ---- */

/* Column-major memory is copied as rows, and the copy is transposed. */
static pl_tensor *copy_columns(const pl_elements *from, pl_dtype dtype, const char *what)
{
    pl_elements turned = {.dtype = from->dtype, .data = from->data};
    int axes[PL_RANK_MAX];
    turned.shape.rank = from->shape.rank;
    for (int i = 0; i < from->shape.rank; i++) {
        axes[i] = from->shape.rank - 1 - i;
        turned.shape.dims[i] = from->shape.dims[axes[i]];
    }
    pl_tensor *made = convert_copy(&turned, dtype, &turned.shape, what), *view_of_it = NULL;
    pl_error error;
    pl_error_init(&error);
    if (!made)
        return NULL;
    int r = pl_tensor_transpose(made, axes, &view_of_it, &error);
    pl_tensor_unref(made);
    return r < 0 ? (pl_tensor *)failure_raise(&error) : view_of_it;
}

/* Putting the elements in order takes a second copy, and only one of the two is claimed. */
static int check_room_for_both(const Py_buffer *view, const char *what)
{
    pl_runtime *runtime = module_runtime();
    if (!runtime)
        return -1;
    uint64_t left = view->len < CONVERT_BORROW_BYTES ? UINT64_MAX : pl_runtime_left_bytes(runtime);
    pl_error error;
    pl_error_init(&error);
    if ((uint64_t)view->len <= left / 2)
        return 0;
    pl_error_set(&error, PL_EBUDGET,
                 "no room for '%.100s': the array's %zd bytes lie behind pointers and "
                 "are needed twice to be copied, and %" PRIu64 " are left of the budget: give it "
                 "more, or numpy.ascontiguousarray() first",
                 what, view->len, left);
    failure_raise(&error);
    return -1;
}

/* Strides cannot describe a buffer whose rows are found by pointers. */
static pl_tensor *copy_pointed(const Py_buffer *view, pl_elements *from, pl_dtype dtype,
                               const pl_shape *shape, const char *what)
{
    if (check_room_for_both(view, what) < 0)
        return NULL;
    void *bytes = PyMem_Malloc((size_t)view->len + 1);
    if (!bytes)
        return (pl_tensor *)PyErr_NoMemory();
    from->data = bytes;
    pl_tensor *made = PyBuffer_ToContiguous(bytes, (Py_buffer *)view, view->len, 'C') < 0
                          ? NULL
                          : convert_copy(from, dtype, shape, what);
    PyMem_Free(bytes);
    return made;
}

/* Copies to this dtype; `wanted` NULL: the view's own shape. */
static pl_tensor *copy(const Py_buffer *view, pl_dtype own, pl_dtype dtype, const pl_shape *wanted,
                       const char *what)
{
    pl_elements from = {.dtype = own, .data = view->buf};
    int64_t strides[PL_RANK_MAX];
    if (shape_of_view(view, &from.shape) < 0)
        return NULL;
    const pl_shape *shape = wanted ? wanted : &from.shape;
    if (view->suboffsets)
        return copy_pointed(view, &from, dtype, shape, what);
    if (PyBuffer_IsContiguous(view, 'C'))
        return convert_copy(&from, dtype, shape, what);
    if (!wanted && PyBuffer_IsContiguous(view, 'F'))
        return copy_columns(&from, dtype, what);
    for (int i = 0; i < view->ndim; i++)
        strides[i] = view->strides[i];
    from.strides = strides;
    return convert_copy(&from, dtype, shape, what);
}

/* ---- arrays ---- */

/* NumPy converts the array to a dtype that it has. */
static pl_tensor *from_astype(PyObject *array, pl_dtype numpy_dtype, pl_dtype dtype,
                              const pl_shape *shape, const char *what)
{
    PyObject *made = PyObject_CallMethod(array, "astype", "s", convert_dtype_name(numpy_dtype));
    pl_tensor *found = made ? convert_from(made, dtype, shape, what) : NULL;
    Py_XDECREF(made);
    return found;
}

/* Is it empty? Sets its shape. */
static bool is_empty(PyObject *array, pl_shape *ret_shape)
{
    PyObject *shape = PyObject_GetAttrString(array, "shape");
    bool empty = false;
    if (shape && convert_shape(shape, ret_shape) == 0)
        for (int i = 0; i < ret_shape->rank; i++)
            empty |= ret_shape->dims[i] == 0;
    PyErr_Clear();
    Py_XDECREF(shape);
    return empty;
}

/* Lists show no shape behind an axis of 0. */
static pl_tensor *from_tolist(PyObject *array, pl_dtype dtype, const pl_shape *shape,
                              const char *what)
{
    pl_shape own;
    if (!shape && is_empty(array, &own))
        shape = &own;
    PyObject *items = shape == &own ? PyList_New(0) : PyObject_CallMethod(array, "tolist", NULL);
    pl_tensor *found = items ? convert_from_items(items, dtype, shape, what) : NULL;
    Py_XDECREF(items);
    return found;
}

/* Texts, objects and other byte orders are converted as lists. */
static pl_tensor *from_items(PyObject *array, pl_dtype dtype, const pl_shape *shape,
                             const char *what)
{
    if (!PyObject_HasAttrString(array, "tolist"))
        return (pl_tensor *)PyErr_Format(PyExc_ValueError, "a tensor cannot be made of %R",
                                         Py_TYPE(array));
    PyObject *own = PyObject_GetAttrString(array, "dtype");
    int swapped = own ? convert_dtype(own) : -1; /* a dtype of ours in any byte order */
    PyErr_Clear();
    PyObject *fields = own ? PyObject_GetAttrString(own, "names") : NULL;
    bool is_record = fields && fields != Py_None;
    PyErr_Clear();
    Py_XDECREF(fields);
    Py_XDECREF(own);
    if (is_record)
        return (pl_tensor *)PyErr_Format(PyExc_ValueError,
                                         "Failed to convert a NumPy array to a Tensor: its items "
                                         "have fields: make a tensor of each");
    if (swapped > 0 && swapped != PL_STRING && swapped != PL_BF16)
        return from_astype(array, (pl_dtype)swapped, dtype, shape, what);
    pl_shape none;
    if (!dtype && swapped == PL_STRING && is_empty(array, &none))
        dtype = PL_STRING; /* as TensorFlow does; there is no element to look at */
    return from_tolist(array, dtype, shape, what);
}

static pl_tensor *refuse_cast(pl_dtype from, pl_dtype to)
{
    PyErr_Format(PyExc_TypeError,
                 "Cannot convert an array of %s to EagerTensor of dtype %s: use "
                 "tf.cast",
                 convert_dtype_name(from), convert_dtype_name(to));
    return NULL;
}

/* NumPy casts the array; bfloat16, which it lacks, goes through lists of numbers. */
static pl_tensor *from_cast(PyObject *array, pl_dtype from, pl_dtype dtype, const pl_shape *shape,
                            const char *what)
{
    if (!convert_dtype_fits(from, dtype))
        return refuse_cast(from, dtype);
    PyObject *make = convert_numpy("asarray");
    PyObject *own = make ? PyObject_CallOneArg(make, array) : NULL;
    if (!own)
        return NULL;
    pl_tensor *made = dtype == PL_BF16 ? from_tolist(own, dtype, shape, what)
                                       : from_astype(own, dtype, dtype, shape, what);
    Py_DECREF(own);
    return made;
}

/* The library casts large arrays: it claims the memory first, and makes no second copy. */
static bool can_cast_large(const Py_buffer *view, pl_dtype from, pl_dtype dtype)
{
    return view->len >= CONVERT_BORROW_BYTES && !view->suboffsets &&
           convert_dtype_fits(from, dtype);
}

/* Copies memory that others can write to, so that it does not change before it is used. */
static bool can_borrow(const Py_buffer *view, bool in_order, bool reshaped)
{
    return view->readonly && view->len >= CONVERT_BORROW_BYTES && !view->suboffsets &&
           is_aligned(view) && (in_order || !reshaped);
}

static pl_tensor *from_buffer(PyObject *value, Py_buffer *view, pl_dtype dtype,
                              const pl_shape *wanted, const char *what)
{
    int own = dtype_of_view(view);
    if (own < 0) {
        PyBuffer_Release(view);
        return from_items(value, dtype, wanted, what);
    }
    bool is_cast = dtype && dtype != (pl_dtype)own;
    if (is_cast && !can_cast_large(view, (pl_dtype)own, dtype)) {
        PyBuffer_Release(view);
        return from_cast(value, (pl_dtype)own, dtype, wanted, what);
    }
    pl_shape shape;
    bool in_order = PyBuffer_IsContiguous(view, 'C');
    int r = shape_of_view(view, &shape);
    if (r == 0 && wanted)
        r = convert_fit_shape(wanted, view->itemsize ? view->len / view->itemsize : 0, &shape);
    if (r == 0 && !is_cast && can_borrow(view, in_order, wanted != NULL))
        return borrow(view, (pl_dtype)own, &shape, in_order, what);
    pl_tensor *made = NULL;
    if (r == 0)
        made = copy(view, (pl_dtype)own, is_cast ? dtype : (pl_dtype)own, wanted ? &shape : NULL,
                    what);
    PyBuffer_Release(view);
    return made;
}

static pl_tensor *from_numpy(PyObject *value, pl_dtype dtype, const pl_shape *shape,
                             const char *what)
{
    PyObject *make = convert_numpy("asarray");
    PyObject *array = make ? PyObject_CallOneArg(make, value) : NULL;
    if (!array)
        return NULL;
    Py_buffer view;
    pl_tensor *made = NULL;
    if (PyObject_GetBuffer(array, &view, PyBUF_FULL_RO) == 0) {
        made = from_buffer(array, &view, dtype, shape, what);
    } else {
        PyErr_Clear(); /* dates do not have one */
        made = from_items(array, dtype, shape, what);
    }
    Py_DECREF(array);
    return made;
}

pl_tensor *convert_from_array(PyObject *value, pl_dtype dtype, const pl_shape *shape,
                              const char *what)
{
    Py_buffer view;
    if (PyObject_CheckBuffer(value)) {
        if (PyObject_GetBuffer(value, &view, PyBUF_FULL_RO) == 0)
            return from_buffer(value, &view, dtype, shape, what);
        PyErr_Clear(); /* an array of dates does not have one */
    }
    if (intern_names() < 0)
        return NULL;
    if (!dtype && !shape && !PyObject_CheckBuffer(value) &&
        convert_type_has(value, dlpack_method)) {
        bool has_array = convert_type_has(value, array_method);
        pl_tensor *made = convert_from_dlpack(value, false, what);
        bool refused = !made && (PyErr_ExceptionMatches(PyExc_RuntimeError) ||
                                 PyErr_ExceptionMatches(PyExc_BufferError));
        if (!refused || !has_array)
            return made;
        PyErr_Clear(); /* it cannot export the dtype, as PyTorch 1 cannot for bool: NumPy may */
    }
    return from_numpy(value, dtype, shape, what);
}
