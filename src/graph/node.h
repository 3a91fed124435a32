/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes from inside, for the layers that plan and run them.
 *   payload  what a later layer hangs on a node (a constant's tensor), freed with the graph
 *
 *   attrs[k] is the attribute of the op's spec k, its default filled in;
 *   inputs[i]->number < number;  shape has the rank that every run of it will have
 *
 * Constant once made, but for the payload, which whoever sets it keeps from other threads. */
#ifndef PL_GRAPH_NODE_H
#define PL_GRAPH_NODE_H

#include "graph/op.h"
#include "plimsoll/graph.h"
#include "util/links.h"

struct pl_node {
    const pl_op *op;
    pl_graph *graph;
    const char *name;
    const char *device; /* "/GPU:0", that it is placed on; NULL: none */
    pl_node *const *inputs;
    const pl_attr *attrs;
    int32_t n_inputs;
    int32_t number;
    pl_dtype dtype;
    pl_shape shape;
    void *payload;
    void (*free_payload)(void *payload);
};

/* Replaces the payload, and frees the one before. `free_payload` may be NULL: it is borrowed. */
void pl_node_set_payload(pl_node *node, void *payload, void (*free_payload)(void *payload));

/* Who uses the graph, and ends before it does: see exec/session/session.c. */
pl_links *pl_graph_sessions(const pl_graph *graph);

static inline void *pl_node_payload(const pl_node *node)
{
    return node->payload;
}

/* pl_graph_add() of an op whose type was inferred already, from inputs of the very types that these
 * have: nothing is inferred anew. `type` NULL: it was not. */
PL_MUST_CHECK int pl_graph_add_known(pl_graph *graph, pl_op_id op, const char *name,
                                     pl_node *const *inputs, int n_inputs, const pl_attr *attrs,
                                     int n_attrs, const pl_type *type, pl_node **ret_node,
                                     pl_error *reterr);

/* Was a device beside the CPU ever pushed? Else no node has one. */
bool pl_graph_places(const pl_graph *graph);

/* The shape of input i, in shapes that pl_graph_infer() made. */
static inline const pl_shape *pl_node_input_shape(const pl_node *node, const pl_shape *shapes,
                                                  int i)
{
    return &shapes[node->inputs[i]->number];
}

/* ---- for graph.c ---- */

/* Puts attributes in the order of the op's specs, defaults filled in, into values[op->n_attrs].
 * -EINVAL for one that there is not, that is given twice, missing, or of another type. */
PL_MUST_CHECK int pl_attrs_resolve(const pl_op *op, const char *name, const pl_attr *given,
                                   int n_given, pl_attr *values, pl_error *reterr);

/* Bytes of the lists and texts of attributes, each rounded up to 8, and a copy of them there. */
size_t pl_attrs_extra_bytes(const pl_attr *values, int n);
void pl_attrs_copy(const pl_attr *values, int n, pl_attr *to, char *extra);

#endif
