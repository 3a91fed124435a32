/* SPDX-License-Identifier: Apache-2.0 */
/* See function.h. What a dataset makes of one is in function_dataset.c. */
#include "python/function/function.h"

#include <errno.h>
#include <structmember.h>

#include "python/convert/convert.h"
#include "python/convert/types.h"
#include "python/function/call_make.h"
#include "python/function/function_private.h"
#include "python/module/failure.h"
#include "python/module/gil.h"
#include "python/module/streams.h"

PyTypeObject *function_type;

int function_n_inputs(const function *self)
{
    return self->n_inputs;
}

int function_n_outputs(const function *self)
{
    return self->n_outputs;
}

const pl_type *function_input_type(const function *self, int i)
{
    return &self->inputs[i]->type;
}

const pl_type *function_output_type(const function *self, int i)
{
    return &self->outputs[i]->type;
}

int function_n_captures(const function *self)
{
    return self->body.outside.n;
}

tensor *const *function_captures(const function *self)
{
    return self->body.outside.at;
}

bool function_is_impure(const function *self)
{
    for (int i = 0; i < self->body.own.n; i++) {
        const tensor *node = self->body.own.at[i];
        if (node->kind == TENSOR_CALL && node->call->impure)
            return true;
    }
    return false;
}

/* ---- as a program ---- */

/* More than so much of what is left of the budget is not computed before it is needed. */
enum { EAGER_SHARE = 8 };

static int evaluate_captured(const function *self)
{
    uint64_t bytes = 0;
    for (int i = 0; i < self->body.eager.n; i++)
        bytes += type_bytes(&self->body.eager.at[i]->type);
    pl_runtime *runtime = module_runtime();
    if (!runtime)
        return -1;
    if (bytes > FUNCTION_EAGER_BYTES && bytes > pl_runtime_left_bytes(runtime) / EAGER_SHARE)
        return 0;
    return evaluate(self->body.eager.at, self->body.eager.n);
}

/* Another thread may have made it while what is captured, or drawn once, was computed. */
int function_make_program(function *self)
{
    if (atomic_load(&self->program))
        return 0;
    if (self->body.eager.n > 0 && evaluate_captured(self) < 0)
        return -1;
    if (!module_runtime())
        return -1;
    int n_captures = self->body.outside.n, n = self->n_inputs + n_captures;
    tensor **leaves = PyMem_Malloc(((size_t)n + 1) * sizeof *leaves);
    if (!leaves) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < n; i++)
        leaves[i] =
            i < self->n_inputs ? self->inputs[i] : self->body.outside.at[i - self->n_inputs];
    pl_tensor **values;
    int n_values;
    uint64_t stream;
    bool eager;
    const program_nodes of = {
        .fetches = self->outputs, .leaves = leaves, .n_fetches = self->n_outputs, .n_leaves = n};
    program *made =
        atomic_load(&self->program) ? NULL : program_of(&of, &values, &n_values, &stream, &eager);
    PyMem_Free(leaves);
    if (made && atomic_load(&self->program)) {
        for (int i = 0; i < n_values; i++)
            pl_tensor_unref(values[i]);
        PyMem_Free(values);
        program_unref(made);
    } else if (made) {
        self->values = values;
        self->n_values = n_values;
        self->stream = stream;
        atomic_store(&self->program, made);
    }
    return atomic_load(&self->program) ? 0 : -1;
}

static int make_without_gil(function *self, pl_error *reterr)
{
    PyGILState_STATE gil;
    if (!gil_take(&gil))
        return pl_error_set(reterr, -ECANCELED, "Python is at its end: functions are not run");
    int r = function_make_program(self) < 0 ? failure_take(reterr) : 0;
    gil_give(gil);
    return r;
}

int function_run(function *self, pl_tensor *const *inputs, const run_state *state,
                 pl_tensor **outputs, pl_error *reterr)
{
    int r = atomic_load(&self->program) ? 0 : make_without_gil(self, reterr);
    if (r < 0)
        return r;
    enum { FEW = 32 };
    int n = self->n_inputs + self->body.outside.n;
    pl_tensor *few[FEW], **leaves = few;
    if (n + self->n_values > FEW)
        leaves = malloc((size_t)(n + self->n_values) * sizeof *leaves);
    if (!leaves)
        return pl_error_set(reterr, -ENOMEM, "no memory to call a function");
    if (n > 0)
        memcpy(leaves, inputs, (size_t)n * sizeof *leaves);
    if (self->n_values > 0)
        memcpy(leaves + n, self->values, (size_t)self->n_values * sizeof *leaves);
    run_state own = *state;
    own.random_stream += self->stream;
    r = program_run(self->program, leaves, NULL, &own, outputs, reterr);
    if (leaves != few)
        free(leaves);
    return r;
}

/* ---- in Python ---- */

static void dealloc(PyObject *object)
{
    function *self = (function *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(object);
    program_unref(atomic_load(&self->program));
    for (int i = 0; i < self->n_values; i++)
        pl_tensor_unref(self->values[i]);
    PyMem_Free(self->values);
    body_done(&self->body);
    arguments_free(self->inputs, self->n_inputs);
    arguments_free(self->outputs, self->n_outputs);
    Py_XDECREF(self->name);
    type->tp_free(object);
    Py_DECREF(type);
}

/* For those who look for cycles; of its own it ends none. */
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

static const PyObject *graph_of(const function *self)
{
    if (self->n_inputs > 0)
        return self->inputs[0]->graph;
    for (int i = 0; i < self->n_outputs; i++)
        if (self->outputs[i]->graph)
            return self->outputs[i]->graph;
    return NULL;
}

static int check_inputs(const function *self)
{
    for (int i = 0; i < self->n_inputs; i++) {
        if (self->inputs[i]->kind != TENSOR_GIVEN) {
            PyErr_Format(PyExc_TypeError, "input %d of a Function is no placeholder", i);
            return -1;
        }
        for (int k = 0; k < i; k++)
            if (self->inputs[k] == self->inputs[i]) {
                PyErr_Format(PyExc_ValueError, "inputs %d and %d of a Function are one placeholder",
                             k, i);
                return -1;
            }
    }
    return 0;
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
        check_inputs(self) == 0 &&
        body_make(&self->body, self->inputs, self->n_inputs, self->outputs, self->n_outputs,
                  graph_of(self)) == 0)
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
    for (int i = 0; i < n; i++)
        if (!types_agree(&self->inputs[i]->type.shape, &given[i]->type.shape)) {
            PyObject *wanted = convert_shape_tuple(&self->inputs[i]->type.shape);
            PyObject *is = convert_shape_tuple(&given[i]->type.shape);
            if (wanted && is)
                PyErr_Format(PyExc_ValueError, "%U: input %d has shape %R, which is not %R",
                             self->name, i, is, wanted);
            Py_XDECREF(wanted);
            Py_XDECREF(is);
            return -1;
        }
    return 0;
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
    PyObject *outputs =
        check_given(self, given, n) == 0 ? body_substitute(&self->body, given) : NULL;
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
    return list_of(function_captures((function *)self), function_n_captures((function *)self));
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
        at[n + made] = convert_to_node(other, ((tensor *)node)->type.dtype, PL_DTYPE_NONE);
        if (!at[n + made])
            break;
        at[made] = (tensor *)Py_NewRef(node);
    }
    *ret_n = n;
    Py_XDECREF(fast);
    return at && made == n ? 0 : -1;
}

static PyObject *substitute(PyObject *module, PyObject *args)
{
    PyObject *outputs, *pairs, *list = NULL;
    tensor **wanted = NULL, **nodes = NULL, **others = NULL;
    int n_wanted = 0, n = 0;
    body b;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:substitute", &outputs, &pairs))
        return NULL;
    if (take_pairs(pairs, &nodes, &others, &n) == 0 &&
        arguments_nodes(outputs, NULL, &wanted, &n_wanted) == 0 &&
        body_make(&b, nodes, n, wanted, n_wanted, NULL) == 0) {
        list = body_substitute(&b, others);
        body_done(&b);
    }
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
