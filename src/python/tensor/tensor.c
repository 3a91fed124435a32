/* SPDX-License-Identifier: Apache-2.0 */
/* The life of nodes: made, named, settled, freed. What they can do as Python objects is in
 * tensor_type.c and tensor_ops.c. */
#include "python/tensor/tensor.h"

#include <string.h>

#include "python/module/failure.h"
#include "python/module/site.h"
#include "python/program/program.h"

PyTypeObject *tensor_type;
_Thread_local tensor_context tensor_in;

static tensor *first_value; /* of all nodes that have values */

/* ---- memory ----
 * Nodes come and go by the thousand: some that were freed are kept. They are containers for the
 * collector, because a graph has its nodes and they have it; those of no graph hang on older nodes
 * alone, so that they cannot be part of a circle, and are not tracked. */

#define FREE_MAX 512

static tensor *free_nodes;
static int n_free;

static tensor *node_new(tensor_kind kind)
{
    tensor *node = free_nodes;
    if (node) {
        free_nodes = node->next;
        n_free--;
        (void)PyObject_Init(&node->ob_base, tensor_type);
    } else {
        node = PyObject_GC_New(tensor, tensor_type);
        if (!node)
            return NULL;
    }
    memset((char *)node + sizeof node->ob_base, 0, sizeof *node - sizeof node->ob_base);
    node->kind = kind;
    node->inputs = node->few;
    return node;
}

static void node_free(tensor *node)
{
    if (n_free < FREE_MAX) {
        node->next = free_nodes;
        free_nodes = node;
        n_free++;
    } else {
        PyObject_GC_Del(node);
    }
    Py_DECREF(tensor_type);
}

/* ---- values ---- */

tensor *tensor_first_value(void)
{
    return first_value;
}

static void link_value(tensor *node)
{
    node->next = first_value;
    node->link = &first_value;
    if (first_value)
        first_value->link = &node->next;
    first_value = node;
}

static void unlink_value(tensor *node)
{
    *node->link = node->next;
    if (node->next)
        node->next->link = node->link;
}

/* Takes over the reference. */
static void set_value(tensor *node, pl_tensor *value)
{
    node->value = value;
    node->type.dtype = pl_tensor_dtype(value);
    node->type.shape = *pl_tensor_shape(value);
    link_value(node);
}

/* ---- inputs ---- */

/* Leaves the node half made on failure, to be let go of. */
static int set_inputs(tensor *node, tensor *const *inputs, int n_inputs)
{
    if (n_inputs > (int)(sizeof node->few / sizeof *node->few)) {
        node->inputs = PyMem_New(tensor *, n_inputs);
        if (!node->inputs) {
            node->inputs = node->few;
            PyErr_NoMemory();
            return -1;
        }
    }
    uint32_t depth = 0;
    for (int i = 0; i < n_inputs; i++) {
        tensor *input = (tensor *)Py_NewRef((PyObject *)inputs[i]);
        input->uses++;
        node->inputs[i] = input;
        node->symbolic |= input->symbolic;
        if (depth < input->depth)
            depth = input->depth;
    }
    node->n_inputs = n_inputs;
    node->depth = depth + 1;
    return 0;
}

static void drop_inputs(tensor *node)
{
    tensor **inputs = node->inputs, *few[2] = {node->few[0], node->few[1]};
    int n_inputs = node->n_inputs;
    bool are_few = inputs == node->few;
    node->inputs = node->few;
    node->n_inputs = 0;
    for (int i = 0; i < n_inputs; i++) {
        tensor *input = are_few ? few[i] : inputs[i];
        input->uses--;
        Py_DECREF(input);
    }
    if (!are_few)
        PyMem_Free(inputs);
}

void tensor_settle(tensor *node, pl_tensor *value)
{
    node->kind = TENSOR_VALUE;
    node->depth = 0;
    set_value(node, value);
    attributes_unref(node->attrs);
    node->attrs = NULL;
    drop_inputs(node);
}

/* ---- freeing ----
 * A node's inputs may die with it, and theirs, thousands deep: those wait in a list, so that the
 * stack does not grow. Whoever meets them while another thread empties it leaves them to that. */

static tensor *doomed;
static bool freeing;

static void end(tensor *node)
{
    if (node->value)
        pl_tensor_unref(node->value);
    drop_inputs(node);
    attributes_unref(node->attrs);
    call_unref(node->call);
    Py_XDECREF(node->name);
    Py_XDECREF(node->graph);
    Py_XDECREF(node->device);
    Py_XDECREF(node->code);
    Py_XDECREF(node->dict);
    node_free(node);
}

void tensor_dealloc(PyObject *self)
{
    tensor *node = (tensor *)self;
    PyObject_GC_UnTrack(self);
    if (node->weakrefs)
        PyObject_ClearWeakRefs(self);
    if (node->value)
        unlink_value(node); /* `next` is needed for the list */
    node->next = doomed;
    doomed = node;
    if (freeing)
        return;
    freeing = true;
    while ((node = doomed)) {
        doomed = node->next;
        end(node);
    }
    freeing = false;
}

int tensor_traverse(PyObject *self, visitproc visit, void *arg)
{
    tensor *node = (tensor *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(node->graph);
    Py_VISIT(node->dict);
    for (int i = 0; i < node->n_inputs; i++)
        Py_VISIT(node->inputs[i]);
    return 0;
}

int tensor_clear(PyObject *self)
{
    tensor *node = (tensor *)self;
    Py_CLEAR(node->graph);
    Py_CLEAR(node->dict);
    drop_inputs(node);
    return 0;
}

/* ---- names and places ---- */

PyObject *tensor_scoped_name(PyObject *name)
{
    PyObject *scope = tensor_in.scope;
    Py_ssize_t n = scope ? PyUnicode_GET_LENGTH(scope) : 0;
    if (n == 0)
        return Py_NewRef(name);
    bool slash = PyUnicode_READ_CHAR(scope, n - 1) == '/';
    return PyUnicode_FromFormat(slash ? "%U%U" : "%U/%U", scope, name);
}

/* The graph names the node, and has it from then on. Whom nobody named it names for the op. */
static int join_graph(tensor *node, PyObject *graph, PyObject *name, const char *label)
{
    node->graph = Py_NewRef(graph);
    PyObject_GC_Track(node);
    PyObject *made = name ? PyObject_CallMethod(graph, "_unique_name", "O", name)
                          : PyObject_CallMethod(graph, "_unique_name", "sO", label, Py_True);
    if (!made)
        return -1;
    if (!PyUnicode_Check(made)) {
        PyErr_Format(PyExc_TypeError, "_unique_name() gave %R: a name is text", made);
        Py_DECREF(made);
        return -1;
    }
    node->name = made;
    if (node->kind == TENSOR_CALL)
        return 0;
    PyObject *none = PyObject_CallMethod(graph, "_add", "O", node);
    Py_XDECREF(none);
    return none ? 0 : -1;
}

/* A constant of a graph is a value like any other: what is made of it elsewhere is not the graph's.
 * But nothing is made of two graphs. -1 with an exception. */
static int graph_of(const tensor *node, PyObject **ret_graph)
{
    const tensor *first = NULL;
    *ret_graph = tensor_in.graph;
    for (int i = 0; !tensor_in.graph && i < node->n_inputs; i++) {
        const tensor *input = node->inputs[i];
        if (!input->graph)
            continue;
        if (first && first->graph != input->graph) {
            PyErr_Format(PyExc_ValueError, "Tensor '%s' must be from the same graph as Tensor '%s'",
                         tensor_label(input), tensor_label(first));
            return -1;
        }
        first = input;
        if (!input->value)
            *ret_graph = input->graph;
    }
    return 0;
}

/* What the context and the user's frame say of a new node; takes it over. */
static tensor *placed(tensor *node, PyObject *name, const char *label)
{
    node->device = Py_XNewRef(tensor_in.device);
    node->code = site_capture(&node->instruction);
    PyObject *graph;
    int r = graph_of(node, &graph);
    if (r == 0 && graph)
        r = join_graph(node, graph, name, label);
    else if (r == 0 && name)
        r = (node->name = tensor_scoped_name(name)) ? 0 : -1;
    if (r == 0)
        return node;
    Py_DECREF(node);
    return NULL;
}

const char *tensor_label(const tensor *node)
{
    const char *name = node->name ? PyUnicode_AsUTF8(node->name) : NULL;
    if (name)
        return name;
    if (node->name)
        PyErr_Clear(); /* surrogates: it has no name that could be printed */
    switch (node->kind) {
    case TENSOR_OP:
        return pl_op_name(node->op);
    case TENSOR_CALL:
        return node->call->class->name;
    case TENSOR_ITEM:
        return tensor_label(node->inputs[0]);
    case TENSOR_GIVEN:
        return "placeholder";
    case TENSOR_VALUE:
        return "value";
    }
    return "tensor";
}

bool tensor_site(const tensor *node, PyObject **ret_file, int *ret_line)
{
    if (!node->code)
        return false;
    *ret_file = node->code->co_filename;
    *ret_line = PyCode_Addr2Line(node->code, node->instruction);
    return true;
}

/* ---- making nodes ---- */

static tensor *value_node(pl_tensor *value)
{
    tensor *node = node_new(TENSOR_VALUE);
    if (!node) {
        pl_tensor_unref(value);
        return NULL;
    }
    set_value(node, value);
    return node;
}

tensor *tensor_of_value(pl_tensor *value, PyObject *name)
{
    tensor *node = value_node(value);
    if (!node)
        return NULL;
    node->name = Py_XNewRef(name);
    node->code = site_capture(&node->instruction);
    return node;
}

tensor *tensor_constant(pl_tensor *value, PyObject *name)
{
    tensor *node = value_node(value);
    return node ? placed(node, name, "Const") : NULL;
}

tensor *tensor_given(const pl_type *type, PyObject *name)
{
    tensor *node = node_new(TENSOR_GIVEN);
    if (!node)
        return NULL;
    node->type = *type;
    node->symbolic = true;
    return placed(node, name, "Placeholder");
}

/* A chain that grows for ever is computed now and then. */
static int shorten(tensor *const *inputs, int n_inputs)
{
    for (int i = 0; i < n_inputs; i++) {
        tensor *input = inputs[i];
        if (input->depth >= TENSOR_DEPTH_MAX && !input->symbolic && !input->graph &&
            evaluate(&input, 1) < 0)
            return -1;
    }
    return 0;
}

enum { N_ON_STACK = 8 };

/* Names are for messages: they are looked up once there is one. */
static int infer_failed(int op, const pl_type *types, tensor *const *inputs, int n_inputs,
                        const attributes *attrs, PyObject *name)
{
    pl_error error = {.code = 0};
    pl_type type;
    const char *on_stack[N_ON_STACK], **names = on_stack;
    if (n_inputs > N_ON_STACK && !(names = PyMem_New(const char *, n_inputs))) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < n_inputs; i++)
        names[i] = tensor_label(inputs[i]);
    const char *own = name ? PyUnicode_AsUTF8(name) : NULL;
    PyErr_Clear();
    if (pl_op_infer(op, own ? own : pl_op_name(op), types, names, n_inputs,
                    attrs ? attrs->attrs : NULL, attrs ? attrs->n_attrs : 0, &type, &error) < 0)
        failure_raise(&error);
    else
        PyErr_SetString(PyExc_SystemError, "an op failed once, and not again");
    if (names != on_stack)
        PyMem_Free(names);
    return -1;
}

static int infer(int op, tensor *const *inputs, int n_inputs, const attributes *attrs,
                 PyObject *name, pl_type *ret_type)
{
    pl_type on_stack[N_ON_STACK], *types = on_stack;
    if (n_inputs > N_ON_STACK && !(types = PyMem_New(pl_type, n_inputs))) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < n_inputs; i++)
        types[i] = inputs[i]->type;
    int r = pl_op_infer(op, pl_op_name(op), types, NULL, n_inputs, attrs ? attrs->attrs : NULL,
                        attrs ? attrs->n_attrs : 0, ret_type, NULL);
    if (r < 0)
        infer_failed(op, types, inputs, n_inputs, attrs, name);
    if (types != on_stack)
        PyMem_Free(types);
    return r < 0 ? -1 : 0;
}

tensor *tensor_op(int op, tensor *const *inputs, int n_inputs, attributes *attrs, PyObject *name)
{
    tensor *node = shorten(inputs, n_inputs) == 0 ? node_new(TENSOR_OP) : NULL;
    if (!node) {
        attributes_unref(attrs);
        return NULL;
    }
    node->op = op;
    node->attrs = attrs;
    if (infer(op, inputs, n_inputs, attrs, name, &node->type) < 0 ||
        set_inputs(node, inputs, n_inputs) < 0) {
        Py_DECREF(node);
        return NULL;
    }
    return placed(node, name, pl_op_name(op));
}

/* ---- calls ---- */

static tensor *call_node(call *what, tensor *const *inputs, int n_inputs, PyObject *name)
{
    tensor *node = shorten(inputs, n_inputs) == 0 ? node_new(TENSOR_CALL) : NULL;
    if (!node) {
        call_unref(what);
        return NULL;
    }
    node->call = what;
    if (set_inputs(node, inputs, n_inputs) < 0) {
        Py_DECREF(node);
        return NULL;
    }
    return placed(node, name, what->class->name);
}

static tensor *item_node(tensor *of, int item)
{
    tensor *node = node_new(TENSOR_ITEM);
    if (!node)
        return NULL;
    node->item = item;
    node->type = of->call->outputs[item];
    if (set_inputs(node, &of, 1) < 0) {
        Py_DECREF(node);
        return NULL;
    }
    node->name = Py_XNewRef(of->name);
    node->device = Py_XNewRef(of->device);
    node->code = (PyCodeObject *)Py_XNewRef((PyObject *)of->code);
    node->instruction = of->instruction;
    if (!of->graph)
        return node;
    node->graph = Py_NewRef(of->graph);
    PyObject_GC_Track(node);
    PyObject *none = PyObject_CallMethod(of->graph, "_add", "O", node);
    if (!none)
        Py_CLEAR(node);
    Py_XDECREF(none);
    return node;
}

PyObject *tensor_call(call *what, tensor *const *inputs, int n_inputs, PyObject *name)
{
    tensor *node = call_node(what, inputs, n_inputs, name);
    PyObject *items = node ? PyList_New(node->call->n_outputs) : NULL;
    for (int i = 0; items && i < node->call->n_outputs; i++) {
        tensor *item = item_node(node, i);
        if (item)
            PyList_SET_ITEM(items, i, (PyObject *)item);
        else
            Py_CLEAR(items);
    }
    Py_XDECREF(node);
    return items;
}

/* ---- values that are asked for ---- */

static pl_tensor *refuse_value(const tensor *node, const char *what)
{
    failure_raise_class("OperatorNotAllowedInGraphError",
                        "%s of '%s': it is part of a graph and has no value here: use tf.cond, "
                        "tf.while_loop or tf.where, or run it in a session",
                        what, tensor_label(node));
    return NULL;
}

pl_tensor *tensor_value(tensor *node, const char *what)
{
    if (node->kind == TENSOR_VALUE)
        return node->value;
    if (node->symbolic || node->graph)
        return refuse_value(node, what);
    if (evaluate(&node, 1) < 0)
        return NULL;
    if (node->kind != TENSOR_VALUE) {
        PyErr_Format(PyExc_SystemError, "%s of '%s': it was computed, and has no value", what,
                     tensor_label(node));
        return NULL;
    }
    return node->value;
}
