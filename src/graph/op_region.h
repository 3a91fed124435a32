/* SPDX-License-Identifier: Apache-2.0 */
/* Finds which part of an input an op needs for a part of its output; tiles are planned with it.
 *
 * The answer is a box, so it may contain more than is read (between the elements of a slice with a
 * step, or around those of a reshape), but never less. Pure; never allocates; safe from any
 * thread. */
#ifndef PL_GRAPH_OP_REGION_H
#define PL_GRAPH_OP_REGION_H

#include "graph/node.h"
#include "tensor/region.h"

/* `shapes` come from pl_graph_infer(); those of the node and its inputs are known. `out` lies
 * inside the node's shape. Returns false if nothing of input i is needed: *ret_in then has its
 * rank, and is empty unless the input is a scalar. */
bool pl_op_region(const pl_node *node, const pl_shape *shapes, const pl_region *out, int i,
                  pl_region *ret_in);

/* Columns of ops.def: `out` is never empty. */
#define PL_REGION_RULE(rule)                                                                       \
    bool pl_region_for_##rule(const pl_node *node, const pl_shape *shapes, const pl_region *out,   \
                              int i, pl_region *ret_in)

PL_REGION_RULE(nothing);
PL_REGION_RULE(all);
PL_REGION_RULE(same);
PL_REGION_RULE(broadcast);
PL_REGION_RULE(reshape);
PL_REGION_RULE(transpose);
PL_REGION_RULE(slice);
PL_REGION_RULE(crop);
PL_REGION_RULE(reverse);
PL_REGION_RULE(concat);
PL_REGION_RULE(pad);
PL_REGION_RULE(tile);
PL_REGION_RULE(gather);
PL_REGION_RULE(one_hot);
PL_REGION_RULE(reduce);
PL_REGION_RULE(arg);
PL_REGION_RULE(row);
PL_REGION_RULE(top_k);
PL_REGION_RULE(matmul);
PL_REGION_RULE(assign);
PL_REGION_RULE(resize);

#endif
