/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of attributes for a given shape: axes, slices, the order of a transpose. Inference
 * has checked them; regions, kernels and the executor read them here, so that all interpret them
 * alike. Pure; never allocates; safe from any thread. */
#ifndef PL_GRAPH_GEOMETRY_H
#define PL_GRAPH_GEOMETRY_H

#include "base/base.h"
#include "graph/node.h"
#include "plimsoll/graph.h"

/* Returns the axis from 0; negative ones count from the end. -1 if it does not exist. */
int pl_axis_of(int64_t axis, int rank);

/* Returns a mask: bit i is set if axis i is in the list. All bits are set if no list was given. */
uint32_t pl_axes_mask(const pl_attr *axes, int rank);

/* Sets the input's axis for each axis of the result. */
void pl_transpose_axes(const pl_node *transpose, int axes[PL_RANK_MAX]);

/* Element i of the result's axis is element start + i * step of the input's. */
typedef struct pl_slice {
    int64_t start[PL_RANK_MAX];
    int64_t step[PL_RANK_MAX];
    int64_t count[PL_RANK_MAX]; /* PL_UNKNOWN where the input's dimension is unknown and matters */
} pl_slice;

/* For slice, crop, reverse and identity, whose attributes are `attrs`. */
pl_slice pl_slice_of(pl_op_id op, const pl_attr *attrs, const pl_shape *in);

/* Returns the axes that a reduction (or argmax) folds, as a mask. */
uint32_t pl_reduced_axes(const pl_node *reduction);

/* Returns the axis that an op of class "row" needs whole. */
int pl_row_axis(const pl_node *row);

/* a[m,k] x b[k,n]: sizes of the last two axes -> rows, inner, columns. */
typedef struct pl_matmul_dims {
    int64_t rows, inner, columns;
} pl_matmul_dims;

pl_matmul_dims pl_matmul_dims_of(const pl_node *matmul, const pl_shape *a, const pl_shape *b);

#endif
