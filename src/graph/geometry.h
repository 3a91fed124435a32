/* SPDX-License-Identifier: Apache-2.0 */
/* What attributes mean for a given shape: axes, slices, the order of a transpose. Inference has
 * checked them; regions, kernels and the executor read them here, so that all understand the same.
 * Pure; never allocates; safe from any thread. */
#ifndef PL_GRAPH_GEOMETRY_H
#define PL_GRAPH_GEOMETRY_H

#include "base/base.h"
#include "graph/node.h"
#include "plimsoll/graph.h"

/* From 0; negative ones count from the end. -1 if there is no such axis. */
int pl_axis_of(int64_t axis, int rank);

/* Bit i: axis i is in the list. All of them if the list was not given. */
uint32_t pl_axes_mask(const pl_attr *axes, int rank);

/* The input's axis for each axis of the result. */
void pl_transpose_axes(const pl_node *transpose, int axes[PL_RANK_MAX]);

/* Element i of the result's axis is element start + i * step of the input's. */
typedef struct pl_slice {
    int64_t start[PL_RANK_MAX];
    int64_t step[PL_RANK_MAX];
    int64_t count[PL_RANK_MAX]; /* PL_UNKNOWN where the input's dimension is, and decides */
} pl_slice;

/* Of slice, crop, reverse and identity, whose attributes are `attrs`. */
pl_slice pl_slice_of(pl_op_id op, const pl_attr *attrs, const pl_shape *in);

/* The axes that a reduction (also argmax) folds, as a mask. */
uint32_t pl_reduced_axes(const pl_node *reduction);

/* The one axis that an op of class row needs whole. */
int pl_row_axis(const pl_node *row);

/* a[m,k] x b[k,n]: -> rows, inner, columns of the last two axes. */
typedef struct pl_matmul_dims {
    int64_t rows, inner, columns;
} pl_matmul_dims;

pl_matmul_dims pl_matmul_dims_of(const pl_node *matmul, const pl_shape *a, const pl_shape *b);

#endif
