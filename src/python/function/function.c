/* SPDX-License-Identifier: Apache-2.0 */
/* See function.h. */
#include "python/function/function.h"

#include <errno.h>
#include <structmember.h>

#include "python/convert/convert.h"
#include "python/convert/types.h"
#include "python/function/call_make.h"
#include "python/module/failure.h"
#include "python/module/streams.h"

PyTypeObject *function_type;

/* Needs no GIL: computes pending captures. */
int function_for_dataset(const function *self, const pl_spec *inputs, int n_inputs,
                         pl_function *ret)
{
    pl_evaluator *evaluator = module_evaluator();
    pl_error error;
    pl_error_init(&error);
    int r;
    if (!evaluator)
        return -1;
    Py_BEGIN_ALLOW_THREADS;
    r = pl_traced_function(self->traced, evaluator, inputs, n_inputs, ret, &error);
    Py_END_ALLOW_THREADS;
    if (r < 0)
        failure_raise(&error);
    return r < 0 ? -1 : 0;
}

/* ---- called from Python ---- */

static void dealloc(PyObject *object)
{
    function *self = (function *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(object);
    pl_traced_unref(self->traced);
    arguments_free(self->inputs, self->n_inputs);
    arguments_free(self->outputs, self->n_outputs);
    Py_XDECREF(self->name);
    type->tp_free(object);
    Py_DECREF(type);
}

/* Shows the objects to code that looks for cycles; a function clears none itself. */
static int traverse(PyObject *object, visitproc visit, void *arg)
{
    const function *self = (function *)object;
    for (int i = 0; i < self->n_inputs; i++)
        Py_VISIT((PyObject *)self->inputs[i]);
    for (int i = 0; i < self->n_outputs; i++)
        Py_VISIT((PyObject *)self->outputs[i]);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static uint64_t trace_of(const function *self)
{
    if (self->n_inputs > 0)
        return pl_expr_trace(self->inputs[0]->expr);
    for (int i = 0; i < self->n_outputs; i++)
        if (pl_expr_trace(self->outputs[i]->expr) != 0)
            return pl_expr_trace(self->outputs[i]->expr);
    return 0;
}

static int raise_inputs(const function *self, pl_error *error)
{
    bool given = true;
    for (int i = 0; i < self->n_inputs; i++)
        given = given && pl_expr_is_placeholder(self->inputs[i]->expr);
    if (error->code == -EINVAL)
        PyErr_SetString(given ? PyExc_ValueError : PyExc_TypeError, error->message);
    else
        failure_raise(error);
    return -1;
}

static int make_traced(function *self)
{
    pl_error error;
    pl_error_init(&error);
    pl_expr **inputs = tensor_exprs(self->inputs, self->n_inputs);
    pl_expr **outputs = inputs ? tensor_exprs(self->outputs, self->n_outputs) : NULL;
    int r = -1;
    if (outputs) {
        r = pl_traced_new(inputs, self->n_inputs, outputs, self->n_outputs, trace_of(self),
                          &self->traced, &error);
        if (r < 0)
            raise_inputs(self, &error);
    }
    PyMem_Free(inputs);
    PyMem_Free(outputs);
    return r;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"inputs", "outputs", "name", NULL};
    PyObject *inputs, *outputs, *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:Function", names, &inputs, &outputs,
                                     &name) ||
        arguments_name(name, &name) < 0)
        return NULL;
    function *self = (function *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->name = name ? Py_NewRef(name) : PyUnicode_FromString("function");
    if (self->name && arguments_nodes(inputs, NULL, &self->inputs, &self->n_inputs) == 0 &&
        arguments_nodes(outputs, NULL, &self->outputs, &self->n_outputs) == 0 &&
        make_traced(self) == 0)
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static int check_given(const function *self, tensor *const *given, int n)
{
    if (n != self->n_inputs) {
        PyErr_Format(PyExc_TypeError, "%U takes %d tensors, and was given %d", self->name,
                     self->n_inputs, n);
        return -1;
    }
    for (int i = 0; i < n; i++) {
        const pl_shape own = tensor_shape(self->inputs[i]), other = tensor_shape(given[i]);
        if (types_agree(&own, &other))
            continue;
        PyObject *wanted = convert_shape_tuple(&own);
        PyObject *is = convert_shape_tuple(&other);
        if (wanted && is)
            PyErr_Format(PyExc_ValueError, "%U: input %d has shape %R, which is not %R", self->name,
                         i, is, wanted);
        Py_XDECREF(wanted);
        Py_XDECREF(is);
        return -1;
    }
    return 0;
}

/* Makes objects for exprs; takes over the references. `r` is the result of making the exprs. */
static PyObject *outputs_of(pl_expr **exprs, int n, int r, pl_error *error)
{
    PyObject *list = r < 0 ? NULL : PyList_New(n);
    if (r < 0 && !PyErr_Occurred()) {
        if (error->code == -EBUSY)
            PyErr_SetString(PyExc_RuntimeError, error->message);
        else
            failure_raise(error);
    }
    pl_error_done(error);
    for (int i = 0; r == 0 && i < n; i++) {
        PyObject *node = list ? (PyObject *)tensor_of_expr(exprs[i]) : NULL;
        pl_expr_unref(exprs[i]);
        if (node)
            PyList_SET_ITEM(list, i, node);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *call_traced(const function *self, tensor *const *given)
{
    pl_error error;
    pl_error_init(&error);
    PyObject *list = NULL;
    tensor_copying copying;
    pl_expr **inputs = tensor_exprs(given, self->n_inputs);
    pl_expr **outputs = inputs ? PyMem_New(pl_expr *, self->n_outputs + 1) : NULL;
    if (outputs) {
        uint64_t n_streams = pl_traced_n_streams(self->traced);
        tensor_copying_init(&copying);
        int r = pl_traced_call(self->traced, inputs, n_streams > 0 ? streams_take(n_streams) : 0,
                               &copying.copied, outputs, &error);
        list = outputs_of(outputs, self->n_outputs, r, &error);
        tensor_copying_done(&copying);
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    PyMem_Free(inputs);
    PyMem_Free(outputs);
    return list;
}

static PyObject *call_function(PyObject *object, PyObject *args, PyObject *kwargs)
{
    const function *self = (function *)object;
    tensor **given = NULL;
    int n = 0;
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "a Function takes no keywords");
        return NULL;
    }
    if (arguments_nodes(args, self, &given, &n) < 0)
        return NULL;
    PyObject *outputs = check_given(self, given, n) == 0 ? call_traced(self, given) : NULL;
    arguments_free(given, n);
    return outputs;
}

static PyObject *list_of(tensor *const *nodes, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++)
        PyList_SET_ITEM(list, i, Py_NewRef((PyObject *)nodes[i]));
    return list;
}

static PyObject *get_inputs(PyObject *self, void *unused)
{
    (void)unused;
    return list_of(((function *)self)->inputs, ((function *)self)->n_inputs);
}

static PyObject *get_outputs(PyObject *self, void *unused)
{
    (void)unused;
    return list_of(((function *)self)->outputs, ((function *)self)->n_outputs);
}

static PyObject *get_captures(PyObject *self, void *unused)
{
    (void)unused;
    const pl_traced *traced = ((function *)self)->traced;
    int n = pl_traced_n_captures(traced);
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *node = (PyObject *)tensor_of_expr(pl_traced_capture(traced, i));
        if (node)
            PyList_SET_ITEM(list, i, node);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyGetSetDef getters[] = {
    {"inputs", get_inputs, NULL, "Its placeholders.", NULL},
    {"outputs", get_outputs, NULL, "What they become.", NULL},
    {"captures", get_captures, NULL, "Nodes of other traces that it hangs on.", NULL},
    {0}};

static PyMemberDef members[] = {
    {"name", T_OBJECT, offsetof(function, name), READONLY, "What messages call it."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(function, weakrefs), READONLY, NULL},
    {0}};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Function(inputs, outputs, name='function')\n\n"
                "What was traced from placeholders to outputs. Called with tensors it gives a list "
                "of\nnew ones; random ops draw anew at each call."},
    {Py_tp_new, make},
    {Py_tp_call, call_function},
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_getset, getters},
    {Py_tp_members, members},
    {0, NULL}};

static PyType_Spec spec = {.name = "plimsoll._core.Function",
                           .basicsize = sizeof(function),
                           .flags =
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
                           .slots = slots};

/* ---- substitute ---- */

static int take_pairs(PyObject *pairs, tensor ***ret_nodes, tensor ***ret_others, int *ret_n)
{
    PyObject *fast = PySequence_Fast(pairs, "a sequence of (node, replacement) is expected");
    int n = fast ? (int)PySequence_Fast_GET_SIZE(fast) : 0, made = 0;
    tensor **at = fast ? PyMem_Calloc(2 * (size_t)n + 2, sizeof *at) : NULL;
    if (fast && !at)
        PyErr_NoMemory();
    *ret_nodes = at;
    *ret_others = at ? at + n : NULL;
    for (; at && made < n; made++) {
        PyObject *node, *other;
        if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(fast, made),
                              "O!O;a pair is (node, replacement)", tensor_type, &node, &other))
            break;
        at[n + made] = convert_to_node(other, ((tensor *)node)->dtype, PL_DTYPE_NONE);
        if (!at[n + made])
            break;
        at[made] = (tensor *)Py_NewRef(node);
    }
    *ret_n = n;
    Py_XDECREF(fast);
    return at && made == n ? 0 : -1;
}

static PyObject *substitute_exprs(tensor *const *wanted, int n_wanted, tensor *const *nodes,
                                  tensor *const *others, int n)
{
    pl_error error;
    pl_error_init(&error);
    PyObject *list = NULL;
    tensor_copying copying;
    pl_expr **outputs = tensor_exprs(wanted, n_wanted), **made = tensor_exprs(wanted, n_wanted);
    pl_expr **from = tensor_exprs(nodes, n), **to = tensor_exprs(others, n);
    if (outputs && made && from && to) {
        tensor_copying_init(&copying);
        int r = pl_exprs_substitute(outputs, n_wanted, from, to, n, streams_take, &copying.copied,
                                    made, &error);
        list = outputs_of(made, n_wanted, r, &error);
        tensor_copying_done(&copying);
    }
    PyMem_Free(outputs);
    PyMem_Free(made);
    PyMem_Free(from);
    PyMem_Free(to);
    return list;
}

static PyObject *substitute(PyObject *module, PyObject *args)
{
    PyObject *outputs, *pairs, *list = NULL;
    tensor **wanted = NULL, **nodes = NULL, **others = NULL;
    int n_wanted = 0, n = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:substitute", &outputs, &pairs))
        return NULL;
    if (take_pairs(pairs, &nodes, &others, &n) == 0 &&
        arguments_nodes(outputs, NULL, &wanted, &n_wanted) == 0)
        list = substitute_exprs(wanted, n_wanted, nodes, others, n);
    arguments_free(wanted, n_wanted);
    arguments_free(nodes, 2 * n);
    return list;
}

static PyMethodDef methods[] = {
    {"cond", (PyCFunction)(void (*)(void))call_cond, METH_VARARGS | METH_KEYWORDS, call_cond_doc},
    {"while_loop", (PyCFunction)(void (*)(void))call_while, METH_VARARGS | METH_KEYWORDS,
     call_while_doc},
    {"python_call", (PyCFunction)(void (*)(void))call_python, METH_VARARGS | METH_KEYWORDS,
     call_python_doc},
    {"parse_examples", (PyCFunction)(void (*)(void))call_parse, METH_VARARGS | METH_KEYWORDS,
     call_parse_doc},
    {"substitute", substitute, METH_VARARGS,
     "substitute(outputs, pairs) -> list of tensors\n\n"
     "The outputs, with nodes replaced by others: (node, replacement)."},
    {"next_streams", streams_next, METH_VARARGS, streams_next_doc},
    {"set_streams", streams_set, METH_O, streams_set_doc},
    {0}};

int module_add_functions(PyObject *module)
{
    function_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    if (!function_type || PyModule_AddType(module, function_type) < 0)
        return -1;
    return PyModule_AddFunctions(module, methods);
}
