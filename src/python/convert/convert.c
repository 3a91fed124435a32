/* SPDX-License-Identifier: Apache-2.0 */
/* Makes tensors from numbers, texts and nested lists; convert_array.c makes them from anything
 * else. See convert.h. */
#include "python/convert/convert.h"

#include <math.h>
#include <string.h>

#include "python/module/failure.h"

/* The kinds of leaves in a nested list. */
typedef enum leaf_kind {
    LEAF_NONE,
    LEAF_BOOL,
    LEAF_INT,
    LEAF_FLOAT,
    LEAF_TEXT,
    LEAF_ARRAY,  /* has elements of its own: an array */
    LEAF_TENSOR, /* a node, or an object that gives one */
    LEAF_OTHER,  /* cannot be part of a tensor */
} leaf_kind;

static PyObject *tensor_method; /* "__plimsoll_tensor__" */

static leaf_kind kind_of(PyObject *value)
{
    if (PyFloat_CheckExact(value))
        return LEAF_FLOAT;
    if (PyLong_CheckExact(value))
        return LEAF_INT;
    if (PyBool_Check(value))
        return LEAF_BOOL;
    if (PyUnicode_Check(value) || PyBytes_Check(value))
        return LEAF_TEXT;
    if (tensor_check(value) || convert_type_has(value, tensor_method))
        return LEAF_TENSOR;
    if (PyLong_Check(value))
        return LEAF_INT;
    if (convert_is_array(value))
        return LEAF_ARRAY;
    if (PyFloat_Check(value))
        return LEAF_FLOAT;
    return PyIndex_Check(value) ? LEAF_INT : LEAF_OTHER;
}

static bool is_list(PyObject *value)
{
    if (PyList_Check(value) || PyTuple_Check(value))
        return true;
    return PySequence_Check(value) && !PyUnicode_Check(value) && !PyBytes_Check(value) &&
           !PyDict_Check(value) && !tensor_check(value) && !convert_is_array(value) &&
           !convert_type_has(value, tensor_method);
}

bool convert_is_possible(PyObject *value)
{
    return is_list(value) || kind_of(value) != LEAF_OTHER;
}

/* ---- one number ---- */

static int refuse_number(PyObject *value, pl_dtype dtype)
{
    PyErr_Format(PyExc_TypeError, "Cannot convert %R to EagerTensor of dtype %s", value,
                 convert_dtype_name(dtype));
    return -1;
}

static int put_signed(PyObject *value, pl_dtype dtype, void *element)
{
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (i == -1 && PyErr_Occurred())
        return -1;
    size_t bytes = convert_dtype_bytes(dtype);
    int64_t most = bytes == 8 ? INT64_MAX : (INT64_C(1) << (8 * bytes - 1)) - 1;
    if (overflow || i > most || i < -most - 1)
        return refuse_number(value, dtype);
    memcpy(element, &i, bytes); /* little endian: the low bytes come first */
    return 0;
}

static int put_unsigned(PyObject *value, pl_dtype dtype, void *element)
{
    unsigned long long i = PyLong_AsUnsignedLongLong(value);
    if (i == (unsigned long long)-1 && PyErr_Occurred()) {
        PyErr_Clear();
        return refuse_number(value, dtype);
    }
    size_t bytes = convert_dtype_bytes(dtype);
    if (bytes < 8 && i >> (8 * bytes))
        return refuse_number(value, dtype);
    memcpy(element, &i, bytes);
    return 0;
}

/* Rounds to the nearest, halves to even; NaN stays NaN. */
static uint16_t bfloat16_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (f != f)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static int put_float(PyObject *value, pl_dtype dtype, void *element)
{
    double f = PyFloat_AsDouble(value);
    if (f == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return refuse_number(value, dtype);
    }
    float single = (float)f;
    uint16_t half;
    switch (dtype) {
    case PL_F64:
        memcpy(element, &f, sizeof f);
        return 0;
    case PL_F32:
        memcpy(element, &single, sizeof single);
        return 0;
    case PL_BF16:
        half = bfloat16_of(single);
        memcpy(element, &half, sizeof half);
        return 0;
    default:
        if (isfinite(f) && fabs(f) >= 65520.0)
            f = copysign(INFINITY, f);
        return PyFloat_Pack2(f, element, 1);
    }
}

int convert_number(PyObject *value, pl_dtype dtype, void *element)
{
    switch (convert_dtype_kind(dtype)) {
    case PL_KIND_BOOL:
        if (!PyBool_Check(value))
            return refuse_number(value, dtype);
        *(uint8_t *)element = value == Py_True;
        return 0;
    case PL_KIND_FLOAT:
        return PyBool_Check(value) ? refuse_number(value, dtype) : put_float(value, dtype, element);
    case PL_KIND_SIGNED:
    case PL_KIND_UNSIGNED:
        break;
    default:
        return refuse_number(value, dtype);
    }
    if (PyBool_Check(value) || PyFloat_Check(value))
        return refuse_number(value, dtype);
    PyObject *number = PyNumber_Index(value);
    if (!number)
        return -1;
    int r = convert_dtype_kind(dtype) == PL_KIND_SIGNED ? put_signed(number, dtype, element)
                                                        : put_unsigned(number, dtype, element);
    Py_DECREF(number);
    return r;
}

/* ---- nested lists ---- */

typedef struct outline {
    pl_shape shape;
    leaf_kind kind;
    bool is_long; /* an integer that does not fit an int32 */
    bool is_empty;
} outline;

static int look_at_leaf(outline *all, PyObject *value)
{
    leaf_kind kind = kind_of(value);
    if (kind == LEAF_OTHER) {
        PyErr_Format(PyExc_ValueError,
                     "Attempt to convert a value (%R) with an unsupported type (%R) to a Tensor.",
                     value, Py_TYPE(value));
        return -1;
    }
    if (kind == LEAF_INT && !all->is_long && PyLong_Check(value)) {
        int overflow;
        long long i = PyLong_AsLongLongAndOverflow(value, &overflow);
        all->is_long = overflow || i > INT32_MAX || i < INT32_MIN;
    }
    if (all->kind == LEAF_NONE || all->kind == kind) {
        all->kind = kind;
        return 0;
    }
    bool special = kind >= LEAF_ARRAY || all->kind >= LEAF_ARRAY;
    bool numbers = (kind == LEAF_INT || kind == LEAF_FLOAT) &&
                   (all->kind == LEAF_INT || all->kind == LEAF_FLOAT);
    if (!special && !numbers) {
        PyErr_SetString(PyExc_ValueError,
                        "Can't convert Python sequence with mixed types to Tensor.");
        return -1;
    }
    all->kind = kind > all->kind ? kind : all->kind;
    return 0;
}

static int refuse_ragged(void)
{
    PyErr_SetString(PyExc_ValueError, "Can't convert non-rectangular Python sequence to Tensor.");
    return -1;
}

/* Operations on these objects run no Python code. */
static inline bool is_inert(PyObject *value)
{
    return PyLong_CheckExact(value) || PyFloat_CheckExact(value);
}

/* Returns an item of a PySequence_Fast() result: a new reference. Converting an item may run Python
 * code that changes the list: NULL with RuntimeError if the list has become shorter. */
static inline PyObject *item_of(PyObject *items, Py_ssize_t i)
{
    if (i < PySequence_Fast_GET_SIZE(items))
        return Py_NewRef(PySequence_Fast_GET_ITEM(items, i));
    PyErr_SetString(PyExc_RuntimeError, "a list changed its size while it was converted");
    return NULL;
}

static int look_at(outline *all, PyObject *value, int depth)
{
    if (!is_list(value)) {
        int r = look_at_leaf(all, value);
        return r == 0 && depth < all->shape.rank && all->kind < LEAF_ARRAY ? refuse_ragged() : r;
    }
    if (depth == all->shape.rank)
        return refuse_ragged();
    PyObject *items = PySequence_Fast(value, "a list was expected");
    if (!items)
        return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    int r = 0;
    if (all->shape.dims[depth] < 0)
        all->shape.dims[depth] = n;
    else if (all->shape.dims[depth] != n)
        r = refuse_ragged();
    for (Py_ssize_t i = 0; r == 0 && i < n; i++) {
        PyObject *item = item_of(items, i);
        r = item ? look_at(all, item, depth + 1) : -1;
        Py_XDECREF(item);
    }
    Py_DECREF(items);
    return r;
}

/* Finds how deep the lists are, by their first items. */
static int depth_of(PyObject *value, int *ret_depth)
{
    int depth = 0;
    PyObject *at = Py_NewRef(value);
    while (at && is_list(at)) {
        if (++depth > PL_RANK_MAX) {
            Py_DECREF(at);
            PyErr_Format(PyExc_ValueError, "lists in each other, more than %d deep", PL_RANK_MAX);
            return -1;
        }
        Py_ssize_t n = PySequence_Size(at);
        if (n < 0) {
            Py_DECREF(at);
            return -1;
        }
        PyObject *first = n > 0 ? PySequence_GetItem(at, 0) : NULL;
        Py_DECREF(at);
        at = first;
    }
    *ret_depth = depth;
    Py_XDECREF(at);
    return PyErr_Occurred() ? -1 : 0;
}

static int outline_of(PyObject *value, outline *ret)
{
    *ret = (outline){.kind = LEAF_NONE};
    if (depth_of(value, &ret->shape.rank) < 0)
        return -1;
    for (int i = 0; i < ret->shape.rank; i++)
        ret->shape.dims[i] = -1;
    if (look_at(ret, value, 0) < 0)
        return -1;
    for (int i = 0; i < ret->shape.rank; i++)
        if (ret->shape.dims[i] < 0)
            ret->shape.dims[i] = 0;
    return 0;
}

static pl_dtype own_dtype(const outline *all)
{
    switch (all->kind) {
    case LEAF_BOOL:
        return PL_BOOL;
    case LEAF_INT:
        return all->is_long ? PL_I64 : PL_I32;
    case LEAF_TEXT:
        return PL_STRING;
    default:
        return PL_F32;
    }
}

static int fill(PyObject *value, const outline *all, int depth, pl_dtype dtype, char **at)
{
    if (depth == all->shape.rank) {
        int r = convert_number(value, dtype, *at);
        *at += convert_dtype_bytes(dtype);
        return r;
    }
    PyObject *items = PySequence_Fast(value, "a list was expected");
    if (!items)
        return -1;
    int r = PySequence_Fast_GET_SIZE(items) == all->shape.dims[depth] ? 0 : refuse_ragged();
    for (Py_ssize_t i = 0; r == 0 && i < all->shape.dims[depth]; i++) {
        PyObject *item = item_of(items, i);
        r = item ? fill(item, all, depth + 1, dtype, at) : -1;
        Py_XDECREF(item);
    }
    Py_DECREF(items);
    return r;
}

/* Runs no Python code: the pointers into the texts stay valid as long as the list. */
static int fill_texts(PyObject *value, const outline *all, int depth, pl_string **at)
{
    if (depth == all->shape.rank) {
        Py_ssize_t n;
        const char *bytes = NULL;
        if (PyBytes_Check(value)) {
            bytes = PyBytes_AS_STRING(value);
            n = PyBytes_GET_SIZE(value);
        } else if (PyUnicode_Check(value)) {
            bytes = PyUnicode_AsUTF8AndSize(value, &n);
        } else {
            refuse_number(value, PL_STRING);
        }
        if (bytes)
            *(*at)++ = (pl_string){bytes, (size_t)n};
        return bytes ? 0 : -1;
    }
    PyObject *items = PySequence_Fast(value, "a list was expected");
    if (!items)
        return -1;
    int r = PySequence_Fast_GET_SIZE(items) == all->shape.dims[depth] ? 0 : refuse_ragged();
    for (Py_ssize_t i = 0; r == 0 && i < all->shape.dims[depth]; i++)
        r = fill_texts(PySequence_Fast_GET_ITEM(items, i), all, depth + 1, at);
    Py_DECREF(items);
    return r;
}

static int64_t n_elements(const pl_shape *shape)
{
    int64_t n = 1;
    for (int i = 0; i < shape->rank; i++)
        n *= shape->dims[i];
    return n;
}

int convert_fit_shape(const pl_shape *wanted, int64_t n, pl_shape *ret_shape)
{
    int unknown = -1;
    int64_t others = 1;
    for (int i = 0; i < wanted->rank; i++) {
        if (wanted->dims[i] < 0 && unknown < 0)
            unknown = i;
        else if (wanted->dims[i] >= 0 &&
                 (wanted->dims[i] == 0 || others <= INT64_MAX / wanted->dims[i]))
            others *= wanted->dims[i];
        else
            others = -1;
        if (others < 0)
            break;
    }
    *ret_shape = *wanted;
    if (unknown >= 0 && others > 0 && n % others == 0) {
        ret_shape->dims[unknown] = n / others;
        return 0;
    }
    if (wanted->rank >= 0 && unknown < 0 && others == n)
        return 0;
    if (n == 1 && unknown < 0) {
        ret_shape->rank = 0;
        return 0;
    }
    PyObject *tuple = convert_shape_tuple(wanted);
    if (tuple)
        PyErr_Format(PyExc_TypeError,
                     "Eager execution of tf.constant with unsupported shape. Tensor has %lld "
                     "elements, but got `shape` %R.",
                     (long long)n, tuple);
    Py_XDECREF(tuple);
    return -1;
}

/* Converts a nested list, a number or a text. */
static pl_tensor *from_list(PyObject *value, const outline *all, pl_dtype dtype,
                            const pl_shape *wanted, const char *what)
{
    pl_shape shape = all->shape;
    int64_t n = n_elements(&shape);
    size_t item_bytes = dtype == PL_STRING ? sizeof(pl_string) : convert_dtype_bytes(dtype);
    pl_runtime *runtime = module_runtime();
    if (!runtime || (wanted && convert_fit_shape(wanted, n, &shape) < 0))
        return NULL;
    char *bytes = PyMem_Calloc((size_t)n + 1, item_bytes), *at = bytes;
    if (!bytes)
        return (pl_tensor *)PyErr_NoMemory();
    pl_string *texts = (pl_string *)bytes;
    pl_tensor *made = NULL;
    pl_error error;
    pl_error_init(&error);
    int r =
        dtype == PL_STRING ? fill_texts(value, all, 0, &texts) : fill(value, all, 0, dtype, &at);
    if (r == 0) {
        r = dtype == PL_STRING
                ? pl_tensor_new_strings(runtime, &shape, (pl_string *)bytes, what, &made, &error)
                : pl_tensor_new(runtime, dtype, &shape, bytes, what, &made, &error);
        if (r < 0)
            failure_raise(&error);
    }
    PyMem_Free(bytes);
    return r < 0 ? NULL : made;
}

static pl_tensor *from_number(PyObject *value, pl_dtype dtype, const char *what)
{
    uint64_t element = 0;
    const pl_shape shape = {.rank = 0};
    pl_tensor *made;
    pl_error error;
    pl_error_init(&error);
    pl_runtime *runtime = module_runtime();
    if (!runtime || convert_number(value, dtype, &element) < 0)
        return NULL;
    if (pl_tensor_new(runtime, dtype, &shape, &element, what, &made, &error) < 0)
        return (pl_tensor *)failure_raise(&error);
    return made;
}

static pl_tensor *refuse_tensor(void)
{
    PyErr_SetString(PyExc_TypeError, "a tensor is not allowed as a plain value here");
    return NULL;
}

/* The value of a node, computed if needed. */
static pl_tensor *from_node(PyObject *value, pl_dtype dtype, const pl_shape *shape)
{
    tensor *node = shape ? NULL : convert_to_node(value, dtype, PL_DTYPE_NONE);
    if (!node)
        return PyErr_Occurred() ? NULL : refuse_tensor();
    pl_tensor *found = tensor_value(node, "the value");
    if (found)
        pl_tensor_ref(found);
    Py_DECREF(node);
    return found;
}

static pl_tensor *from_outline(PyObject *value, const outline *all, pl_dtype dtype, pl_dtype like,
                               const pl_shape *shape, const char *what)
{
    if (all->kind == LEAF_TENSOR)
        return from_node(value, dtype, shape);
    pl_dtype own = own_dtype(all);
    if (!dtype)
        dtype = like && (all->kind == LEAF_NONE || convert_dtype_fits(own, like)) ? like : own;
    if (all->shape.rank == 0 && !shape && dtype != PL_STRING)
        return from_number(value, dtype, what);
    return from_list(value, all, dtype, shape, what);
}

static pl_tensor *from_any(PyObject *value, pl_dtype dtype, pl_dtype like, const pl_shape *shape,
                           const char *what)
{
    outline all;
    if (tensor_check(value))
        return from_node(value, dtype, shape);
    if (convert_is_array(value)) {
        if (!dtype && like) {
            int own = convert_array_dtype(value);
            dtype = own > 0 && convert_dtype_fits((pl_dtype)own, like) ? like : PL_DTYPE_NONE;
        }
        return convert_from_array(value, dtype, shape, what);
    }
    if (outline_of(value, &all) < 0)
        return NULL;
    if (all.kind != LEAF_ARRAY)
        return from_outline(value, &all, dtype, like, shape, what);
    PyObject *make = convert_numpy("asarray");
    PyObject *array = make ? PyObject_CallOneArg(make, value) : NULL;
    pl_tensor *made = array ? from_any(array, dtype, like, shape, what) : NULL;
    Py_XDECREF(array);
    return made;
}

pl_tensor *convert_from_items(PyObject *items, pl_dtype dtype, const pl_shape *shape,
                              const char *what)
{
    outline all = {.kind = LEAF_ARRAY};
    if (!convert_is_array(items) && outline_of(items, &all) < 0)
        return NULL;
    if (all.kind != LEAF_ARRAY)
        return from_outline(items, &all, dtype, PL_DTYPE_NONE, shape, what);
    PyErr_Format(
        PyExc_ValueError,
        "Failed to convert a NumPy array to a Tensor: its items are arrays, or of no dtype "
        "that a tensor can have");
    return NULL;
}

pl_tensor *convert_from(PyObject *value, pl_dtype dtype, const pl_shape *shape, const char *what)
{
    return from_any(value, dtype, PL_DTYPE_NONE, shape, what);
}

/* ---- nodes ---- */

static tensor *checked(tensor *node, pl_dtype dtype)
{
    if (!dtype || node->dtype == dtype)
        return node;
    PyErr_Format(PyExc_ValueError,
                 "Tensor conversion requested dtype %s for Tensor with dtype %s: %R",
                 convert_dtype_name(dtype), convert_dtype_name(node->dtype), node);
    Py_DECREF(node);
    return NULL;
}

static tensor *from_method(PyObject *value, pl_dtype dtype)
{
    PyObject *node = PyObject_CallMethodNoArgs(value, tensor_method);
    if (node && !tensor_check(node)) {
        PyErr_Format(PyExc_TypeError, "%R.__plimsoll_tensor__() gave %R: it gives a Tensor", value,
                     node);
        Py_CLEAR(node);
    }
    return node ? checked((tensor *)node, dtype) : NULL;
}

/* The dtype of the first tensor in a list. Numbers beside it get the same dtype. */
static pl_dtype first_dtype(PyObject *value, int depth)
{
    if (tensor_check(value))
        return ((tensor *)value)->dtype;
    if (depth > PL_RANK_MAX || (!PyList_Check(value) && !PyTuple_Check(value)))
        return PL_DTYPE_NONE;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++) {
        pl_dtype found = first_dtype(PySequence_Fast_GET_ITEM(value, i), depth + 1);
        if (found)
            return found;
    }
    return PL_DTYPE_NONE;
}

static tensor *packed(PyObject *value, pl_dtype dtype, pl_dtype like)
{
    PyObject *items = PySequence_Fast(value, "a list was expected");
    if (!items)
        return NULL;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    tensor **nodes = PyMem_New(tensor *, n + 1), *made = NULL;
    int n_made = 0;
    while (nodes && n_made < n) {
        PyObject *item = item_of(items, n_made);
        tensor *node = item ? convert_to_node(item, dtype, like) : NULL;
        Py_XDECREF(item);
        if (!node)
            break;
        nodes[n_made++] = node;
    }
    if (nodes && n_made == n)
        made = tensor_pack(nodes, n_made);
    if (nodes)
        convert_drop_nodes(nodes, n_made);
    else
        PyErr_NoMemory();
    Py_DECREF(items);
    return made;
}

/* Is there a tensor somewhere in these lists? Does not look into lists that are deeper than a
 * tensor can be, or that contain each other: those are refused later. */
static bool has_tensor(PyObject *value, int depth)
{
    if (!PyList_Check(value) && !PyTuple_Check(value))
        return tensor_check(value) || (!is_inert(value) && kind_of(value) == LEAF_TENSOR);
    bool found = false;
    for (Py_ssize_t i = 0; depth <= PL_RANK_MAX && !found && i < PySequence_Fast_GET_SIZE(value);
         i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(value, i);
        if (is_inert(item))
            continue;
        Py_INCREF(item);
        found = has_tensor(item, depth + 1);
        Py_DECREF(item);
    }
    return found;
}

/* A fast path for plain numbers, which most operands are. */
static pl_tensor *from_plain(PyObject *value, pl_dtype dtype, pl_dtype like)
{
    pl_dtype own = PL_F32;
    if (PyBool_Check(value)) {
        own = PL_BOOL;
    } else if (PyLong_CheckExact(value)) {
        int overflow;
        long long i = PyLong_AsLongLongAndOverflow(value, &overflow);
        own = overflow || i > INT32_MAX || i < INT32_MIN ? PL_I64 : PL_I32;
    }
    if (!dtype)
        dtype = like && convert_dtype_fits(own, like) ? like : own;
    return from_number(value, dtype, "constant");
}

static tensor *named_node(PyObject *value, pl_dtype dtype, pl_dtype like, PyObject *name)
{
    if (tensor_check(value))
        return checked((tensor *)Py_NewRef(value), dtype);
    bool plain = PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value);
    if (!plain && convert_type_has(value, tensor_method))
        return from_method(value, dtype);
    if (!plain && is_list(value) && has_tensor(value, 0)) {
        pl_dtype first = first_dtype(value, 0);
        if (Py_EnterRecursiveCall(" while a list is converted"))
            return NULL;
        tensor *made = packed(value, dtype, first ? first : like);
        Py_LeaveRecursiveCall();
        return made;
    }
    pl_tensor *made =
        plain ? from_plain(value, dtype, like) : from_any(value, dtype, like, NULL, "constant");
    return made ? tensor_constant(made, name) : NULL;
}

tensor *convert_to_node(PyObject *value, pl_dtype dtype, pl_dtype like)
{
    return named_node(value, dtype, like, NULL);
}

/* ---- called from Python ---- */

static int text_or_none(const char *function, PyObject **name)
{
    if (*name == Py_None)
        *name = NULL;
    if (!*name || PyUnicode_Check(*name))
        return 0;
    PyErr_Format(PyExc_TypeError, "%s(): name is %R: it takes text", function, *name);
    return -1;
}

static PyObject *convert(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"value", "dtype", "like", "name", NULL};
    PyObject *value, *dtype = Py_None, *like = Py_None, *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|OOO:convert", names, &value, &dtype,
                                     &like, &name) ||
        text_or_none("convert", &name) < 0)
        return NULL;
    int own = convert_dtype(dtype), other = own < 0 ? -1 : convert_dtype(like);
    return other < 0 ? NULL : (PyObject *)named_node(value, (pl_dtype)own, (pl_dtype)other, name);
}

/* Gives the elements this shape: a single element fills it, others are reshaped. Takes over the
 * node, which may be NULL. */
static tensor *reshaped(tensor *node, const pl_shape *shape, PyObject *name)
{
    static int broadcast, reshape;
    if (!broadcast) {
        broadcast = pl_op_find("broadcast_to");
        reshape = pl_op_find("reshape");
    }
    int rank = node ? tensor_shape(node).rank : 0;
    if (!node || (rank == 0 && shape->rank == 0))
        return node;
    int op = rank == 0 ? broadcast : reshape;
    const pl_attr attr = pl_attr_shape("shape", shape);
    tensor *made = tensor_op(op, &node, 1, &attr, 1, name);
    Py_DECREF(node);
    return made;
}

static PyObject *constant(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"value", "dtype", "shape", "name", NULL};
    PyObject *value, *dtype = Py_None, *shape = Py_None, *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|OOO:constant", names, &value, &dtype,
                                     &shape, &name) ||
        text_or_none("constant", &name) < 0)
        return NULL;
    pl_shape wanted;
    int own = convert_dtype(dtype);
    if (own < 0 || convert_shape(shape, &wanted) < 0)
        return NULL;
    bool is_node = tensor_check(value) || (is_list(value) && has_tensor(value, 0)) ||
                   kind_of(value) == LEAF_TENSOR;
    if (is_node) {
        tensor *node = named_node(value, (pl_dtype)own, PL_DTYPE_NONE, name);
        return (PyObject *)(shape == Py_None ? node : reshaped(node, &wanted, name));
    }
    PyObject *whole = name ? tensor_scoped_name(name) : NULL;
    const char *what = whole ? PyUnicode_AsUTF8(whole) : "constant";
    pl_tensor *made =
        what ? convert_from(value, (pl_dtype)own, shape == Py_None ? NULL : &wanted, what) : NULL;
    Py_XDECREF(whole);
    if (!made)
        return NULL;
    bool fills = shape != Py_None && pl_tensor_shape(made)->rank == 0;
    tensor *node = tensor_constant(made, fills ? NULL : name);
    return (PyObject *)(fills ? reshaped(node, &wanted, name) : node);
}

static PyObject *from_dlpack(PyObject *module, PyObject *value)
{
    (void)module;
    pl_tensor *made = convert_from_dlpack(value, true, "dlpack");
    return made ? (PyObject *)tensor_constant(made, NULL) : NULL;
}

static PyMethodDef functions[] = {
    {"convert", (PyCFunction)(void (*)(void))convert, METH_VARARGS | METH_KEYWORDS,
     "convert(value, dtype=None, like=None, name=None)\n--\n\nA Tensor of whatever can be one."},
    {"constant", (PyCFunction)(void (*)(void))constant, METH_VARARGS | METH_KEYWORDS,
     "constant(value, dtype=None, shape=None, name=None)\n--\n\nA Tensor with that value."},
    {"from_dlpack", from_dlpack, METH_O,
     "from_dlpack(value)\n--\n\nA Tensor over the memory of a DLPack capsule, or of what gives "
     "one."},
    {NULL, NULL, 0, NULL},
};

int module_add_convert(PyObject *module)
{
    tensor_method = PyUnicode_InternFromString("__plimsoll_tensor__");
    if (!tensor_method || module_add_types(module) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
