/* SPDX-License-Identifier: Apache-2.0 */
/* See geometry.h. */
#include "graph/geometry.h"

#include <assert.h>

int pl_axis_of(int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank)
        return -1;
    return (int)(axis < 0 ? axis + rank : axis);
}

uint32_t pl_axes_mask(const pl_attr *axes, int rank)
{
    if (axes->type == PL_ATTR_NONE)
        return (1u << rank) - 1;
    uint32_t mask = 0;
    for (int i = 0; i < axes->n; i++)
        mask |= 1u << pl_axis_of(axes->value.values[i], rank);
    return mask;
}

void pl_transpose_axes(const pl_node *transpose, int axes[PL_RANK_MAX])
{
    const pl_attr *given = &transpose->attrs[PL_ATTR_transpose_axes];
    int rank = transpose->shape.rank;
    for (int i = 0; i < rank; i++)
        axes[i] =
            given->type == PL_ATTR_NONE ? rank - 1 - i : pl_axis_of(given->value.values[i], rank);
}

/* As in Python, a negative end counts from the dimension's end, and positions outside are
 * clipped. */
static int64_t clip_end(int64_t end, int64_t dim, int64_t lowest, int64_t highest)
{
    if (end < 0)
        end += dim;
    return end < lowest ? lowest : end > highest ? highest : end;
}

static void slice_axis(pl_slice *slice, int axis, int64_t dim, int64_t start, int64_t stop,
                       int64_t step)
{
    slice->step[axis] = step;
    slice->count[axis] = PL_UNKNOWN;
    if (dim == PL_UNKNOWN)
        return;
    int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? dim : dim - 1;
    start = clip_end(start, dim, lowest, highest);
    stop = clip_end(stop, dim, lowest, highest);
    int64_t way = step > 0 ? stop - start : start - stop;
    int64_t stride = step > 0 ? step : -step;
    slice->start[axis] = start;
    slice->count[axis] = way <= 0 ? 0 : (way - 1) / stride + 1;
}

static void take_slice(pl_slice *slice, const pl_attr *attrs, const pl_shape *in)
{
    const pl_attr *start = &attrs[PL_ATTR_slice_start], *stop = &attrs[PL_ATTR_slice_stop];
    const pl_attr *step = &attrs[PL_ATTR_slice_step];
    for (int i = 0; i < start->n; i++)
        slice_axis(slice, i, in->dims[i], start->value.values[i], stop->value.values[i],
                   step->type == PL_ATTR_NONE ? 1 : step->value.values[i]);
}

static void take_crop(pl_slice *slice, const pl_attr *attrs, const pl_shape *in)
{
    for (int i = 0; i < in->rank; i++) {
        int64_t size = attrs[PL_ATTR_crop_size].value.values[i];
        slice->start[i] = attrs[PL_ATTR_crop_start].value.values[i];
        if (size >= 0)
            slice->count[i] = size;
        else
            slice->count[i] =
                in->dims[i] == PL_UNKNOWN ? PL_UNKNOWN : in->dims[i] - slice->start[i];
    }
}

static void take_reverse(pl_slice *slice, const pl_attr *attrs, const pl_shape *in)
{
    uint32_t backwards = pl_axes_mask(&attrs[PL_ATTR_reverse_axes], in->rank);
    for (int i = 0; i < in->rank; i++)
        if (backwards & 1u << i) {
            slice->start[i] = in->dims[i] - 1;
            slice->step[i] = -1;
        }
}

pl_slice pl_slice_of(pl_op_id op, const pl_attr *attrs, const pl_shape *in)
{
    pl_slice slice = {0};
    for (int i = 0; i < in->rank; i++) {
        slice.step[i] = 1;
        slice.count[i] = in->dims[i];
    }
    if (op == PL_OP_slice)
        take_slice(&slice, attrs, in);
    else if (op == PL_OP_crop)
        take_crop(&slice, attrs, in);
    else if (op == PL_OP_reverse)
        take_reverse(&slice, attrs, in);
    return slice;
}

uint32_t pl_reduced_axes(const pl_node *reduction)
{
    int rank = reduction->inputs[0]->shape.rank;
    if (reduction->op->id == PL_OP_argmax || reduction->op->id == PL_OP_argmin)
        return 1u << pl_axis_of(reduction->attrs[PL_ATTR_arg_axis].value.i, rank);
    return pl_axes_mask(&reduction->attrs[PL_ATTR_reduce_axes], rank);
}

/* The attribute sets of row ops begin with their axis; but top_k always works along the last. */
static_assert(PL_ATTR_cumsum_axis == 0 && PL_ATTR_row_axis == 0 && PL_ATTR_sort_axis == 0,
              "pl_row_axis() reads the first attribute");

int pl_row_axis(const pl_node *row)
{
    int rank = row->inputs[0]->shape.rank;
    bool is_top_k = row->op->id == PL_OP_top_k_values || row->op->id == PL_OP_top_k_indices;
    return is_top_k ? rank - 1 : pl_axis_of(row->attrs[0].value.i, rank);
}

pl_matmul_dims pl_matmul_dims_of(const pl_node *matmul, const pl_shape *a, const pl_shape *b)
{
    bool ta = matmul->attrs[PL_ATTR_matmul_transpose_a].value.i;
    bool tb = matmul->attrs[PL_ATTR_matmul_transpose_b].value.i;
    const int64_t *last_a = a->dims + a->rank - 2, *last_b = b->dims + b->rank - 2;
    return (pl_matmul_dims){.rows = last_a[ta], .inner = last_a[!ta], .columns = last_b[!tb]};
}
