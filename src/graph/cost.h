/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of computing an op: a column of ops.def. Pure; safe from any thread. */
#ifndef PL_GRAPH_COST_H
#define PL_GRAPH_COST_H

#include "graph/node.h"

/* Returns the floating-point operations for one element of the node's output, in shapes that
 * pl_graph_infer() made and where the inputs' shapes are known. */
double pl_node_flops_per_element(const pl_node *node, const pl_shape *shapes);

double pl_cost_none(const pl_node *node, const pl_shape *shapes, double weight);
double pl_cost_each(const pl_node *node, const pl_shape *shapes, double weight);
double pl_cost_folded(const pl_node *node, const pl_shape *shapes, double weight);
double pl_cost_sorted(const pl_node *node, const pl_shape *shapes, double weight);
double pl_cost_product(const pl_node *node, const pl_shape *shapes, double weight);

#endif
