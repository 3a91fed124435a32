/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Tensor: a value, or what will be one.
 *   node      a Tensor. Its dtype and shape are known when it is made, the shape as far as possible
 *   value     elements that are there: a pl_tensor
 *   given     a placeholder: fed when something is run
 *   op        one of the library's, over other nodes
 *   call      what graphs cannot say: a condition, a loop, a Python function, a parser. Several
 *             outputs, each of them an item node
 *   pending   an op or item that has no value yet. When it gets one it lets go of its inputs
 *   symbolic  hangs on a placeholder: it has a value only in a run that feeds it
 *   graph     the tf.Graph (or trace) that it was made in, or NULL: eager. Nodes of a graph keep
 *             their inputs, and get no value
 *   site      where the user's code made it: code object and instruction
 *
 *   kind VALUE: value != NULL, n_inputs == 0;  ITEM: inputs[0] is the CALL
 *   uses = in how many nodes it is an input: Py_REFCNT(node) > uses means that somebody has it
 *   depth = 1 + the largest of its pending inputs'; at TENSOR_DEPTH_MAX the inputs are computed
 *
 * A CALL node is never seen by users. Nodes are made, changed and freed with the GIL held. */
#ifndef PL_PYTHON_TENSOR_TENSOR_H
#define PL_PYTHON_TENSOR_TENSOR_H

#include "python/function/call.h"
#include "python/module/module.h"

#define TENSOR_DEPTH_MAX 2000

typedef enum tensor_kind {
    TENSOR_VALUE,
    TENSOR_GIVEN,
    TENSOR_OP,
    TENSOR_CALL,
    TENSOR_ITEM,
} tensor_kind;

/* An op's attributes as they were given, in one piece: compared and hashed as bytes. Counted by
 * nodes, with the GIL. */
typedef struct attributes {
    Py_ssize_t n_refs;
    int n_attrs;
    size_t n_bytes; /* what they say, in the order of the op's places; lists and texts lie in it */
    const char *bytes;
    pl_attr attrs[];
} attributes;

typedef struct tensor {
    PyObject ob_base;
    tensor_kind kind;
    bool symbolic;
    int op;   /* the library's number of it: see pl_op_find() */
    int item; /* of an ITEM: which output */
    uint32_t depth;
    Py_ssize_t uses;
    pl_type type; /* dtype and shape; the rank may be PL_RANK_UNKNOWN. Of a CALL: of no use */
    pl_tensor *value;
    attributes *attrs; /* of an OP; NULL: none */
    call *call;        /* of a CALL */
    PyObject *name;    /* str, with its scope; NULL: none was given */
    PyObject *graph;
    PyObject *device;   /* str; NULL: anywhere */
    PyCodeObject *code; /* of the site; NULL: not known */
    int instruction;    /* in it: PyCode_Addr2Line() */
    PyObject *weakrefs;
    PyObject *dict;              /* what Python code hung on it; NULL: nothing */
    struct tensor *next, **link; /* among nodes with values, for live(); or the freed ones */
    uint64_t walk; /* the last walk that came by, see walk.h, and the place that it gave it */
    int place;
    int n_inputs;
    struct tensor **inputs; /* new references */
    struct tensor *few[2];  /* where inputs points to, if they are so few */
} tensor;

extern PyTypeObject *tensor_type; /* no type is derived from it */

static inline bool tensor_check(PyObject *object)
{
    return Py_IS_TYPE(object, tensor_type);
}

static inline bool tensor_is_pending(const tensor *node)
{
    return node->kind == TENSOR_OP || node->kind == TENSOR_ITEM;
}

/* All return a new reference, or NULL with an exception. */

/* Results and elements: in no graph, whatever the context is. Takes over the reference to `value`,
 * also on failure. `name` may be NULL. */
tensor *tensor_of_value(pl_tensor *value, PyObject *name);

/* What the user says as a constant: a node of the graph that is being built, if one is. */
tensor *tensor_constant(pl_tensor *value, PyObject *name);
tensor *tensor_given(const pl_type *type, PyObject *name);

/* Shapes and dtypes are checked here: what the library says is raised. `attrs` (may be NULL) is
 * taken over, also on failure; `name` may be NULL. */
tensor *tensor_op(int op, tensor *const *inputs, int n_inputs, attributes *attrs, PyObject *name);

/* The outputs of a call: a list of ITEM nodes. Takes over `what`, also on failure. */
PyObject *tensor_call(call *what, tensor *const *inputs, int n_inputs, PyObject *name);

/* The value that it now has, and needs its inputs no more. Takes over the reference. */
void tensor_settle(tensor *node, pl_tensor *value);

/* The value, computed if it is pending; borrowed from the node. NULL with an exception:
 * OperatorNotAllowedInGraphError for a symbolic one or one of a graph; `what` needs it: "bool". */
pl_tensor *tensor_value(tensor *node, const char *what);

/* What messages call it: its name, else its op's. Borrowed from the node, or static. */
const char *tensor_label(const tensor *node);

/* A name in the scope of the context. A new reference. */
PyObject *tensor_scoped_name(PyObject *name);

/* Where the user's code made it; false: not known. `*ret_file` is borrowed from the node. */
bool tensor_site(const tensor *node, PyObject **ret_file, int *ret_line);

/* Of all nodes that have values, the first; they are linked by `next`. */
tensor *tensor_first_value(void);

/* Attributes from a dict as docs/ops.md types them (bool, int, float, str, sequences, DType, None:
 * not given); 1, 0 for none (*ret NULL), -1 with an exception. */
int attributes_of_dict(int op, PyObject *dict, attributes **ret);
attributes *attributes_of(int op, const pl_attr *attrs, int n_attrs); /* NULL with MemoryError */
attributes *attributes_ref(attributes *attrs);                        /* NULL is allowed */
void attributes_unref(attributes *attrs);                             /* NULL is allowed */

/* For the type alone. */
void tensor_dealloc(PyObject *self);
int tensor_traverse(PyObject *self, visitproc visit, void *arg);
int tensor_clear(PyObject *self);

/* ---- this thread's context: what nodes are made in ---- */

typedef struct tensor_context {
    PyObject *graph;  /* NULL: eager */
    PyObject *scope;  /* str, "a/b/"; NULL: none */
    PyObject *device; /* str; NULL: anywhere */
} tensor_context;

extern _Thread_local tensor_context tensor_in;

#endif
