/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Tensor as Python sees it: attributes, conversions to Python's own values, the
 * buffer protocol. tensor_ops.c has the operators; plimsoll.tf adds more to the type. */
#include "python/tensor/tensor.h"

#include <string.h>

#include <structmember.h>

#include "python/convert/convert.h"
#include "python/tensor/tensor_slots.h"

/* ---- attributes ---- */

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return convert_dtype_object(((tensor *)self)->dtype);
}

static PyObject *get_shape(PyObject *self, void *unused)
{
    (void)unused;
    const pl_shape shape = tensor_shape((tensor *)self);
    return convert_shape_object(&shape);
}

static PyObject *get_ndim(PyObject *self, void *unused)
{
    (void)unused;
    int rank = tensor_shape((tensor *)self).rank;
    return rank < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(rank);
}

static PyObject *get_name(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(tensor_label((tensor *)self));
}

static PyObject *get_graph(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *graph = ((tensor *)self)->graph;
    return Py_NewRef(graph ? graph : Py_None);
}

static PyObject *get_device(PyObject *self, void *unused)
{
    (void)unused;
    const char *device = pl_expr_device(((tensor *)self)->expr);
    return PyUnicode_FromString(device ? device : "");
}

static PyObject *get_site(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *file;
    int line;
    if (!tensor_site(((tensor *)self)->expr, &file, &line))
        Py_RETURN_NONE;
    return Py_BuildValue("(Oi)", file, line);
}

static PyObject *get_is_symbolic(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(pl_expr_is_symbolic(((tensor *)self)->expr));
}

static PyObject *get_is_pending(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(pl_expr_is_pending(((tensor *)self)->expr));
}

static PyObject *get_item(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(pl_expr_item(((tensor *)self)->expr));
}

static PyObject *get_op_name(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(pl_expr_op_name(((tensor *)self)->expr));
}

/* For an item, the inputs of its call. */
static PyObject *get_inputs(PyObject *self, void *unused)
{
    (void)unused;
    const tensor *node = (tensor *)self;
    PyObject *list = PyList_New(0);
    for (int i = 0; list; i++) {
        pl_expr *input = pl_expr_input(node->expr, i);
        if (!input)
            break;
        PyObject *object = (PyObject *)tensor_of_expr(input);
        pl_expr_unref(input);
        if (!object || PyList_Append(list, object) < 0)
            Py_CLEAR(list);
        Py_XDECREF(object);
    }
    return list;
}

static PyGetSetDef attributes_of_tensors[] = {
    {"dtype", get_dtype, NULL, "What its elements are.", NULL},
    {"shape", get_shape, NULL, "How many along each axis, as far as it is known.", NULL},
    {"ndim", get_ndim, NULL, "Number of axes; None if it is not known.", NULL},
    {"name", get_name, NULL, "Its name, with its scope; else its op's.", NULL},
    {"graph", get_graph, NULL, "The graph that it is part of; None: it is eager.", NULL},
    {"device", get_device, NULL, "Where it is to be computed; '': anywhere.", NULL},
    {"site", get_site, NULL, "(file, line) that made it; None if nobody knows.", NULL},
    {"is_symbolic", get_is_symbolic, NULL, "Does it hang on a placeholder?", NULL},
    {"is_pending", get_is_pending, NULL, "Is it still to be computed?", NULL},
    {"op_name", get_op_name, NULL, "Which op makes it.", NULL},
    {"item", get_item, NULL, "Which output of its op it is.", NULL},
    {"inputs", get_inputs, NULL, "The tensors that it is made of.", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- conversions to Python's own values ---- */

/* The only element of a tensor as a Python number, bool or bytes. */
static PyObject *scalar(PyObject *self, const char *what)
{
    tensor *node = (tensor *)self;
    pl_tensor *value = tensor_value(node, what);
    if (!value)
        return NULL;
    const pl_shape *shape = pl_tensor_shape(value);
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] == 1)
            continue;
        PyErr_Format(strcmp(what, "bool") == 0 ? PyExc_ValueError : PyExc_TypeError,
                     "only tensors of one element can be a Python %s, not '%s' of %d axes%s", what,
                     tensor_label(node), shape->rank,
                     strcmp(what, "bool") == 0 ? ": use tf.reduce_any() or tf.reduce_all()" : "");
        return NULL;
    }
    return convert_to_scalar(value);
}

static PyObject *as_float(PyObject *self)
{
    PyObject *number = scalar(self, "float");
    PyObject *made = number ? PyNumber_Float(number) : NULL;
    Py_XDECREF(number);
    return made;
}

static PyObject *as_int(PyObject *self)
{
    PyObject *number = scalar(self, "int");
    PyObject *made = number ? PyNumber_Long(number) : NULL;
    Py_XDECREF(number);
    return made;
}

/* Only integer scalars can be an index. */
static PyObject *as_index(PyObject *self)
{
    const tensor *node = (tensor *)self;
    if (node->dtype < PL_U8 || node->dtype > PL_I64 || tensor_shape(node).rank > 0) {
        PyErr_Format(PyExc_TypeError,
                     "only integer scalar tensors can be converted to a scalar index, not '%s'",
                     tensor_label(node));
        return NULL;
    }
    return scalar(self, "index");
}

static int as_bool(PyObject *self)
{
    tensor *node = (tensor *)self;
    PyObject *number = scalar(self, "bool");
    if (!number)
        return -1;
    int truth = node->dtype == PL_STRING ? PyBytes_GET_SIZE(number) > 0 : PyObject_IsTrue(number);
    Py_DECREF(number);
    return truth;
}

static Py_ssize_t length(PyObject *self)
{
    const tensor *node = (tensor *)self;
    const pl_shape shape = tensor_shape(node);
    if (shape.rank > 0 && shape.dims[0] >= 0)
        return (Py_ssize_t)shape.dims[0];
    if (shape.rank == 0)
        PyErr_SetString(PyExc_TypeError, "Scalar tensor has no `len()`");
    else
        PyErr_Format(PyExc_TypeError,
                     "len is not well defined for a symbolic Tensor ('%s'): call tf.shape(x) "
                     "rather than len(x) for its shape",
                     tensor_label(node));
    return -1;
}

/* Equal tensors may be different objects, so eager tensors cannot be keys; nodes of a graph can, by
 * identity. */
static Py_hash_t hash(PyObject *self)
{
    const tensor *node = (tensor *)self;
    if (node->graph || pl_expr_is_symbolic(node->expr))
        return PyBaseObject_Type.tp_hash(self); /* by its address */
    PyErr_SetString(PyExc_TypeError, "Tensor is unhashable. Instead, use tensor.ref() as the key.");
    return -1;
}

static PyObject *text(PyObject *self)
{
    const tensor *node = (tensor *)self;
    const pl_shape known = tensor_shape(node);
    PyObject *shape = convert_shape_tuple(&known);
    PyObject *made =
        shape ? PyUnicode_FromFormat("<plimsoll Tensor '%s' shape=%R dtype=%s>", tensor_label(node),
                                     shape, convert_dtype_name(node->dtype))
              : NULL;
    Py_XDECREF(shape);
    return made;
}

/* Adds knowledge about the shape; earlier knowledge stays true. */
static PyObject *set_shape(PyObject *self, PyObject *value)
{
    const tensor *node = (tensor *)self;
    pl_shape said;
    pl_error error;
    pl_error_init(&error);
    if (convert_shape(value, &said) < 0)
        return NULL;
    if (pl_expr_narrow(node->expr, &said, &error) == 0)
        Py_RETURN_NONE;
    const pl_shape own = tensor_shape(node);
    PyObject *before = convert_shape_tuple(&own);
    if (before)
        PyErr_Format(PyExc_ValueError, "'%s' has shape %R, which %R is not compatible with",
                     tensor_label(node), before, value);
    Py_XDECREF(before);
    return NULL;
}

/* A tensor never changes, so it is its own copy. */
static PyObject *copy(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

/* For pickle: the receiving process makes the tensor from an array and a dtype, within its own
 * budget. */
static PyObject *reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    pl_tensor *value = tensor_value((tensor *)self, "a pickle");
    PyObject *array = value ? convert_to_numpy(value) : NULL;
    PyObject *module = array ? PyImport_ImportModule("plimsoll._core") : NULL;
    PyObject *make = module ? PyObject_GetAttrString(module, "constant") : NULL;
    PyObject *made =
        make ? Py_BuildValue("O(Os)", make, array, convert_dtype_name(pl_tensor_dtype(value)))
             : NULL;
    Py_XDECREF(make);
    Py_XDECREF(module);
    Py_XDECREF(array);
    return made;
}

static PyMethodDef methods[] = {
    {"__copy__", copy, METH_NOARGS, NULL},
    {"__deepcopy__", copy, METH_O, NULL},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {"set_shape", set_shape, METH_O,
     "set_shape(shape)\n--\n\nAdds what is known of the shape: ValueError if it cannot be."},
    {"numpy", convert_method_numpy, METH_NOARGS,
     "numpy()\n--\n\nThe value as a NumPy array, or scalar: a copy of up to 1 MiB, else read-only "
     "over its memory.\n\n>>> tf.constant([1, 2]).numpy()\narray([1, 2], dtype=int32)"},
    {"__array__", (PyCFunction)(void (*)(void))convert_method_array, METH_VARARGS | METH_KEYWORDS,
     "__array__(dtype=None)\n--\n\nA NumPy array over its memory, read-only."},
    {"__dlpack__", (PyCFunction)(void (*)(void))convert_method_dlpack, METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(stream=None)\n--\n\nA DLPack capsule over its memory, which is not to be "
     "changed."},
    {"__dlpack_device__", convert_method_dlpack_device, METH_NOARGS,
     "__dlpack_device__()\n--\n\n(1, 0): the CPU."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(tensor, weakrefs), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(tensor, dict), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Elements of one dtype, there already or still to be computed."},
    {Py_tp_new, module_refuse_new},
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_traverse, tensor_traverse},
    {Py_tp_clear, tensor_clear},
    {Py_tp_getset, attributes_of_tensors},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_repr, text},
    {Py_tp_hash, hash},
    {Py_sq_length, length},
    {Py_mp_length, length},
    {Py_nb_float, as_float},
    {Py_nb_int, as_int},
    {Py_nb_index, as_index},
    {Py_nb_bool, as_bool},
    {Py_bf_getbuffer, convert_get_buffer},
    {Py_bf_releasebuffer, convert_release_buffer},
    TENSOR_OPERATOR_SLOTS,
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "plimsoll._core.Tensor",
    .basicsize = sizeof(tensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

/* ---- the context, and making nodes in it ---- */

static PyObject *trace_name; /* "_core_trace" */

static void replace(PyObject **place, PyObject *value)
{
    PyObject *wanted = value == Py_None ? NULL : Py_NewRef(value);
    Py_XSETREF(*place, wanted);
}

static PyObject *or_none(PyObject *object)
{
    return object ? object : Py_None;
}

/* Graphs by their number in the library. Weak: nodes hold their graph, and a node whose object was
 * freed may need a new one. */
static PyObject *graphs;

static PyObject *number_graph(PyObject *graph)
{
    PyObject *number = PyLong_FromUnsignedLongLong(pl_trace_next());
    if (number && PyObject_SetAttr(graph, trace_name, number) == 0 &&
        PyObject_SetItem(graphs, number, graph) == 0)
        return number;
    Py_XDECREF(number);
    return NULL;
}

static int trace_of(PyObject *graph, uint64_t *ret_trace)
{
    *ret_trace = 0;
    if (graph == Py_None)
        return 0;
    PyObject *number = PyObject_GetAttr(graph, trace_name);
    if (!number && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        number = number_graph(graph);
    }
    if (!number)
        return -1;
    *ret_trace = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

int tensor_find_graph(uint64_t trace, PyObject **ret_graph)
{
    PyObject *number = trace != 0 ? PyLong_FromUnsignedLongLong(trace) : NULL;
    *ret_graph = number ? PyObject_GetItem(graphs, number) : NULL;
    Py_XDECREF(number);
    if (!*ret_graph && PyErr_ExceptionMatches(PyExc_KeyError))
        PyErr_Clear();
    return PyErr_Occurred() ? -1 : 0;
}

static int make_graphs(void)
{
    PyObject *module = graphs ? NULL : PyImport_ImportModule("weakref");
    if (module)
        graphs = PyObject_CallMethod(module, "WeakValueDictionary", NULL);
    Py_XDECREF(module);
    trace_name = trace_name ? trace_name : PyUnicode_InternFromString("_core_trace");
    return graphs && trace_name ? 0 : -1;
}

static PyObject *set_context(PyObject *module, PyObject *const *arguments, Py_ssize_t n)
{
    (void)module;
    if (n != 3)
        return PyErr_Format(PyExc_TypeError, "context() takes graph, scope and device");
    if (!PyUnicode_Check(arguments[1]))
        return PyErr_Format(PyExc_TypeError, "context(): scope is %R: it takes text", arguments[1]);
    uint64_t trace = tensor_in.trace;
    if (arguments[0] != or_none(tensor_in.graph) && trace_of(arguments[0], &trace) < 0)
        return NULL;
    PyObject *scope = tensor_in.scope ? Py_NewRef(tensor_in.scope) : PyUnicode_FromString("");
    PyObject *before =
        Py_BuildValue("(ONO)", or_none(tensor_in.graph), scope, or_none(tensor_in.device));
    if (!before)
        return NULL;
    tensor_in.trace = trace;
    replace(&tensor_in.graph, arguments[0]);
    replace(&tensor_in.scope, arguments[1]);
    replace(&tensor_in.device, arguments[2]);
    return before;
}

static PyObject *placeholder(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"dtype", "shape", "name", NULL};
    PyObject *dtype, *shape, *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|O:placeholder", names, &dtype, &shape,
                                     &name))
        return NULL;
    pl_type type;
    int number = convert_dtype(dtype);
    if (number < 0 || convert_shape(shape, &type.shape) < 0)
        return NULL;
    type.dtype = (pl_dtype)number;
    return (PyObject *)tensor_given(&type, name == Py_None ? NULL : name);
}

static PyMethodDef functions[] = {
    {"context", (PyCFunction)(void (*)(void))set_context, METH_FASTCALL,
     "context(graph, scope, device)\n--\n\nWhat this thread's nodes are made in from now on; gives "
     "what was before."},
    {"placeholder", (PyCFunction)(void (*)(void))placeholder, METH_VARARGS | METH_KEYWORDS,
     "placeholder(dtype, shape, name=None)\n--\n\nWhat is fed when something is run."},
    {NULL, NULL, 0, NULL},
};

int module_add_tensor(PyObject *module)
{
    if (make_graphs() < 0)
        return -1;
    if (!tensor_type)
        tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!tensor_type || PyModule_AddObjectRef(module, "Tensor", (PyObject *)tensor_type) < 0)
        return -1;
    /* Goes before NumPy's operators: array + tensor is a tensor. */
    PyObject *priority = PyLong_FromLong(100);
    int r = priority
                ? PyObject_SetAttrString((PyObject *)tensor_type, "__array_priority__", priority)
                : -1;
    Py_XDECREF(priority);
    return r < 0 ? -1 : PyModule_AddFunctions(module, functions);
}
