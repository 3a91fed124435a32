/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Tensor: an expr of the library (plimsoll/program.h) as a Python object.
 *   expr      what it is: a value, or what will be one. Held for as long as the object lives
 *   owner     the object that an expr has, if it has one: there is never a second. Where the object
 *             is gone, because only other exprs use the expr, a new one is made when it is asked for
 *   graph     the tf.Graph (or trace) that it was made in, or NULL: eager. The graph holds its nodes.
 *             In the library it is a number, the expr's trace
 *   site      where the user's code made it: code object and instruction; the expr keeps them
 *   call      seen by users only as its items: see pl_expr_op_name()
 *
 * At TENSOR_DEPTH_MAX the inputs of a new node are computed. Made, changed and freed with the GIL
 * held. */
#ifndef PL_PYTHON_TENSOR_TENSOR_H
#define PL_PYTHON_TENSOR_TENSOR_H

#include "python/module/module.h"

#define TENSOR_DEPTH_MAX 2000

typedef struct tensor {
    PyObject ob_base;
    pl_expr *expr;
    pl_dtype dtype; /* the expr's: asked for at every operator */
    PyObject *graph;
    PyObject *weakrefs;
    PyObject *dict;              /* what Python code hung on it; NULL: nothing */
    struct tensor *next, **link; /* among all, for live(); or the freed ones */
} tensor;

extern PyTypeObject *tensor_type; /* no type is derived from it */

static inline bool tensor_check(PyObject *object)
{
    return Py_IS_TYPE(object, tensor_type);
}

static inline pl_shape tensor_shape(const tensor *node)
{
    return pl_expr_type(node->expr).shape;
}

/* Borrowed from the node; NULL: it has none yet. */
static inline pl_tensor *tensor_has(const tensor *node)
{
    return pl_expr_value(node->expr);
}

/* All return a new reference, or NULL with an exception. */

/* Results and elements: in no graph, whatever the context is. Takes over the reference to `value`,
 * also on failure. `name` may be NULL. */
tensor *tensor_of_value(pl_tensor *value, PyObject *name);

/* What the user says as a constant: a node of the graph that is being built, if one is. */
tensor *tensor_constant(pl_tensor *value, PyObject *name);
tensor *tensor_given(const pl_type *type, PyObject *name);

/* Shapes and dtypes are checked here: what the library says is raised. `name` may be NULL. */
tensor *tensor_op(int op, tensor *const *inputs, int n_inputs, const pl_attr *attrs, int n_attrs,
                  PyObject *name);

/* The items of a call that was made of these inputs, named and placed: a list. Takes over the
 * references in `items`, also on failure. */
PyObject *tensor_items(pl_expr *const *items, int n, tensor *const *inputs, int n_inputs,
                       const char *label, PyObject *name);

/* The object of an expr: its owner, or a new one. */
tensor *tensor_of_expr(pl_expr *expr);

/* The graph of a trace, a new reference; NULL if it is gone, or there is none. -1 with an exception. */
int tensor_find_graph(uint64_t trace, PyObject **ret_graph);

/* Copies of a function's exprs, made in the context and placed as the originals. */
typedef struct tensor_copying {
    pl_traced_copied copied;
    PyObject *name; /* of the call whose items are being met */
} tensor_copying;
void tensor_copying_init(tensor_copying *self);
void tensor_copying_done(tensor_copying *self);

/* The value, computed if it is pending; borrowed from the node. NULL with an exception:
 * OperatorNotAllowedInGraphError for a symbolic one or one of a graph; `what` needs it: "bool". */
pl_tensor *tensor_value(tensor *node, const char *what);

/* What messages call it: its name, else its op's. Borrowed from the node. */
const char *tensor_label(const tensor *node);

/* A name in the scope of the context. A new reference. */
PyObject *tensor_scoped_name(PyObject *name);

/* Where the user's code made it; false: not known. `*ret_file` is borrowed from the expr. */
bool tensor_site(const pl_expr *expr, PyObject **ret_file, int *ret_line);

/* Of all nodes, the first; they are linked by `next`. */
tensor *tensor_first(void);

/* Attributes from a dict as docs/ops.md types them (bool, int, float, str, sequences, DType, None:
 * not given), at most ATTRIBUTES_MAX; to be dropped. -1 with an exception. */
enum { ATTRIBUTES_MAX = 32 };
typedef struct attributes {
    pl_attr attrs[ATTRIBUTES_MAX];
    int n;
} attributes;
int attributes_of_dict(int op, PyObject *dict, attributes *ret);
void attributes_drop(attributes *attrs);

/* pl_expr_unref() and pl_evaluation_free(); NULL is allowed. */
void tensor_let_go(pl_expr *expr, pl_evaluation *evaluation);

/* For the type alone. */
void tensor_dealloc(PyObject *self);
int tensor_traverse(PyObject *self, visitproc visit, void *arg);
int tensor_clear(PyObject *self);

/* ---- this thread's context: what nodes are made in ---- */

typedef struct tensor_context {
    PyObject *graph;  /* NULL: eager */
    PyObject *scope;  /* str, "a/b/"; NULL: none */
    PyObject *device; /* str; NULL: anywhere */
    uint64_t trace;   /* the graph's */
} tensor_context;

extern _Thread_local tensor_context tensor_in;

/* Exprs of nodes, borrowed, in a PyMem array. NULL with MemoryError. */
pl_expr **tensor_exprs(tensor *const *nodes, int n);

#endif
