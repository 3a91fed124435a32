/* SPDX-License-Identifier: Apache-2.0 */
/* Operators, and ops by name. The path for two tensors, or a tensor and a number, is short: no
 * lookups, no objects beside the nodes. */
#include <string.h>

#include "python/convert/convert.h"
#include "python/module/failure.h"
#include "python/tensor/tensor.h"
#include "python/tensor/tensor_slots.h"

/* ---- ops by number ---- */

static int op_add, op_sub, op_mul, op_div, op_floordiv, op_mod, op_pow, op_matmul, op_bitwise_and,
    op_bitwise_or, op_bitwise_xor, op_bitwise_not, op_left_shift, op_right_shift, op_neg, op_abs,
    op_less, op_less_equal, op_greater, op_greater_equal, op_equal, op_not_equal, op_cast,
    op_reshape, op_concat, op_string_join;

static const struct {
    int *op;
    const char *name;
} operators[] = {
    {&op_add, "add"},
    {&op_sub, "sub"},
    {&op_mul, "mul"},
    {&op_div, "div"},
    {&op_floordiv, "floordiv"},
    {&op_mod, "mod"},
    {&op_pow, "pow"},
    {&op_matmul, "matmul"},
    {&op_bitwise_and, "bitwise_and"},
    {&op_bitwise_or, "bitwise_or"},
    {&op_bitwise_xor, "bitwise_xor"},
    {&op_bitwise_not, "bitwise_not"},
    {&op_left_shift, "left_shift"},
    {&op_right_shift, "right_shift"},
    {&op_neg, "neg"},
    {&op_abs, "abs"},
    {&op_less, "less"},
    {&op_less_equal, "less_equal"},
    {&op_greater, "greater"},
    {&op_greater_equal, "greater_equal"},
    {&op_equal, "equal"},
    {&op_not_equal, "not_equal"},
    {&op_cast, "cast"},
    {&op_reshape, "reshape"},
    {&op_string_join, "string_join"},
    {&op_concat, "concat"},
};

static int find_operators(void)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        *operators[i].op = pl_op_find(operators[i].name);
        if (*operators[i].op < 0) {
            PyErr_Format(PyExc_SystemError, "libplimsoll has no op '%s'", operators[i].name);
            return -1;
        }
    }
    return 0;
}

/* Names come from literals, which are the same object each time: cached by address. */
static struct {
    PyObject *name;
    int op;
} known[256];

static int op_of(PyObject *name)
{
    size_t place = ((uintptr_t)name >> 4) % (sizeof known / sizeof *known);
    if (known[place].name == name)
        return known[place].op;
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    int op = text ? pl_op_find(text) : -1;
    if (op < 0) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "there is no op %R", name);
        return -1;
    }
    known[place].op = op;
    Py_XSETREF(known[place].name, Py_NewRef(name));
    return op;
}

/* ---- operands ---- */

/* TensorFlow's names: int32, float, double. */
static const char *word_of(pl_dtype dtype)
{
    switch (dtype) {
    case PL_F32:
        return "float";
    case PL_F64:
        return "double";
    case PL_F16:
        return "half";
    default:
        return convert_dtype_name(dtype);
    }
}

static int refuse_mixed(int op, const tensor *x, const tensor *y)
{
    const char *name = pl_op_name(op);
    if (tensor_in.graph || x->graph || y->graph)
        PyErr_Format(
            PyExc_TypeError,
            "Input 'y' of '%s' Op has type %s that does not match type %s of argument 'x'.", name,
            convert_dtype_name(y->dtype), convert_dtype_name(x->dtype));
    else
        failure_raise_class("InvalidArgumentError",
                            "cannot compute %s as input #1(zero-based) was expected to be a %s "
                            "tensor but is a %s tensor ('%.100s' and '%.100s'): tf.cast one of "
                            "them [Op:%s]",
                            name, word_of(x->dtype), word_of(y->dtype), tensor_label(x),
                            tensor_label(y), name);
    return -1;
}

/* A number, list or array, whose dtype may follow the other operand's. Variables count as
 * tensors. */
static bool is_value(PyObject *object)
{
    if (PyFloat_Check(object) || PyLong_Check(object) || PyList_Check(object))
        return true;
    return !tensor_check(object) && !PyObject_HasAttrString(object, "__plimsoll_tensor__");
}

static void refuse_value(PyObject *value, pl_dtype dtype)
{
    PyErr_Format(PyExc_TypeError, "Cannot convert %R to EagerTensor of dtype %s", value,
                 convert_dtype_name(dtype));
}

/* Converts both to nodes, new references; a number or list takes the dtype of a tensor beside
 * it. */
static int operands(int op, PyObject *a, PyObject *b, tensor *nodes[2])
{
    bool a_is = !is_value(a), b_is = !is_value(b);
    int first = b_is && !a_is; /* the operand with a dtype of its own */
    PyObject *const objects[2] = {a, b};
    nodes[0] = nodes[1] = NULL;
    nodes[first] = convert_to_node(objects[first], PL_DTYPE_NONE, PL_DTYPE_NONE);
    if (nodes[first])
        nodes[!first] = convert_to_node(objects[!first], PL_DTYPE_NONE, nodes[first]->dtype);
    bool made = nodes[0] && nodes[1];
    if (made && nodes[0]->dtype != nodes[1]->dtype) {
        if (a_is != b_is)
            refuse_value(objects[!first], nodes[first]->dtype);
        else if (op >= 0)
            refuse_mixed(op, nodes[0], nodes[1]);
    }
    if (made && !PyErr_Occurred())
        return 0;
    Py_XDECREF(nodes[0]);
    Py_XDECREF(nodes[1]);
    return -1;
}

/* Adding texts concatenates them. */
static int op_for(int op, const tensor *x)
{
    return op == op_add && x->dtype == PL_STRING ? op_string_join : op;
}

static PyObject *binary(int op, PyObject *a, PyObject *b, PyObject *name)
{
    if (tensor_check(a) && tensor_check(b)) {
        tensor *both[2] = {(tensor *)a, (tensor *)b};
        if (both[0]->dtype == both[1]->dtype)
            return (PyObject *)tensor_op(op_for(op, both[0]), both, 2, NULL, 0, name);
    }
    tensor *nodes[2];
    if (operands(op, a, b, nodes) < 0)
        return NULL;
    tensor *made = tensor_op(op_for(op, nodes[0]), nodes, 2, NULL, 0, name);
    Py_DECREF(nodes[0]);
    Py_DECREF(nodes[1]);
    return (PyObject *)made;
}

/* Defers to objects that implement operators with tensors themselves. */
static PyObject *operator(int op, PyObject *a, PyObject *b)
{
    if ((!tensor_check(a) && !convert_is_possible(a)) ||
        (!tensor_check(b) && !convert_is_possible(b)))
        Py_RETURN_NOTIMPLEMENTED;
    return binary(op, a, b, NULL);
}

static PyObject *unary(int op, PyObject *x, PyObject *name)
{
    tensor *node = tensor_check(x) ? (tensor *)Py_NewRef(x) : convert_to_node(x, 0, 0);
    if (!node)
        return NULL;
    tensor *made = tensor_op(op, &node, 1, NULL, 0, name);
    Py_DECREF(node);
    return (PyObject *)made;
}

static tensor *cast(tensor *x, pl_dtype dtype)
{
    const pl_attr attr = pl_attr_dtype("dtype", dtype);
    return tensor_op(op_cast, &x, 1, &attr, 1, NULL);
}

/* ---- division: converts integers to floats first ---- */

static pl_dtype quotient_dtype(pl_dtype dtype)
{
    switch (dtype) {
    case PL_U8:
    case PL_I8:
    case PL_U16:
    case PL_I16:
        return PL_F32;
    case PL_U32:
    case PL_I32:
    case PL_U64:
    case PL_I64:
        return PL_F64;
    default:
        return dtype;
    }
}

static PyObject *divide_nodes(tensor *x, tensor *y, PyObject *name)
{
    pl_dtype dtype = quotient_dtype(x->dtype);
    tensor *nodes[2] = {x, y};
    if (dtype == x->dtype)
        return (PyObject *)tensor_op(op_div, nodes, 2, NULL, 0, name);
    nodes[0] = cast(x, dtype);
    nodes[1] = nodes[0] ? cast(y, dtype) : NULL;
    PyObject *made = nodes[1] ? (PyObject *)tensor_op(op_div, nodes, 2, NULL, 0, name) : NULL;
    Py_XDECREF(nodes[0]);
    Py_XDECREF(nodes[1]);
    return made;
}

static PyObject *divide(PyObject *a, PyObject *b, PyObject *name)
{
    tensor *nodes[2];
    PyObject *made = NULL;
    if (operands(-1, a, b, nodes) < 0)
        return NULL;
    if (nodes[0]->dtype != nodes[1]->dtype)
        PyErr_Format(PyExc_TypeError, "`x` and `y` must have the same dtype, got tf.%s != tf.%s.",
                     convert_dtype_name(nodes[0]->dtype), convert_dtype_name(nodes[1]->dtype));
    else
        made = divide_nodes(nodes[0], nodes[1], name);
    Py_DECREF(nodes[0]);
    Py_DECREF(nodes[1]);
    return made;
}

/* ---- slots ---- */

#define BINARY_SLOT(function, op)                                                                  \
    PyObject *tensor_##function(PyObject *a, PyObject *b)                                          \
    {                                                                                              \
        return operator(op, a, b);                                                                 \
    }

BINARY_SLOT(add, op_add)
BINARY_SLOT(subtract, op_sub)
BINARY_SLOT(multiply, op_mul)
BINARY_SLOT(floor_divide, op_floordiv)
BINARY_SLOT(remainder, op_mod)
BINARY_SLOT(matmul, op_matmul)
BINARY_SLOT(and, op_bitwise_and)
BINARY_SLOT(or, op_bitwise_or)
BINARY_SLOT(xor, op_bitwise_xor)
BINARY_SLOT(shift_left, op_left_shift)
BINARY_SLOT(shift_right, op_right_shift)

PyObject *tensor_true_divide(PyObject *a, PyObject *b)
{
    if ((!tensor_check(a) && !convert_is_possible(a)) ||
        (!tensor_check(b) && !convert_is_possible(b)))
        Py_RETURN_NOTIMPLEMENTED;
    return divide(a, b, NULL);
}

PyObject *tensor_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    return operator(op_pow, a, b);
}

PyObject *tensor_negative(PyObject *x)
{
    return unary(op_neg, x, NULL);
}

PyObject *tensor_positive(PyObject *x)
{
    return Py_NewRef(x);
}

PyObject *tensor_absolute(PyObject *x)
{
    return unary(op_abs, x, NULL);
}

PyObject *tensor_invert(PyObject *x)
{
    return unary(op_bitwise_not, x, NULL);
}

/* ---- comparisons ---- */

static bool may_broadcast(const pl_shape *a, const pl_shape *b)
{
    for (int i = 1; i <= a->rank && i <= b->rank; i++) {
        int64_t x = a->dims[a->rank - i], y = b->dims[b->rank - i];
        if (x != y && x != 1 && y != 1 && x != PL_UNKNOWN && y != PL_UNKNOWN)
            return false;
    }
    return true;
}

static PyObject *constant_truth(bool truth)
{
    pl_tensor *value = convert_from(truth ? Py_True : Py_False, PL_BOOL, NULL, "equal");
    return value ? (PyObject *)tensor_constant(value, NULL) : NULL;
}

/* No tensor equals None, or a value whose shape cannot be compared. */
static PyObject *compare_equal(int op, PyObject *a, PyObject *b)
{
    tensor *nodes[2];
    if (b == Py_None)
        return PyBool_FromLong(op == op_not_equal);
    if (!tensor_check(b) && !convert_is_possible(b))
        Py_RETURN_NOTIMPLEMENTED;
    if (operands(op, a, b, nodes) < 0)
        return NULL;
    const pl_shape shapes[2] = {tensor_shape(nodes[0]), tensor_shape(nodes[1])};
    PyObject *made = may_broadcast(&shapes[0], &shapes[1])
                         ? (PyObject *)tensor_op(op, nodes, 2, NULL, 0, NULL)
                         : constant_truth(op == op_not_equal);
    Py_DECREF(nodes[0]);
    Py_DECREF(nodes[1]);
    return made;
}

PyObject *tensor_compare(PyObject *a, PyObject *b, int how)
{
    switch (how) {
    case Py_LT:
        return operator(op_less, a, b);
    case Py_LE:
        return operator(op_less_equal, a, b);
    case Py_GT:
        return operator(op_greater, a, b);
    case Py_GE:
        return operator(op_greater_equal, a, b);
    default:
        return compare_equal(how == Py_EQ ? op_equal : op_not_equal, a, b);
    }
}

/* ---- ops by name ---- */

/* Reads the optional `name`, after n positional arguments or by keyword. -1 with TypeError. */
static int name_of(const char *function, PyObject *const *arguments, Py_ssize_t n_given,
                   PyObject *keywords, Py_ssize_t n, PyObject **ret_name)
{
    Py_ssize_t n_keywords = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    *ret_name = NULL;
    bool good = n_given + n_keywords == n;
    if (n_given == n + 1 && n_keywords == 0) {
        *ret_name = arguments[n];
        good = true;
    } else if (n_given == n && n_keywords == 1 &&
               PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, 0), "name") == 0) {
        *ret_name = arguments[n];
        good = true;
    } else {
        good = good && n_keywords == 0;
    }
    if (!good) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments and a name", function, n);
        return -1;
    }
    if (*ret_name == Py_None)
        *ret_name = NULL;
    if (*ret_name && !PyUnicode_Check(*ret_name)) {
        PyErr_Format(PyExc_TypeError, "%s(): name is %R: it takes text", function, *ret_name);
        return -1;
    }
    return 0;
}

static PyObject *by_name_unary(PyObject *module, PyObject *const *arguments, Py_ssize_t n,
                               PyObject *keywords)
{
    (void)module;
    PyObject *name;
    if (name_of("unary", arguments, n, keywords, 2, &name) < 0)
        return NULL;
    int op = op_of(arguments[0]);
    return op < 0 ? NULL : unary(op, arguments[1], name);
}

static PyObject *by_name_binary(PyObject *module, PyObject *const *arguments, Py_ssize_t n,
                                PyObject *keywords)
{
    (void)module;
    PyObject *name;
    if (name_of("binary", arguments, n, keywords, 3, &name) < 0)
        return NULL;
    int op = op_of(arguments[0]);
    return op < 0 ? NULL : binary(op, arguments[1], arguments[2], name);
}

static PyObject *by_name_divide(PyObject *module, PyObject *const *arguments, Py_ssize_t n,
                                PyObject *keywords)
{
    (void)module;
    PyObject *name;
    if (name_of("truediv", arguments, n, keywords, 2, &name) < 0)
        return NULL;
    return divide(arguments[0], arguments[1], name);
}

/* New references in a PyMem array. */
static tensor **nodes_of(PyObject *inputs, int *ret_n)
{
    PyObject *items = PySequence_Fast(inputs, "inputs are a list of tensors");
    if (!items)
        return NULL;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items), n_made = 0;
    tensor **nodes = PyMem_New(tensor *, n + 1);
    if (!nodes)
        PyErr_NoMemory();
    while (nodes && n_made < n) {
        tensor *node = convert_to_node(PySequence_Fast_GET_ITEM(items, n_made), 0, 0);
        if (!node)
            break;
        nodes[n_made++] = node;
    }
    Py_DECREF(items);
    if (nodes && n_made < n) {
        convert_drop_nodes(nodes, (int)n_made);
        return NULL;
    }
    *ret_n = (int)n;
    return nodes;
}

void convert_drop_nodes(tensor **nodes, int n)
{
    for (int i = 0; i < n; i++)
        Py_DECREF(nodes[i]);
    PyMem_Free(nodes);
}

static PyObject *by_name_op(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"op", "inputs", "attrs", "name", NULL};
    PyObject *op_name, *inputs, *dict = NULL, *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|OO:op", names, &op_name, &inputs,
                                     &dict, &name))
        return NULL;
    if (name && name != Py_None && !PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "op(): name is %R: it takes text", name);
    int n, op = op_of(op_name);
    attributes attrs;
    tensor **nodes = op >= 0 ? nodes_of(inputs, &n) : NULL;
    if (!nodes)
        return NULL;
    PyObject *made = NULL;
    if (attributes_of_dict(op, dict, &attrs) == 0) {
        made = (PyObject *)tensor_op(op, nodes, n, attrs.attrs, attrs.n,
                                     name == Py_None ? NULL : name);
        attributes_drop(&attrs);
    }
    convert_drop_nodes(nodes, n);
    return made;
}

/* ---- stacking: [a, b] is a tensor with one more axis ---- */

static tensor *with_axis(tensor *x)
{
    int64_t keep[PL_RANK_MAX] = {-1};
    pl_shape shape = {.rank = tensor_shape(x).rank + 1, .dims = {1}};
    for (int i = 1; i < shape.rank; i++) {
        shape.dims[i] = PL_UNKNOWN;
        keep[i] = i - 1;
    }
    const pl_attr attrs[] = {pl_attr_shape("shape", &shape),
                             pl_attr_ints("keep", keep, shape.rank)};
    return tensor_op(op_reshape, &x, 1, attrs, 2, NULL);
}

tensor *tensor_pack(tensor *const *nodes, int n)
{
    const pl_attr axis = pl_attr_int("axis", 0);
    tensor **parts = PyMem_New(tensor *, n), *made = NULL;
    int n_made = 0;
    if (!parts) {
        PyErr_NoMemory();
        return NULL;
    }
    while (n_made < n) {
        int rank = tensor_shape(nodes[n_made]).rank;
        if (rank < 0 || rank >= PL_RANK_MAX) {
            PyErr_Format(PyExc_ValueError, "'%s' cannot be packed with others: %s",
                         tensor_label(nodes[n_made]),
                         rank < 0 ? "its rank is not known" : "it has 8 axes already");
            break;
        }
        tensor *part = with_axis(nodes[n_made]);
        if (!part)
            break;
        parts[n_made++] = part;
    }
    if (n_made == n)
        made = tensor_op(op_concat, parts, n, &axis, 1, NULL);
    convert_drop_nodes(parts, n_made);
    return made;
}

static PyMethodDef functions[] = {
    {"unary", (PyCFunction)(void (*)(void))by_name_unary, METH_FASTCALL | METH_KEYWORDS,
     "unary(op, x, name=None)\n--\n\nAn op of one input."},
    {"binary", (PyCFunction)(void (*)(void))by_name_binary, METH_FASTCALL | METH_KEYWORDS,
     "binary(op, x, y, name=None)\n--\n\nAn op of two inputs of one dtype; numbers and lists take "
     "the other's."},
    {"truediv", (PyCFunction)(void (*)(void))by_name_divide, METH_FASTCALL | METH_KEYWORDS,
     "truediv(x, y, name=None)\n--\n\nx / y; integers become floating-point numbers first."},
    {"op", (PyCFunction)(void (*)(void))by_name_op, METH_VARARGS | METH_KEYWORDS,
     "op(op, inputs, attrs=None, name=None)\n--\n\nAny op, by its name."},
    {NULL, NULL, 0, NULL},
};

int module_add_ops(PyObject *module)
{
    return find_operators() < 0 ? -1 : PyModule_AddFunctions(module, functions);
}
