/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of an input an op needs for a part of its output: what tiles are planned by.
 *
 * The answer is a box, so it may have more than is read (between the elements of a slice with a
 * step, or around a reshape's), but never less. Pure; never allocates; safe from any thread. */
#ifndef PL_GRAPH_OP_REGION_H
#define PL_GRAPH_OP_REGION_H

#include "graph/node.h"
#include "tensor/region.h"

/* `shapes` are what pl_graph_infer() made; those of the node and its inputs are known. `out` lies
 * inside of the node's. False if nothing of input i is needed: *ret_in has its rank then, and is
 * empty but for a scalar's. */
bool pl_op_region(const pl_node *node, const pl_shape *shapes, const pl_region *out, int i,
                  pl_region *ret_in);

/* Columns of ops.def: `out` is not empty. */
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
