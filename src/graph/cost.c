/* SPDX-License-Identifier: Apache-2.0 */
/* See cost.h. */
#include "graph/cost.h"

#include <math.h>

#include "graph/geometry.h"

double pl_node_flops_per_element(const pl_node *node, const pl_shape *shapes)
{
    return node->op->cost(node, shapes, node->op->weight);
}

double pl_cost_none(const pl_node *node, const pl_shape *shapes, double weight)
{
    (void)node, (void)shapes, (void)weight;
    return 0;
}

double pl_cost_each(const pl_node *node, const pl_shape *shapes, double weight)
{
    (void)node, (void)shapes;
    return weight;
}

/* The cost for each element that is folded into one. */
double pl_cost_folded(const pl_node *node, const pl_shape *shapes, double weight)
{
    const pl_shape *from = pl_node_input_shape(node, shapes, 0);
    uint32_t folded = pl_reduced_axes(node);
    for (int i = 0; i < from->rank; i++)
        if (folded & 1u << i)
            weight *= (double)from->dims[i];
    return weight;
}

/* Comparisons per element: the logarithm of their number. A short top_k makes few elements from a
 * whole row's work. */
double pl_cost_sorted(const pl_node *node, const pl_shape *shapes, double weight)
{
    int axis = pl_row_axis(node);
    double n_in = (double)pl_node_input_shape(node, shapes, 0)->dims[axis];
    double n_out = (double)shapes[node->number].dims[axis];
    return n_in < 2 || n_out == 0 ? weight : weight * log2(n_in) * n_in / n_out;
}

double pl_cost_product(const pl_node *node, const pl_shape *shapes, double weight)
{
    pl_matmul_dims dims = pl_matmul_dims_of(node, pl_node_input_shape(node, shapes, 0),
                                            pl_node_input_shape(node, shapes, 1));
    return weight * (double)dims.inner;
}
