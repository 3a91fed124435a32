/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Tensor: an expr of the library (plimsoll/program.h) as a Python object.
 *   expr      the value, or the expression that will give it. The object holds a reference
 *   owner     the expr's object: at most one. If it was freed because only other exprs use the expr, a
 *             new one is made on request
 *   graph     the tf.Graph (or trace) that it was made in, or NULL: eager. The graph holds its nodes.
 *             In the library it is a number, the expr's trace
 *   site      where the user's code made it: code object and instruction; the expr keeps them
 *   call      users see only its items: see pl_expr_op_name()
 *
 * At TENSOR_DEPTH_MAX the inputs of a new node are computed. Nodes are made, changed and freed with
 * the GIL held. */
#ifndef PL_PYTHON_TENSOR_TENSOR_H
#define PL_PYTHON_TENSOR_TENSOR_H

#include "python/module/module.h"

#define TENSOR_DEPTH_MAX 2000

typedef struct tensor {
    PyObject ob_base;
    pl_expr *expr;
    pl_dtype dtype; /* the expr's; read at every operator */
    PyObject *graph;
    PyObject *weakrefs;
    PyObject *dict;              /* attributes that Python code has set; NULL: none */
    struct tensor *next, **link; /* in the list of all, for live(); or of the freed ones */
} tensor;

extern PyTypeObject *tensor_type; /* the type cannot be subclassed */

static inline bool tensor_check(PyObject *object)
{
    return Py_IS_TYPE(object, tensor_type);
}

static inline pl_shape tensor_shape(const tensor *node)
{
    return pl_expr_type(node->expr).shape;
}

/* Borrowed from the node; NULL: not computed yet. */
static inline pl_tensor *tensor_has(const tensor *node)
{
    return pl_expr_value(node->expr);
}

/* These return a new reference, or NULL with an exception. */

/* For results and elements: in no graph, in every context. Takes over the reference to `value`,
 * also on failure. `name` may be NULL. */
tensor *tensor_of_value(pl_tensor *value, PyObject *name);

/* For a constant of the user: a node of the current graph, if there is one. */
tensor *tensor_constant(pl_tensor *value, PyObject *name);
tensor *tensor_given(const pl_type *type, PyObject *name);

/* The library checks shapes and dtypes; we raise its errors. `name` may be NULL. */
tensor *tensor_op(int op, tensor *const *inputs, int n_inputs, const pl_attr *attrs, int n_attrs,
                  PyObject *name);

/* Names and places the items of a call with these inputs: returns a list. Takes over the references
 * in `items`, also on failure. */
PyObject *tensor_items(pl_expr *const *items, int n, tensor *const *inputs, int n_inputs,
                       const char *label, PyObject *name);

/* The expr's object: its owner, or a new one. */
tensor *tensor_of_expr(pl_expr *expr);

/* The graph with this trace, a new reference; NULL if it was freed, or there is none. -1 with an
 * exception. */
int tensor_find_graph(uint64_t trace, PyObject **ret_graph);

/* Makes objects for copies of a function's exprs: in the current context, with the originals'
 * devices. */
typedef struct tensor_copying {
    pl_traced_copied copied;
    PyObject *name; /* of the call whose items are being copied */
} tensor_copying;
void tensor_copying_init(tensor_copying *self);
void tensor_copying_done(tensor_copying *self);

/* The value, computed if it is pending; borrowed from the node. NULL with an exception:
 * OperatorNotAllowedInGraphError for a node that is symbolic or in a graph; `what` names the user:
 * "bool". */
pl_tensor *tensor_value(tensor *node, const char *what);

/* The name in messages: its own, else its op's. Borrowed from the node. */
const char *tensor_label(const tensor *node);

/* Puts a name into the context's scope. A new reference. */
PyObject *tensor_scoped_name(PyObject *name);

/* Where the user's code made it; false: unknown. `*ret_file` is borrowed from the expr. */
bool tensor_site(const pl_expr *expr, PyObject **ret_file, int *ret_line);

/* The first of all nodes; `next` links them. */
tensor *tensor_first(void);

/* Reads attributes from a dict, typed as in docs/ops.md (bool, int, float, str, sequences, DType,
 * None: left out), at most ATTRIBUTES_MAX; the caller drops them. -1 with an exception. */
enum { ATTRIBUTES_MAX = 32 };
typedef struct attributes {
    pl_attr attrs[ATTRIBUTES_MAX];
    int n;
} attributes;
int attributes_of_dict(int op, PyObject *dict, attributes *ret);
void attributes_drop(attributes *attrs);

/* pl_expr_unref() and pl_evaluation_free(); NULL is allowed. */
void tensor_let_go(pl_expr *expr, pl_evaluation *evaluation);

/* Used by the type only. */
void tensor_dealloc(PyObject *self);
int tensor_traverse(PyObject *self, visitproc visit, void *arg);
int tensor_clear(PyObject *self);

/* ---- this thread's context, in which nodes are made ---- */

typedef struct tensor_context {
    PyObject *graph;  /* NULL: eager */
    PyObject *scope;  /* str, "a/b/"; NULL: none */
    PyObject *device; /* str; NULL: anywhere */
    uint64_t trace;   /* of the graph */
} tensor_context;

extern _Thread_local tensor_context tensor_in;

/* Exprs of nodes, borrowed, in a PyMem array. NULL with MemoryError. */
pl_expr **tensor_exprs(tensor *const *nodes, int n);

#endif
