/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes from inside, for the layers that plan and run them.
 *   payload  an object that a later layer attaches to a node (a constant's tensor), freed with the
 *            graph
 *
 *   attrs[k] is the attribute of the op's spec k, its default filled in;
 *   inputs[i]->number < number;  shape has the rank that every run of it will have
 *
 * Constant once made, except for the payload; its setter must exclude other threads. */
#ifndef PL_GRAPH_NODE_H
#define PL_GRAPH_NODE_H

#include "graph/op.h"
#include "plimsoll/graph.h"
#include "util/links.h"

struct pl_node {
    const pl_op *op;
    pl_graph *graph;
    const char *name;
    const char *device; /* the device that it is placed on, "/GPU:0"; NULL: none */
    pl_node *const *inputs;
    const pl_attr *attrs;
    int32_t n_inputs;
    int32_t number;
    pl_dtype dtype;
    pl_shape shape;
    void *payload;
    void (*free_payload)(void *payload);
};

/* Replaces the payload, and frees the previous one. `free_payload` may be NULL: it is then
 * borrowed. */
void pl_node_set_payload(pl_node *node, void *payload, void (*free_payload)(void *payload));

/* The sessions of the graph, which end before it does: see exec/session/session.c. */
pl_links *pl_graph_sessions(const pl_graph *graph);

static inline void *pl_node_payload(const pl_node *node)
{
    return node->payload;
}

/* pl_graph_add() for an op whose type was inferred already, from inputs of exactly these types:
 * skips inference. `type` NULL: not inferred yet. */
PL_MUST_CHECK int pl_graph_add_known(pl_graph *graph, pl_op_id op, const char *name,
                                     pl_node *const *inputs, int n_inputs, const pl_attr *attrs,
                                     int n_attrs, const pl_type *type, pl_node **ret_node,
                                     pl_error *reterr);

/* Returns whether a device other than the CPU was ever pushed. If not, no node has one. */
bool pl_graph_places(const pl_graph *graph);

/* Returns the shape of input i, in shapes that pl_graph_infer() made. */
static inline const pl_shape *pl_node_input_shape(const pl_node *node, const pl_shape *shapes,
                                                  int i)
{
    return &shapes[node->inputs[i]->number];
}

/* ---- for graph.c ---- */

/* Puts attributes in the order of the op's specs, defaults filled in, into values[op->n_attrs].
 * Fails with -EINVAL for an attribute that is unknown, given twice, missing, or of another type. */
PL_MUST_CHECK int pl_attrs_resolve(const pl_op *op, const char *name, const pl_attr *given,
                                   int n_given, pl_attr *values, pl_error *reterr);

/* The bytes of the attributes' lists and texts, each rounded up to 8; and copying them there. */
size_t pl_attrs_extra_bytes(const pl_attr *values, int n);
void pl_attrs_copy(const pl_attr *values, int n, pl_attr *to, char *extra);

#endif
