/* SPDX-License-Identifier: Apache-2.0 */
/* The life of nodes: making, naming, placing and freeing them. tensor_type.c and tensor_ops.c make
 * them Python objects. */
#include "python/tensor/tensor.h"

#include <string.h>

#include "python/module/failure.h"
#include "python/module/gil.h"
#include "python/module/site.h"
#include "python/tensor/evaluate.h"

PyTypeObject *tensor_type;
_Thread_local tensor_context tensor_in;

/* ---- memory ----
 * Nodes come and go by the thousand: we keep some of the freed ones. They are containers for the
 * garbage collector, because a graph holds its nodes and they hold it; those of no graph are not
 * tracked. */

#define FREE_MAX 512

/* The thread state with which this thread drops exprs: nearly always its own, with the GIL. Cheaper
 * to compare than PyGILState_Check(). Initial-exec, because the general model costs a call at each
 * access. */
static _Thread_local PyThreadState *letting_go __attribute__((tls_model("initial-exec")));

static tensor *first_node; /* of all nodes */
static tensor *free_nodes;
static int n_free;

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

/* Takes over the expr, also on failure. */
static tensor *node_new(pl_expr *expr)
{
    tensor *node = free_nodes;
    if (node) {
        free_nodes = node->next;
        n_free--;
        (void)PyObject_Init(&node->ob_base, tensor_type);
    } else {
        node = PyObject_GC_New(tensor, tensor_type);
        if (!node) {
            pl_expr_unref(expr);
            return NULL;
        }
    }
    node->expr = expr;
    node->dtype = pl_expr_dtype(expr);
    node->graph = node->weakrefs = node->dict = NULL;
    node->next = first_node;
    node->link = &first_node;
    if (first_node)
        first_node->link = &node->next;
    first_node = node;
    pl_expr_set_owner(expr, node);
    return node;
}

tensor *tensor_first(void)
{
    return first_node;
}

/* Python code may run meanwhile, which may drop other exprs, and the GIL. */
void tensor_let_go(pl_expr *expr, pl_evaluation *evaluation)
{
    PyThreadState *before = letting_go;
    letting_go = PyThreadState_Get();
    if (expr)
        pl_expr_unref(expr);
    if (evaluation)
        pl_evaluation_free(evaluation);
    letting_go = before;
}

void tensor_dealloc(PyObject *self)
{
    tensor *node = (tensor *)self;
    PyObject_GC_UnTrack(self);
    if (node->weakrefs)
        PyObject_ClearWeakRefs(self);
    *node->link = node->next;
    if (node->next)
        node->next->link = node->link;
    pl_expr *expr = node->expr;
    PyObject *graph = node->graph, *dict = node->dict;
    node_free(node);
    pl_expr_set_owner(expr, NULL);
    tensor_let_go(expr, NULL);
    Py_XDECREF(graph);
    Py_XDECREF(dict);
}

int tensor_traverse(PyObject *self, visitproc visit, void *arg)
{
    tensor *node = (tensor *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(node->graph);
    Py_VISIT(node->dict);
    return 0;
}

int tensor_clear(PyObject *self)
{
    tensor *node = (tensor *)self;
    Py_CLEAR(node->graph);
    Py_CLEAR(node->dict);
    return 0;
}

pl_expr **tensor_exprs(tensor *const *nodes, int n)
{
    pl_expr **exprs = PyMem_New(pl_expr *, n + 1);
    if (!exprs) {
        PyErr_NoMemory();
        return NULL;
    }
    for (int i = 0; i < n; i++)
        exprs[i] = nodes[i]->expr;
    return exprs;
}

tensor *tensor_of_expr(pl_expr *expr)
{
    tensor *node = pl_expr_owner(expr);
    if (node)
        return (tensor *)Py_NewRef((PyObject *)node);
    PyObject *graph;
    if (tensor_find_graph(pl_expr_trace(expr), &graph) < 0)
        return NULL;
    node = node_new(pl_expr_ref(expr));
    if (node && graph) {
        node->graph = Py_NewRef(graph);
        PyObject_GC_Track(node);
    }
    Py_XDECREF(graph);
    return node;
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

/* From any thread: the library may free exprs. */
static void release_site(void *code)
{
    if ((letting_go && letting_go == PyThreadState_GetUnchecked()) || PyGILState_Check())
        Py_DECREF((PyObject *)code);
    else
        gil_decref(code);
}

static void capture_site(pl_expr *expr)
{
    int instruction;
    PyCodeObject *code = site_capture(&instruction);
    if (code)
        pl_expr_set_site(expr, code, instruction, release_site);
}

bool tensor_site(const pl_expr *expr, PyObject **ret_file, int *ret_line)
{
    int64_t instruction;
    PyCodeObject *code = pl_expr_site(expr, &instruction);
    if (!code)
        return false;
    *ret_file = code->co_filename;
    *ret_line = PyCode_Addr2Line(code, (int)instruction);
    return true;
}

/* Leaves out a name that is not valid UTF-8: it could not be printed. */
static int set_name(pl_expr *expr, PyObject *name)
{
    pl_error error;
    pl_error_init(&error);
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) {
        PyErr_Clear();
        return 0;
    }
    return pl_expr_set_name(expr, text, &error) < 0 ? (failure_raise(&error), -1) : 0;
}

static int set_device(pl_expr *expr)
{
    pl_error error;
    pl_error_init(&error);
    const char *text = tensor_in.device ? PyUnicode_AsUTF8(tensor_in.device) : NULL;
    if (!text)
        return tensor_in.device ? -1 : 0;
    return pl_expr_set_device(expr, text, &error) < 0 ? (failure_raise(&error), -1) : 0;
}

/* The graph gives the node a name: the user's, else one for its op. */
static PyObject *unique_name(PyObject *graph, PyObject *name, const char *label)
{
    PyObject *made = name ? PyObject_CallMethod(graph, "_unique_name", "O", name)
                          : PyObject_CallMethod(graph, "_unique_name", "sO", label, Py_True);
    if (made && !PyUnicode_Check(made)) {
        PyErr_Format(PyExc_TypeError, "_unique_name() gave %R: a name is text", made);
        Py_CLEAR(made);
    }
    return made;
}

/* The graph holds it from now on. */
static int join_graph(tensor *node, PyObject *graph, uint64_t trace, PyObject *name)
{
    node->graph = Py_NewRef(graph);
    PyObject_GC_Track(node);
    pl_expr_set_trace(node->expr, trace);
    if (set_name(node->expr, name) < 0)
        return -1;
    PyObject *none = PyObject_CallMethod(graph, "_add", "O", node);
    Py_XDECREF(none);
    return none ? 0 : -1;
}

typedef struct place {
    PyObject *graph; /* borrowed; NULL: none */
    uint64_t trace;
} place;

static inline bool any_of_graph(tensor *const *inputs, int n_inputs)
{
    for (int i = 0; i < n_inputs; i++)
        if (inputs[i] && inputs[i]->graph)
            return true;
    return false;
}

/* A graph's constant is an ordinary value: a node made of it elsewhere does not belong to the
 * graph. But no node has inputs of two graphs. -1 with an exception. */
static int place_of(tensor *const *inputs, int n_inputs, place *ret)
{
    const tensor *first = NULL;
    *ret = (place){tensor_in.graph, tensor_in.trace};
    for (int i = 0; !tensor_in.graph && i < n_inputs; i++) {
        const tensor *input = inputs[i];
        if (!input || !input->graph)
            continue;
        if (first && first->graph != input->graph) {
            PyErr_Format(PyExc_ValueError, "Tensor '%s' must be from the same graph as Tensor '%s'",
                         tensor_label(input), tensor_label(first));
            return -1;
        }
        first = input;
        if (!tensor_has(input))
            *ret = (place){input->graph, pl_expr_trace(input->expr)};
    }
    return 0;
}

/* Makes the node of a new expr, placed by the context and the user's frame. Takes over the expr;
 * NULL: making it failed. */
static tensor *placed(pl_expr *expr, tensor *const *inputs, int n_inputs, PyObject *name,
                      const char *label)
{
    tensor *node = node_new(expr);
    if (!node)
        return NULL;
    capture_site(expr);
    if (!name && !tensor_in.graph && !tensor_in.device && !any_of_graph(inputs, n_inputs))
        return node;
    place at;
    int r = tensor_in.device ? set_device(expr) : 0;
    if (r == 0)
        r = place_of(inputs, n_inputs, &at);
    PyObject *whole = NULL;
    if (r == 0 && at.graph) {
        whole = unique_name(at.graph, name, label);
        r = whole ? join_graph(node, at.graph, at.trace, whole) : -1;
    } else if (r == 0 && name) {
        whole = tensor_scoped_name(name);
        r = whole ? set_name(expr, whole) : -1;
    }
    Py_XDECREF(whole);
    if (r == 0)
        return node;
    Py_DECREF(node);
    return NULL;
}

const char *tensor_label(const tensor *node)
{
    return pl_expr_label(node->expr);
}

/* ---- making nodes ---- */

/* Takes over the reference. */
static pl_expr *value_expr(pl_tensor *value)
{
    pl_error error;
    pl_error_init(&error);
    pl_expr *expr = NULL;
    int r = pl_expr_of_value(value, &expr, &error);
    pl_tensor_unref(value);
    if (r < 0)
        failure_raise(&error);
    return expr;
}

tensor *tensor_of_value(pl_tensor *value, PyObject *name)
{
    pl_expr *expr = value_expr(value);
    if (!expr)
        return NULL;
    capture_site(expr);
    tensor *node = node_new(expr);
    if (node && name && set_name(expr, name) < 0)
        Py_CLEAR(node);
    return node;
}

tensor *tensor_constant(pl_tensor *value, PyObject *name)
{
    pl_expr *expr = value_expr(value);
    return expr ? placed(expr, NULL, 0, name, "Const") : NULL;
}

tensor *tensor_given(const pl_type *type, PyObject *name)
{
    pl_error error;
    pl_error_init(&error);
    pl_expr *expr;
    if (pl_expr_placeholder(NULL, type, &expr, &error) < 0)
        return (tensor *)failure_raise(&error);
    return placed(expr, NULL, 0, name, "Placeholder");
}

/* Computes a chain that grows without end now and then. */
static int shorten(pl_expr *expr)
{
    if (pl_expr_depth(expr) < TENSOR_DEPTH_MAX || pl_expr_is_symbolic(expr) ||
        pl_expr_trace(expr) != 0)
        return 0;
    return evaluate_exprs(&expr, 1);
}

static inline int make_op(int op, pl_expr *const *exprs, int n, const pl_attr *attrs, int n_attrs,
                          PyObject *name, pl_expr **ret)
{
    pl_error error;
    pl_error_init(&error);
    const char *text = name ? PyUnicode_AsUTF8(name) : NULL;
    if (name && !text)
        PyErr_Clear();
    int r = pl_expr_op(op, text, exprs, n, attrs, n_attrs, ret, &error);
    if (r < 0)
        failure_raise(&error);
    return r;
}

/* Makes the op again from inputs that have values. */
static int make_short_op(int op, pl_expr *const *exprs, int n, const pl_attr *attrs, int n_attrs,
                         PyObject *name, pl_expr **made)
{
    pl_expr_unref(*made);
    for (int i = 0; i < n; i++)
        if (shorten(exprs[i]) < 0)
            return -1;
    return make_op(op, exprs, n, attrs, n_attrs, name, made);
}

tensor *tensor_op(int op, tensor *const *inputs, int n_inputs, const pl_attr *attrs, int n_attrs,
                  PyObject *name)
{
    enum { FEW = 8 };
    pl_expr *few[FEW] = {NULL}, **exprs = few, *made;
    if (n_inputs > FEW && !(exprs = PyMem_New(pl_expr *, n_inputs)))
        return (tensor *)PyErr_NoMemory();
    for (int i = 0; i < n_inputs; i++)
        exprs[i] = inputs[i]->expr;
    int r = make_op(op, exprs, n_inputs, attrs, n_attrs, name, &made);
    if (r == 0 && pl_expr_depth(made) > TENSOR_DEPTH_MAX)
        r = make_short_op(op, exprs, n_inputs, attrs, n_attrs, name, &made);
    if (exprs != few)
        PyMem_Free(exprs);
    return r < 0 ? NULL : placed(made, inputs, n_inputs, name, pl_op_name(op));
}

/* ---- items of calls ---- */

/* All items have the call's name, place and site. */
static int place_items(PyObject *list, const place *at, PyObject *name)
{
    int r = 0;
    for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(list); i++) {
        tensor *node = (tensor *)PyList_GET_ITEM(list, i);
        capture_site(node->expr);
        if (tensor_in.device)
            r = set_device(node->expr);
        if (r == 0 && at->graph)
            r = join_graph(node, at->graph, at->trace, name);
        else if (r == 0 && name)
            r = set_name(node->expr, name);
    }
    return r;
}

PyObject *tensor_items(pl_expr *const *items, int n, tensor *const *inputs, int n_inputs,
                       const char *label, PyObject *name)
{
    PyObject *list = PyList_New(n), *whole = NULL;
    for (int i = 0; i < n; i++) {
        tensor *node = list ? node_new(items[i]) : NULL;
        if (!list)
            pl_expr_unref(items[i]);
        else if (node)
            PyList_SET_ITEM(list, i, (PyObject *)node);
        else
            Py_CLEAR(list);
    }
    place at;
    int r = list ? place_of(inputs, n_inputs, &at) : -1;
    if (r == 0 && at.graph)
        r = (whole = unique_name(at.graph, name, label)) ? 0 : -1;
    else if (r == 0 && name)
        r = (whole = tensor_scoped_name(name)) ? 0 : -1;
    if (r == 0)
        r = place_items(list, &at, whole);
    Py_XDECREF(whole);
    if (r < 0)
        Py_CLEAR(list);
    return list;
}

/* ---- copies of exprs ---- */

/* The graph is that of the inputs' objects. Returns a new reference to it. */
static int place_of_expr(const pl_expr *expr, place *ret)
{
    *ret = (place){Py_XNewRef(tensor_in.graph), tensor_in.trace};
    tensor *first = NULL;
    int r = 0;
    for (int i = 0; r == 0 && !tensor_in.graph; i++) {
        pl_expr *input = pl_expr_input(expr, i);
        if (!input)
            break;
        tensor *node = pl_expr_trace(input) != 0 ? tensor_of_expr(input) : NULL;
        tensor *const pair[2] = {first, node};
        place at = {0};
        if (PyErr_Occurred())
            r = -1;
        else
            r = place_of(pair, 2, &at);
        if (at.graph) {
            Py_XSETREF(ret->graph, Py_NewRef(at.graph));
            ret->trace = at.trace;
        }
        if (node && node->graph && !first)
            first = (tensor *)Py_NewRef((PyObject *)node);
        Py_XDECREF((PyObject *)node);
        pl_expr_unref(input);
    }
    Py_XDECREF((PyObject *)first);
    return r;
}

static int inherit_site(pl_expr *copy, const pl_expr *of)
{
    int64_t instruction;
    PyObject *code = pl_expr_site(of, &instruction);
    if (code)
        pl_expr_set_site(copy, Py_NewRef(code), instruction, release_site);
    else
        capture_site(copy);
    return tensor_in.device && !pl_expr_device(copy) ? set_device(copy) : 0;
}

/* Makes an object only if the graph needs one. */
static int join_copy(tensor_copying *self, pl_expr *copy, const place *at)
{
    tensor *node = node_new(pl_expr_ref(copy));
    if (!node)
        return -1;
    if (pl_expr_item(copy) == 0)
        Py_XSETREF(self->name, unique_name(at->graph, NULL, pl_expr_op_name(copy)));
    int r = self->name ? join_graph(node, at->graph, at->trace, self->name) : -1;
    Py_DECREF(node);
    return r;
}

static int copied(void *context, pl_expr *copy, const pl_expr *of, pl_error *reterr)
{
    place at = {0};
    int r = inherit_site(copy, of);
    if (r == 0)
        r = place_of_expr(copy, &at);
    if (r == 0)
        r = at.graph ? join_copy(context, copy, &at) : shorten(copy);
    Py_XDECREF(at.graph);
    if (r < 0)
        pl_error_set(reterr, -ECANCELED, "an exception is set");
    return r;
}

void tensor_copying_init(tensor_copying *self)
{
    *self = (tensor_copying){.copied = {copied, self}};
}

void tensor_copying_done(tensor_copying *self)
{
    Py_XDECREF(self->name);
}

/* ---- values ---- */

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
    pl_tensor *value = tensor_has(node);
    if (value)
        return value;
    if (pl_expr_is_symbolic(node->expr) || node->graph)
        return refuse_value(node, what);
    if (evaluate(&node, 1) < 0)
        return NULL;
    value = tensor_has(node);
    if (!value)
        PyErr_Format(PyExc_SystemError, "%s of '%s': it was computed, and has no value", what,
                     tensor_label(node));
    return value;
}
