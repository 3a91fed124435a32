/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: what is to be computed, checked while it is described.
 *   op         a kind of operation; in the sources, docs/ops.md lists them all
 *   attribute  a constant that an op takes beside its inputs: an axis, a shape, a dtype
 *   node       one operation, its inputs and attributes; it has exactly one output, whose dtype and
 *              rank are known, and whose dimensions may be PL_UNKNOWN
 *   graph      nodes in the order they were made: inputs come before what uses them
 *   name       of a node, unique in its graph: "loss/add_1"
 *   scope      the beginning of a name, up to a '/'
 *
 * What does not fit is refused when the node is made; the graph is then as it was before. A node
 * belongs to its graph and lives as long. While nodes are added a graph belongs to one thread; a
 * graph that nobody adds to may be read by any number of them. */
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
    PL_ATTR_NUMBER, /* what an op may ask for: INT or FLOAT */
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

/* With all of its nodes and their constants; sessions of it are closed, see session.h. NULL is
 * allowed. */
PL_API void pl_graph_free(pl_graph *graph);

/* Nodes that are made from now on have "NAME/" before their names. The scope is a new one ("loss",
 * then "loss_1") unless the name ends with '/': "loss/" goes on with the scope of that whole name.
 * -EINVAL for a name that cannot be one; -ENOMEM. */
PL_API PL_MUST_CHECK int pl_graph_push_scope(pl_graph *graph, const char *name, pl_error *reterr);

/* Back to where the last push was made; without one, nothing happens. */
PL_API void pl_graph_pop_scope(pl_graph *graph);

/* Nodes that are made from now on are placed on this device (see device.h); NULL: on none, so that
 * they are computed wherever that is best. -EINVAL for a name that is none; -ENOMEM. */
PL_API PL_MUST_CHECK int pl_graph_push_device(pl_graph *graph, const char *device,
                                              pl_error *reterr);

/* Back to where the last push was made; without one, nothing happens. */
PL_API void pl_graph_pop_device(pl_graph *graph);

/* Adds a node. A name has letters, digits and any of "_.-/"; it begins with one of the first two or
 * '.', and does not end with '/', though there may be several within, as TensorFlow has it. NULL is
 * the op's own; a number is added to one that is taken. -EINVAL and a message that names op, node
 * and what does not fit: add 'loss/add': shapes [10,10] and [20,20] do not broadcast: axis 0 is 10
 * and 20 ('x' and 'y') also for an op or attribute that there is not, or one that is missing or of
 * another type. -ENOMEM. */
PL_API PL_MUST_CHECK int pl_graph_add(pl_graph *graph, const char *op, const char *name,
                                      pl_node *const *inputs, int n_inputs, const pl_attr *attrs,
                                      int n_attrs, pl_node **ret_node, pl_error *reterr);

/* ---- ops by themselves: for who describes computations before there is a graph ---- */

/* A value's dtype and shape, as far as they are known: the rank may be PL_RANK_UNKNOWN. */
typedef struct pl_type {
    pl_dtype dtype;
    pl_shape shape;
} pl_type;

/* Its number, in this version of the library; -1 if there is none of that name. */
PL_API int pl_op_find(const char *name);
PL_API const char *pl_op_name(int op); /* NULL if there is no such number */

/* Does an element of its output need one of each input, and nothing else? */
PL_API bool pl_op_is_elementwise(int op);

/* The attributes that it takes, by place; the place of one by its name, or -1. */
PL_API int pl_op_n_attrs(int op);
PL_API const char *pl_op_attr_name(int op, int place);
PL_API pl_attr_type pl_op_attr_type(int op, int place);
PL_API int pl_op_attr_find(int op, const char *name);

/* What a node of that op would be: fails as pl_graph_add() would. `name` is its own in messages and
 * `input_names` (may be NULL, or any of them) are its inputs'. Of an input of unknown rank only the
 * dtype is looked at, and the result's rank is unknown as well, unless the attributes tell it (of
 * reshape, ensure_shape and reductions to a scalar). Allocates for more than eight
 * inputs only. */
PL_API PL_MUST_CHECK int pl_op_infer(int op, const char *name, const pl_type *inputs,
                                     const char *const *input_names, int n_inputs,
                                     const pl_attr *attrs, int n_attrs, pl_type *ret_type,
                                     pl_error *reterr);

/* ---- what a graph has ---- */

PL_API int pl_graph_n_nodes(const pl_graph *graph);

/* By number, from 0 in the order they were made; NULL past the end. */
PL_API pl_node *pl_graph_node(const pl_graph *graph, int number);

/* By its whole name; NULL if there is none. */
PL_API pl_node *pl_graph_find(const pl_graph *graph, const char *name);

/* The first node in the scope ("loss", without the '/'; "": everywhere) that was made after
 * `after`, or of all if that is NULL. NULL when there are no more. */
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

/* Where it was placed, "/GPU:0"; NULL: nowhere. */
PL_API const char *pl_node_device(const pl_node *node);

/* The attribute as it was given, or its default; its type is PL_ATTR_NONE where there is neither.
 * NULL if the op has none of that name. Lives as long as the node. */
PL_API const pl_attr *pl_node_attr(const pl_node *node, const char *name);

/* ---- shapes, once placeholders are fed ---- */

typedef struct pl_feed_shape {
    const pl_node *placeholder;
    pl_shape shape;
} pl_feed_shape;

/* Sets needed[number] for the fetched nodes and all that they are made of, clears it for the rest;
 * `needed` has pl_graph_n_nodes() places. */
PL_API void pl_graph_mark_needed(const pl_graph *graph, pl_node *const *fetches, int n_fetches,
                                 bool *needed);

/* The shapes of all nodes, in shapes[number], when these are fed. A placeholder that is not fed
 * keeps its own. Of nodes that are not `needed` (NULL: all are) the shape is the one they were made
 * with, and nothing is checked. -EINVAL, with the message that making the node would have given, or
 * one on the feed; then `shapes` holds nothing of use. Allocates nothing. */
PL_API PL_MUST_CHECK int pl_graph_infer(const pl_graph *graph, const pl_feed_shape *feeds,
                                        int n_feeds, const bool *needed, pl_shape *shapes,
                                        pl_error *reterr);

/* ---- pl_graph_add() for what is written by hand; `name` may be NULL ---- */

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

/* A reduction ("sum", "mean", "max" ...) over some axes; axes NULL: over all. */
PL_API PL_MUST_CHECK int pl_graph_reduce(pl_graph *graph, const char *op, const char *name,
                                         pl_node *x, const int64_t *axes, int n_axes, bool keepdims,
                                         pl_node **ret_node, pl_error *reterr);

/* ---- made of several nodes: the last has the name, the others stand below it ("NAME/...") ----
 * What is wrong is found before anything is added; on -ENOMEM some of the others may remain. */

/* Inserts axes of 1: at these places of the result. */
PL_API PL_MUST_CHECK int pl_graph_expand_dims(pl_graph *graph, const char *name, pl_node *x,
                                              const int64_t *axes, int n_axes, pl_node **ret_node,
                                              pl_error *reterr);

/* Takes away axes of 1: these; with axes NULL, all that are known to be 1. */
PL_API PL_MUST_CHECK int pl_graph_squeeze(pl_graph *graph, const char *name, pl_node *x,
                                          const int64_t *axes, int n_axes, pl_node **ret_node,
                                          pl_error *reterr);

/* Puts nodes of one shape behind each other along a new axis. */
PL_API PL_MUST_CHECK int pl_graph_stack(pl_graph *graph, const char *name, pl_node *const *inputs,
                                        int n_inputs, int axis, pl_node **ret_node,
                                        pl_error *reterr);

/* Cuts an axis, whose dimension is known, into parts of these sizes; sizes NULL: into n_parts equal
 * ones. ret_nodes has n_parts places; the nodes are "NAME", "NAME_1" and so on. */
PL_API PL_MUST_CHECK int pl_graph_split(pl_graph *graph, const char *name, pl_node *x, int axis,
                                        const int64_t *sizes, int n_parts, pl_node **ret_nodes,
                                        pl_error *reterr);

/* (a - b) squared. */
PL_API PL_MUST_CHECK int pl_graph_squared_difference(pl_graph *graph, const char *name, pl_node *a,
                                                     pl_node *b, pl_node **ret_node,
                                                     pl_error *reterr);

/* Sums of products of one or two inputs by their labels, as NumPy writes them: "bij,bjk->bik", or
 * "ij,jk", or "...ij,jk" where "..." is any number of axes, of which none is repeated. What reduces
 * to a matmul: no label twice in one input, and labels that are merged have dimensions that are
 * known, but for one. */
PL_API PL_MUST_CHECK int pl_graph_einsum(pl_graph *graph, const char *name, const char *equation,
                                         pl_node *const *inputs, int n_inputs, pl_node **ret_node,
                                         pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
