/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: computations, checked while they are described.
 *   op         a kind of operation; in the sources, docs/ops.md lists them all
 *   attribute  a constant that an op takes besides its inputs: an axis, a shape, a dtype
 *   node       one operation, its inputs and attributes; it has exactly one output, whose dtype and
 *              rank are known, and whose dimensions may be PL_UNKNOWN
 *   graph      nodes in the order they were made: inputs come before their users
 *   name       of a node, unique in its graph: "loss/add_1"
 *   scope      the beginning of a name, up to a '/'
 *
 * A node that would be invalid is refused when it is made, and the graph is unchanged. A node
 * belongs to its graph and lives as long. Only one thread may add nodes to a graph; any number may
 * read a graph that nothing is added to. */
#ifndef PLIMSOLL_GRAPH_H
#define PLIMSOLL_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "plimsoll/error.h"
#include "plimsoll/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_graph pl_graph;
typedef struct pl_node pl_node;

typedef enum pl_attr_type {
    PL_ATTR_NONE, /* not given */
    PL_ATTR_INT,
    PL_ATTR_FLOAT,
    PL_ATTR_BOOL,
    PL_ATTR_DTYPE,
    PL_ATTR_SHAPE, /* at most PL_RANK_MAX dimensions, each PL_UNKNOWN or >= 0 */
    PL_ATTR_INTS,
    PL_ATTR_STRING,
    PL_ATTR_NUMBER, /* what an op may accept: INT or FLOAT */
} pl_attr_type;

/* Made by the functions below. Lists and texts are borrowed until the node is made, which copies
 * them. */
typedef struct pl_attr {
    const char *name;
    pl_attr_type type;
    int32_t n; /* of values */
    union {
        int64_t i; /* INT, and BOOL: 0 or 1 */
        double f;
        pl_dtype dtype;
        const int64_t *values; /* SHAPE, INTS */
        const char *text;      /* STRING; ends with a 0 */
    } value;
} pl_attr;

PL_API pl_attr pl_attr_int(const char *name, int64_t value);
PL_API pl_attr pl_attr_float(const char *name, double value);
PL_API pl_attr pl_attr_bool(const char *name, bool value);
PL_API pl_attr pl_attr_dtype(const char *name, pl_dtype value);
PL_API pl_attr pl_attr_shape(const char *name, const pl_shape *shape);
PL_API pl_attr pl_attr_ints(const char *name, const int64_t *values, int n);
PL_API pl_attr pl_attr_string(const char *name, const char *text);

/* -ENOMEM. */
PL_API PL_MUST_CHECK int pl_graph_new(pl_graph **ret_graph, pl_error *reterr);

/* Frees the graph, its nodes and their constants, and closes its sessions (see session.h). NULL is
 * allowed. */
PL_API void pl_graph_free(pl_graph *graph);

/* Puts "NAME/" before the names of nodes made from now on. The scope is new ("loss", then "loss_1")
 * unless the name ends with '/': "loss/" continues the scope of that full name. -EINVAL for an
 * invalid name; -ENOMEM. */
PL_API PL_MUST_CHECK int pl_graph_push_scope(pl_graph *graph, const char *name, pl_error *reterr);

/* Ends the scope of the last push; does nothing without one. */
PL_API void pl_graph_pop_scope(pl_graph *graph);

/* Places nodes made from now on on this device (see device.h); NULL: on none, so that they are
 * computed wherever is best. -EINVAL for an invalid name; -ENOMEM. */
PL_API PL_MUST_CHECK int pl_graph_push_device(pl_graph *graph, const char *device,
                                              pl_error *reterr);

/* Ends the placement of the last push; does nothing without one. */
PL_API void pl_graph_pop_device(pl_graph *graph);

/* Adds a node. A name has letters, digits and any of "_.-/"; it begins with a letter, a digit or
 * '.', and does not end with '/', though it can contain several in a row, as in TensorFlow. NULL
 * takes the op's name; a name that is taken gets a number. -EINVAL with a message that names op,
 * node and problem: add 'loss/add': shapes [10,10] and [20,20] do not broadcast: axis 0 is 10 and
 * 20 ('x' and 'y') also for an unknown op or attribute, and for an attribute that is missing or has
 * the wrong type. -ENOMEM. */
PL_API PL_MUST_CHECK int pl_graph_add(pl_graph *graph, const char *op, const char *name,
                                      pl_node *const *inputs, int n_inputs, const pl_attr *attrs,
                                      int n_attrs, pl_node **ret_node, pl_error *reterr);

/* ---- querying ops without a graph ---- */

/* A value's dtype and shape, as far as known: the rank may be PL_RANK_UNKNOWN. */
typedef struct pl_type {
    pl_dtype dtype;
    pl_shape shape;
} pl_type;

/* Returns the op's number in this version of the library, or -1 if there is no such op. */
PL_API int pl_op_find(const char *name);
PL_API const char *pl_op_name(int op); /* NULL for an unknown number */

/* Returns whether each output element depends only on the input elements at its place. */
PL_API bool pl_op_is_elementwise(int op);

/* The attributes of an op, by place; pl_op_attr_find() returns the place of a name, or -1. */
PL_API int pl_op_n_attrs(int op);
PL_API const char *pl_op_attr_name(int op, int place);
PL_API pl_attr_type pl_op_attr_type(int op, int place);
PL_API int pl_op_attr_find(int op, const char *name);

/* Infers the type that a node of that op would have, and fails as pl_graph_add() would. `name` and
 * `input_names` (may be NULL, or any of them) are used in messages. For an input of unknown rank
 * only the dtype is checked, and the result's rank is unknown too, unless the attributes determine
 * it (reshape, ensure_shape, reductions to a scalar). Allocates only for more than eight inputs. */
PL_API PL_MUST_CHECK int pl_op_infer(int op, const char *name, const pl_type *inputs,
                                     const char *const *input_names, int n_inputs,
                                     const pl_attr *attrs, int n_attrs, pl_type *ret_type,
                                     pl_error *reterr);

/* ---- reading a graph ---- */

PL_API int pl_graph_n_nodes(const pl_graph *graph);

/* Returns a node by number, from 0 in the order they were made; NULL past the end. */
PL_API pl_node *pl_graph_node(const pl_graph *graph, int number);

/* Returns a node by its full name, or NULL. */
PL_API pl_node *pl_graph_find(const pl_graph *graph, const char *name);

/* Returns the first node in the scope ("loss", without the '/'; "": everywhere) made after `after`,
 * or of all if that is NULL. NULL at the end. */
PL_API pl_node *pl_graph_next_in_scope(const pl_graph *graph, const char *scope,
                                       const pl_node *after);

PL_API const char *pl_node_name(const pl_node *node);
PL_API const char *pl_node_op(const pl_node *node);
PL_API pl_dtype pl_node_dtype(const pl_node *node);
PL_API const pl_shape *pl_node_shape(const pl_node *node);
PL_API int pl_node_number(const pl_node *node);
PL_API int pl_node_n_inputs(const pl_node *node);
PL_API pl_node *pl_node_input(const pl_node *node, int i);
PL_API pl_graph *pl_node_graph(const pl_node *node);

/* Returns where it was placed, "/GPU:0", or NULL. */
PL_API const char *pl_node_device(const pl_node *node);

/* Returns the attribute as given, or its default; the type is PL_ATTR_NONE if it has neither. NULL
 * if the op has no such attribute. Lives as long as the node. */
PL_API const pl_attr *pl_node_attr(const pl_node *node, const char *name);

/* ---- shapes, once placeholders are fed ---- */

typedef struct pl_feed_shape {
    const pl_node *placeholder;
    pl_shape shape;
} pl_feed_shape;

/* Sets needed[number] for the fetched nodes and all nodes they depend on, and clears the rest;
 * `needed` has pl_graph_n_nodes() entries. */
PL_API void pl_graph_mark_needed(const pl_graph *graph, pl_node *const *fetches, int n_fetches,
                                 bool *needed);

/* Infers the shapes of all nodes, in shapes[number], with these feeds. A placeholder that is not
 * fed keeps its own shape. Nodes that are not `needed` (NULL: all are) keep the shape they were
 * made with, unchecked. -EINVAL with the message that making the node would have given, or one
 * about the feed; `shapes` is then undefined. Does not allocate. */
PL_API PL_MUST_CHECK int pl_graph_infer(const pl_graph *graph, const pl_feed_shape *feeds,
                                        int n_feeds, const bool *needed, pl_shape *shapes,
                                        pl_error *reterr);

/* ---- shorthands for pl_graph_add(); `name` may be NULL ---- */

PL_API PL_MUST_CHECK int pl_graph_placeholder(pl_graph *graph, const char *name, pl_dtype dtype,
                                              const pl_shape *shape, pl_node **ret_node,
                                              pl_error *reterr);
PL_API PL_MUST_CHECK int pl_graph_variable(pl_graph *graph, const char *name, pl_dtype dtype,
                                           const pl_shape *shape, pl_node **ret_node,
                                           pl_error *reterr);
PL_API PL_MUST_CHECK int pl_graph_constant(pl_graph *graph, const char *name, pl_dtype dtype,
                                           const pl_shape *shape, pl_node **ret_node,
                                           pl_error *reterr);
PL_API PL_MUST_CHECK int pl_graph_fill(pl_graph *graph, const char *name, pl_dtype dtype,
                                       const pl_shape *shape, double value, pl_node **ret_node,
                                       pl_error *reterr);
PL_API PL_MUST_CHECK int pl_graph_unary(pl_graph *graph, const char *op, const char *name,
                                        pl_node *x, pl_node **ret_node, pl_error *reterr);
PL_API PL_MUST_CHECK int pl_graph_binary(pl_graph *graph, const char *op, const char *name,
                                         pl_node *a, pl_node *b, pl_node **ret_node,
                                         pl_error *reterr);
PL_API PL_MUST_CHECK int pl_graph_matmul(pl_graph *graph, const char *name, pl_node *a, pl_node *b,
                                         bool transpose_a, bool transpose_b, pl_node **ret_node,
                                         pl_error *reterr);
PL_API PL_MUST_CHECK int pl_graph_cast(pl_graph *graph, const char *name, pl_node *x,
                                       pl_dtype dtype, pl_node **ret_node, pl_error *reterr);
PL_API PL_MUST_CHECK int pl_graph_reshape(pl_graph *graph, const char *name, pl_node *x,
                                          const pl_shape *shape, pl_node **ret_node,
                                          pl_error *reterr);

/* Adds a reduction ("sum", "mean", "max" ...) over some axes; axes NULL: all. */
PL_API PL_MUST_CHECK int pl_graph_reduce(pl_graph *graph, const char *op, const char *name,
                                         pl_node *x, const int64_t *axes, int n_axes, bool keepdims,
                                         pl_node **ret_node, pl_error *reterr);

/* ---- made of several nodes: the last has the name, the others are named "NAME/..." ---- Errors
 * are found before anything is added; after -ENOMEM some of the others may remain. */

/* Inserts axes of length 1 at these places of the result. */
PL_API PL_MUST_CHECK int pl_graph_expand_dims(pl_graph *graph, const char *name, pl_node *x,
                                              const int64_t *axes, int n_axes, pl_node **ret_node,
                                              pl_error *reterr);

/* Removes these axes of length 1; axes NULL: all that are known to be 1. */
PL_API PL_MUST_CHECK int pl_graph_squeeze(pl_graph *graph, const char *name, pl_node *x,
                                          const int64_t *axes, int n_axes, pl_node **ret_node,
                                          pl_error *reterr);

/* Joins nodes of one shape along a new axis. */
PL_API PL_MUST_CHECK int pl_graph_stack(pl_graph *graph, const char *name, pl_node *const *inputs,
                                        int n_inputs, int axis, pl_node **ret_node,
                                        pl_error *reterr);

/* Cuts an axis of known length into parts of these sizes; sizes NULL: into n_parts equal ones.
 * ret_nodes has n_parts entries; the nodes are "NAME", "NAME_1" and so on. */
PL_API PL_MUST_CHECK int pl_graph_split(pl_graph *graph, const char *name, pl_node *x, int axis,
                                        const int64_t *sizes, int n_parts, pl_node **ret_nodes,
                                        pl_error *reterr);

/* Adds (a - b) squared. */
PL_API PL_MUST_CHECK int pl_graph_squared_difference(pl_graph *graph, const char *name, pl_node *a,
                                                     pl_node *b, pl_node **ret_node,
                                                     pl_error *reterr);

/* Adds sums of products of one or two inputs by labels, in NumPy's notation: "bij,bjk->bik", or
 * "ij,jk", or "...ij,jk" where "..." is any number of axes, none of them repeated. Supports what
 * reduces to a matmul: no label twice in one input, and at most one of the labels that are merged
 * has an unknown dimension. */
PL_API PL_MUST_CHECK int pl_graph_einsum(pl_graph *graph, const char *name, const char *equation,
                                         pl_node *const *inputs, int n_inputs, pl_node **ret_node,
                                         pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
