/* SPDX-License-Identifier: Apache-2.0 */
/* Copies elements to where they belong: concat, pad, tile, gather, one_hot, reshape. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exec/step/run.h"
#include "graph/geometry.h"
#include "kernels/elementwise/cast.h"
#include "kernels/move/gather.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

static size_t item_bytes_of(const pl_op_call *call)
{
    return pl_dtype_info_of(call->instr->dtype)->item_bytes;
}

static const pl_shape *input_shape(const pl_op_call *call, int i)
{
    return pl_node_input_shape(call->instr->node, call->frame->run->plan->shapes, i);
}

/* Copies the needed part of input i to `there`, its place in the packed output. */
static void place(const pl_op_call *call, int i, const pl_region *there)
{
    int64_t to[PL_RANK_MAX], offset = 0;
    size_t item_bytes = item_bytes_of(call);
    pl_region_packed_strides(call->out, item_bytes, to);
    for (int k = 0; k < there->rank; k++)
        offset += (there->begin[k] - call->out->begin[k]) * to[k];
    pl_region_copy(call->to + offset, to, pl_call_data(call, i), pl_call_strides(call, i),
                   there->extent, there->rank, item_bytes);
}

/* Treats two inputs of one element each along the axis as one input, with a stride from one to the
 * other: neighbouring elements are then written together. */
static bool place_pair(const pl_op_call *call, int axis)
{
    const pl_node *node = call->instr->node;
    const int64_t *strides = pl_call_strides(call, 0);
    size_t item_bytes = item_bytes_of(call);
    if (node->n_inputs != 2 || call->out->extent[axis] != 2 ||
        input_shape(call, 0)->dims[axis] != 1 || input_shape(call, 1)->dims[axis] != 1)
        return false;
    int64_t from[PL_RANK_MAX], to[PL_RANK_MAX];
    for (int i = 0; i < call->out->rank; i++) {
        from[i] = strides[i];
        if (i != axis && call->out->extent[i] > 1 && strides[i] != pl_call_strides(call, 1)[i])
            return false;
    }
    from[axis] = (int64_t)((uintptr_t)pl_call_data(call, 1) - (uintptr_t)pl_call_data(call, 0));
    pl_region_packed_strides(call->out, item_bytes, to);
    pl_region_copy(call->to, to, pl_call_data(call, 0), from, call->out->extent, call->out->rank,
                   item_bytes);
    return true;
}

static int do_concat(const pl_op_call *call)
{
    const pl_node *node = call->instr->node;
    int axis = pl_axis_of(node->attrs[PL_ATTR_concat_axis].value.i, call->out->rank);
    int64_t begin = 0;
    if (place_pair(call, axis))
        return 0;
    for (int i = 0; i < node->n_inputs; i++) {
        pl_region in, there;
        if (pl_call_needs(call, i) &&
            pl_region_of_concat(call->out, axis, begin, input_shape(call, i), &in, &there))
            place(call, i, &there);
        begin += input_shape(call, i)->dims[axis];
    }
    return 0;
}

static int do_pad(const pl_op_call *call)
{
    const pl_node *node = call->instr->node;
    uint64_t element = 0;
    pl_region in, there;
    int64_t before[PL_RANK_MAX];
    for (int i = 0; i < call->out->rank; i++)
        before[i] = node->attrs[PL_ATTR_pad_before].value.values[i];
    pl_element_of(&node->attrs[PL_ATTR_pad_value], node->dtype, &element);
    pl_fill(call->to, pl_region_count(call->out), &element, item_bytes_of(call));
    if (pl_call_needs(call, 0) &&
        pl_region_of_pad(call->out, before, input_shape(call, 0), &in, &there))
        place(call, 0, &there);
    return 0;
}

/* Copies one repetition after the other along `axis`, then the axes within. */
static void tile_axis(const pl_op_call *call, int axis, pl_region *in, pl_region *there)
{
    const pl_region *have = pl_call_region(call, 0);
    size_t item_bytes = item_bytes_of(call);
    if (axis == call->out->rank) {
        const int64_t *from = pl_call_strides(call, 0);
        int64_t to[PL_RANK_MAX];
        pl_region_packed_strides(call->out, item_bytes, to);
        int64_t from_offset = 0, to_offset = 0;
        for (int i = 0; i < axis; i++) {
            from_offset += (in->begin[i] - have->begin[i]) * from[i];
            to_offset += (there->begin[i] - call->out->begin[i]) * to[i];
        }
        pl_region_copy(call->to + to_offset, to, pl_call_data(call, 0) + from_offset, from,
                       there->extent, axis, item_bytes);
        return;
    }
    int64_t dim = input_shape(call, 0)->dims[axis];
    int64_t end = call->out->begin[axis] + call->out->extent[axis];
    for (int64_t at = call->out->begin[axis]; at < end;) {
        int64_t first = at % dim, n = dim - first < end - at ? dim - first : end - at;
        in->begin[axis] = first;
        there->begin[axis] = at;
        there->extent[axis] = n;
        tile_axis(call, axis + 1, in, there);
        at += n;
    }
}

static int do_tile(const pl_op_call *call)
{
    pl_region in = *call->out, there = *call->out;
    tile_axis(call, 0, &in, &there);
    return 0;
}

static int64_t count_between(const pl_region *region, int begin, int end)
{
    int64_t n = 1;
    for (int i = begin; i < end; i++)
        n *= region->extent[i];
    return n;
}

static int64_t index_at(const pl_op_call *call, int i, int64_t at)
{
    pl_dtype dtype = pl_call_input(call, i)->dtype;
    int64_t index;
    pl_cast_find(dtype, PL_I64)(
        &index, pl_call_data(call, i) + at * pl_dtype_info_of(dtype)->item_bytes, 1);
    return index;
}

/* Returns whether the elements after the gathered axis form a contiguous row. */
static bool is_row(const pl_region *in, const int64_t *strides, int axis, int64_t item_bytes)
{
    for (int i = in->rank - 1; i > axis; i--) {
        if (in->extent[i] > 1 && strides[i] != item_bytes)
            return false;
        item_bytes *= in->extent[i];
    }
    return true;
}

/* Gathers for one element of the axes before `axis`, whose input is at `from`. */
static void gather_one(const pl_op_call *call, int axis, const int64_t *map, int64_t n,
                       const char *from, char *to)
{
    const pl_region *in = pl_call_region(call, 0);
    const int64_t *strides = pl_call_strides(call, 0);
    int64_t item_bytes = (int64_t)item_bytes_of(call), packed[PL_RANK_MAX];
    int64_t row_bytes = count_between(in, axis + 1, in->rank) * item_bytes;
    if (is_row(in, strides, axis, item_bytes)) {
        pl_gather_rows(to, row_bytes, from, strides[axis], row_bytes, map, n, 0);
        return;
    }
    pl_region_packed_strides(in, (size_t)item_bytes, packed);
    for (int64_t i = 0; i < n; i++)
        pl_region_copy(to + i * row_bytes, packed + axis + 1, from + map[i] * strides[axis],
                       strides + axis + 1, in->extent + axis + 1, in->rank - axis - 1,
                       (size_t)item_bytes);
}

/* An unsigned 64-bit index may not fit an int64_t. */
static int refuse_index(const pl_op_call *call, int64_t at, int axis, int64_t size)
{
    int64_t index = index_at(call, 1, at);
    bool is_unsigned = pl_call_input(call, 1)->dtype == PL_U64;
    char text[24];
    if (is_unsigned)
        snprintf(text, sizeof text, "%" PRIu64, (uint64_t)index);
    else
        snprintf(text, sizeof text, "%" PRId64, index);
    return pl_error_set(&call->frame->error, -EINVAL,
                        "index %s is not in axis %d, which has %" PRId64 " elements", text, axis,
                        size);
}

static int do_gather(const pl_op_call *call)
{
    const pl_node *node = call->instr->node;
    const pl_region *in = pl_call_region(call, 0);
    const int64_t *strides = pl_call_strides(call, 0);
    int axis = pl_axis_of(node->attrs[PL_ATTR_gather_axis].value.i, in->rank);
    int64_t size = input_shape(call, 0)->dims[axis];
    int64_t n = pl_region_count(pl_call_region(call, 1));
    int64_t *map = (int64_t *)(void *)call->work;
    int64_t bad = pl_gather_map(pl_call_input(call, 1)->dtype, pl_call_data(call, 1), n, size, map);
    if (bad >= 0)
        return refuse_index(call, bad, axis, size);
    int64_t n_outer = count_between(in, 0, axis), at[PL_RANK_MAX] = {0};
    int64_t bytes = n * count_between(in, axis + 1, in->rank) * (int64_t)item_bytes_of(call);
    const char *from = pl_call_data(call, 0);
    for (int64_t i = 0; i < n_outer; i++) {
        gather_one(call, axis, map, n, from, call->to + i * bytes);
        for (int k = axis - 1; k >= 0; k--) {
            from += strides[k];
            if (++at[k] < in->extent[k])
                break;
            from -= strides[k] * in->extent[k];
            at[k] = 0;
        }
    }
    return 0;
}

static int do_one_hot(const pl_op_call *call)
{
    const pl_node *node = call->instr->node;
    const pl_region *out = call->out;
    size_t item_bytes = item_bytes_of(call);
    int axis = pl_axis_of(node->attrs[PL_ATTR_one_hot_axis].value.i, out->rank);
    uint64_t on = 0, off = 0;
    pl_element_of(&node->attrs[PL_ATTR_one_hot_on], node->dtype, &on);
    pl_element_of(&node->attrs[PL_ATTR_one_hot_off], node->dtype, &off);
    int64_t n_outer = count_between(out, 0, axis);
    int64_t n_inner = count_between(out, axis + 1, out->rank);
    if (n_inner == 1) {
        pl_one_hot(pl_call_input(call, 0)->dtype, pl_call_data(call, 0), n_outer, out->begin[axis],
                   out->extent[axis], &on, &off, item_bytes, call->to);
        return 0;
    }
    pl_fill(call->to, pl_region_count(out), &off, item_bytes);
    for (int64_t i = 0; i < n_outer * n_inner; i++) {
        int64_t index = index_at(call, 0, i), first = out->begin[axis];
        if (index < first || index - first >= out->extent[axis])
            continue;
        int64_t class = index - first;
        int64_t at = (i / n_inner * out->extent[axis] + class) * n_inner + i % n_inner;
        memcpy(call->to + at * (int64_t)item_bytes, &on, item_bytes);
    }
    return 0;
}

/* Finds where element `linear` of the input's shape lies in its packed region, and how many follow
 * it there along the last axis. */
static int64_t find_element(const pl_region *in, const pl_shape *shape, int64_t linear,
                            int64_t *ret_n)
{
    int64_t at = 0, stride = 1;
    *ret_n = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        int64_t place = linear % shape->dims[i] - in->begin[i];
        linear /= shape->dims[i];
        if (i == shape->rank - 1)
            *ret_n = in->extent[i] - place;
        at += place * stride;
        stride *= in->extent[i];
    }
    return at;
}

static int do_reshape(const pl_op_call *call)
{
    const pl_node *node = call->instr->node;
    const pl_region *in = pl_call_region(call, 0);
    int64_t item_bytes = (int64_t)item_bytes_of(call), offset;
    char *to = call->to;
    pl_region_runs runs;
    pl_region_runs_init(&runs, call->out, &call->frame->run->plan->shapes[node->number],
                        (size_t)item_bytes);
    while (pl_region_runs_next(&runs, &offset)) {
        int64_t linear = offset / item_bytes, left = runs.run_bytes / item_bytes;
        while (left > 0) {
            int64_t n, at = find_element(in, input_shape(call, 0), linear, &n);
            n = n < left ? n : left;
            memcpy(to, pl_call_data(call, 0) + at * item_bytes, (size_t)(n * item_bytes));
            to += n * item_bytes;
            linear += n;
            left -= n;
        }
    }
    return 0;
}

int pl_op_move(const pl_op_call *call)
{
    switch (call->instr->node->op->id) {
    case PL_OP_concat:
        return do_concat(call);
    case PL_OP_pad:
        return do_pad(call);
    case PL_OP_tile:
        return do_tile(call);
    case PL_OP_gather:
        return do_gather(call);
    case PL_OP_one_hot:
        return do_one_hot(call);
    default:
        return do_reshape(call);
    }
}
