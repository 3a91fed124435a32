/* SPDX-License-Identifier: Apache-2.0 */
/* See op_region.h. The rule of reshape is in op_region_reshape.c. */
#include "graph/op_region.h"

#include <math.h>

#include "graph/geometry.h"

bool pl_op_region(const pl_node *node, const pl_shape *shapes, const pl_region *out, int i,
                  pl_region *ret_in)
{
    pl_region in = {.rank = pl_node_input_shape(node, shapes, i)->rank};
    bool needed = !pl_region_is_empty(out) && node->op->region(node, shapes, out, i, &in) &&
                  !pl_region_is_empty(&in);
    *ret_in = needed ? in : (pl_region){.rank = pl_node_input_shape(node, shapes, i)->rank};
    return needed;
}

static void take_whole_axis(pl_region *region, int axis, const pl_shape *shape)
{
    region->begin[axis] = 0;
    region->extent[axis] = shape->dims[axis];
}

static void copy_axis(const pl_region *from, int from_axis, pl_region *to, int axis)
{
    to->begin[axis] = from->begin[from_axis];
    to->extent[axis] = from->extent[from_axis];
}

PL_REGION_RULE(nothing)
{
    (void)node, (void)shapes, (void)out, (void)i, (void)ret_in;
    return false;
}

PL_REGION_RULE(all)
{
    (void)out;
    *ret_in = pl_region_whole(pl_node_input_shape(node, shapes, i));
    return true;
}

PL_REGION_RULE(same)
{
    (void)node, (void)shapes, (void)i;
    *ret_in = *out;
    return true;
}

PL_REGION_RULE(broadcast)
{
    *ret_in = pl_region_of_broadcast(out, pl_node_input_shape(node, shapes, i));
    return true;
}

PL_REGION_RULE(transpose)
{
    (void)shapes, (void)i;
    int axes[PL_RANK_MAX];
    pl_transpose_axes(node, axes);
    *ret_in = pl_region_of_transpose(out, axes);
    return true;
}

PL_REGION_RULE(slice)
{
    pl_slice slice = pl_slice_of(node->op->id, node->attrs, pl_node_input_shape(node, shapes, i));
    *ret_in = pl_region_of_slice(out, slice.start, slice.step);
    return true;
}

PL_REGION_RULE(crop)
{
    return pl_region_for_slice(node, shapes, out, i, ret_in);
}

PL_REGION_RULE(reverse)
{
    return pl_region_for_slice(node, shapes, out, i, ret_in);
}

PL_REGION_RULE(concat)
{
    pl_region there;
    int axis = pl_axis_of(node->attrs[PL_ATTR_concat_axis].value.i, out->rank);
    int64_t begin = 0;
    for (int k = 0; k < i; k++)
        begin += pl_node_input_shape(node, shapes, k)->dims[axis];
    return pl_region_of_concat(out, axis, begin, pl_node_input_shape(node, shapes, i), ret_in,
                               &there);
}

PL_REGION_RULE(pad)
{
    pl_region there;
    int64_t before[PL_RANK_MAX];
    for (int k = 0; k < out->rank; k++)
        before[k] = node->attrs[PL_ATTR_pad_before].value.values[k];
    return pl_region_of_pad(out, before, pl_node_input_shape(node, shapes, i), ret_in, &there);
}

/* Within one repetition, its part; across a seam, the whole axis. */
PL_REGION_RULE(tile)
{
    const pl_shape *from = pl_node_input_shape(node, shapes, i);
    for (int k = 0; k < out->rank; k++) {
        int64_t first = out->begin[k] % from->dims[k]; /* not 0: the output is not empty */
        if (first + out->extent[k] > from->dims[k]) {
            take_whole_axis(ret_in, k, from);
        } else {
            ret_in->begin[k] = first;
            ret_in->extent[k] = out->extent[k];
        }
    }
    return true;
}

/* Only the indices determine which parts of the axis are needed. */
PL_REGION_RULE(gather)
{
    const pl_shape *from = pl_node_input_shape(node, shapes, 0);
    int n_indices = pl_node_input_shape(node, shapes, 1)->rank;
    int axis = pl_axis_of(node->attrs[PL_ATTR_gather_axis].value.i, from->rank);
    if (i == 1) {
        for (int k = 0; k < n_indices; k++)
            copy_axis(out, axis + k, ret_in, k);
        return true;
    }
    for (int k = 0; k < from->rank; k++) {
        if (k == axis)
            take_whole_axis(ret_in, k, from);
        else
            copy_axis(out, k < axis ? k : k - 1 + n_indices, ret_in, k);
    }
    return true;
}

PL_REGION_RULE(one_hot)
{
    (void)shapes, (void)i;
    int axis = pl_axis_of(node->attrs[PL_ATTR_one_hot_axis].value.i, out->rank);
    for (int k = 0; k < ret_in->rank; k++)
        copy_axis(out, k + (k >= axis), ret_in, k);
    return true;
}

PL_REGION_RULE(reduce)
{
    const pl_shape *from = pl_node_input_shape(node, shapes, i);
    uint32_t folded = pl_reduced_axes(node);
    bool keepdims = out->rank == from->rank;
    for (int k = 0, at = 0; k < from->rank; k++) {
        bool is_folded = folded & 1u << k;
        if (is_folded)
            take_whole_axis(ret_in, k, from);
        else
            copy_axis(out, at, ret_in, k);
        at += keepdims || !is_folded;
    }
    return true;
}

PL_REGION_RULE(arg)
{
    return pl_region_for_reduce(node, shapes, out, i, ret_in);
}

PL_REGION_RULE(row)
{
    *ret_in = *out;
    take_whole_axis(ret_in, pl_row_axis(node), pl_node_input_shape(node, shapes, i));
    return true;
}

PL_REGION_RULE(top_k)
{
    return pl_region_for_row(node, shapes, out, i, ret_in);
}

/* Rows of the first, columns of the second, and all along the inner axis. */
PL_REGION_RULE(matmul)
{
    const pl_shape *from = pl_node_input_shape(node, shapes, i);
    pl_region batch = *out;
    pl_shape from_batch = *from;
    batch.rank -= 2;
    from_batch.rank -= 2;
    *ret_in = pl_region_of_broadcast(&batch, &from_batch);
    ret_in->rank = from->rank;

    bool transposed =
        node->attrs[i == 0 ? PL_ATTR_matmul_transpose_a : PL_ATTR_matmul_transpose_b].value.i;
    int outer_axis = from->rank - 2 + ((i == 0) == transposed);
    int inner_axis = 2 * from->rank - 3 - outer_axis; /* the other one of the last two */
    copy_axis(out, out->rank - 2 + i, ret_in, outer_axis);
    take_whole_axis(ret_in, inner_axis, from);
    return true;
}

/* The variable's old value is not read. */
PL_REGION_RULE(assign)
{
    (void)node, (void)shapes;
    *ret_in = *out;
    return i == 1;
}

/* Half-pixel centres: pixel o of n_out lies at (o + 1/2) * n_in / n_out - 1/2, between two pixels
 * of the input; or, antialiased, among those at most a result pixel's width away. Adds one on each
 * side, so that rounding does not matter. */
static void resize_axis(const pl_region *out, pl_region *in, int axis, int64_t n_in, int64_t n_out,
                        bool antialias)
{
    double scale = (double)n_in / (double)n_out, around = antialias && scale > 1 ? scale : 1;
    double first = floor(((double)out->begin[axis] + 0.5) * scale - 0.5 - around);
    double end =
        floor(((double)(out->begin[axis] + out->extent[axis]) - 0.5) * scale - 0.5 + around) + 2;
    in->begin[axis] = first < 0 ? 0 : (int64_t)first;
    in->extent[axis] = (end > (double)n_in ? n_in : (int64_t)end) - in->begin[axis];
}

PL_REGION_RULE(resize)
{
    const pl_shape *from = pl_node_input_shape(node, shapes, i);
    const pl_shape *to = &shapes[node->number];
    *ret_in = *out;
    bool antialias = node->attrs[PL_ATTR_resize_antialias].value.i;
    for (int axis = from->rank - 3; axis < from->rank - 1; axis++)
        resize_axis(out, ret_in, axis, from->dims[axis], to->dims[axis], antialias);
    return true;
}
