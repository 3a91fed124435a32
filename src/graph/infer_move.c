/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of ops that copy elements to other places. */
#include <inttypes.h>

#include "graph/geometry.h"
#include "graph/infer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* Returns false if the sum overflows. */
static bool lengthen(int64_t *dim, int64_t more)
{
    if (*dim == PL_UNKNOWN || more == PL_UNKNOWN) {
        *dim = PL_UNKNOWN;
        return true;
    }
    return !__builtin_add_overflow(*dim, more, dim);
}

static int too_long(const pl_infer *in, int axis, pl_error *reterr)
{
    return pl_infer_fail(in, reterr, "axis %d would have more than 2^63 elements", axis);
}

/* Joins input i to the inputs before it. */
static int join(pl_infer *in, int i, int axis, pl_error *reterr)
{
    const pl_shape *next = pl_infer_shape(in, i);
    if (next->rank != in->shape.rank)
        return pl_infer_fail(
            in, reterr, "input %d is %s, where those before are %s: rank %d and %d", i,
            PL_SHAPE_TEXT(next), PL_SHAPE_TEXT(&in->shape), next->rank, in->shape.rank);
    for (int k = 0; k < next->rank; k++) {
        int64_t *so_far = &in->shape.dims[k], own = next->dims[k];
        if (k == axis)
            continue;
        if (*so_far != PL_UNKNOWN && own != PL_UNKNOWN && *so_far != own)
            return pl_infer_fail(in, reterr,
                                 "input %d is %s: axis %d is %" PRId64 ", and %" PRId64
                                 " before: all are the same but along axis %d",
                                 i, PL_SHAPE_TEXT(next), k, own, *so_far, axis);
        if (*so_far == PL_UNKNOWN)
            *so_far = own;
    }
    if (!lengthen(&in->shape.dims[axis], next->dims[axis]))
        return too_long(in, axis, reterr);
    return 0;
}

int pl_infer_concat(pl_infer *in, pl_error *reterr)
{
    int axis;
    in->shape = *pl_infer_shape(in, 0);
    int r = pl_infer_axis(in, in->attrs[PL_ATTR_concat_axis].value.i, &in->shape, &axis, reterr);
    for (int i = 1; r == 0 && i < in->n_inputs; i++)
        r = join(in, i, axis, reterr);
    return r;
}

int pl_infer_pad(pl_infer *in, pl_error *reterr)
{
    const pl_attr *before = &in->attrs[PL_ATTR_pad_before], *after = &in->attrs[PL_ATTR_pad_after];
    int r = pl_infer_one_per_axis(in, before, reterr);
    if (r == 0)
        r = pl_infer_one_per_axis(in, after, reterr);
    if (r < 0)
        return r;
    in->shape = *pl_infer_shape(in, 0);
    for (int i = 0; i < in->shape.rank; i++) {
        int64_t first = before->value.values[i], last = after->value.values[i];
        if (first < 0 || last < 0)
            return pl_infer_fail(in, reterr,
                                 "axis %d by %" PRId64 " and %" PRId64
                                 ": neither is negative; use slice to cut",
                                 i, first, last);
        if (!lengthen(&in->shape.dims[i], first) || !lengthen(&in->shape.dims[i], last))
            return too_long(in, i, reterr);
    }
    return 0;
}

int pl_infer_tile(pl_infer *in, pl_error *reterr)
{
    const pl_attr *multiples = &in->attrs[PL_ATTR_tile_multiples];
    int r = pl_infer_one_per_axis(in, multiples, reterr);
    if (r < 0)
        return r;
    in->shape = *pl_infer_shape(in, 0);
    for (int i = 0; i < in->shape.rank; i++) {
        int64_t times = multiples->value.values[i], *dim = &in->shape.dims[i];
        if (times < 0)
            return pl_infer_fail(in, reterr, "axis %d is repeated %" PRId64 " times", i, times);
        if (times == 0)
            *dim = 0;
        else if (*dim != PL_UNKNOWN && __builtin_mul_overflow(*dim, times, dim))
            return too_long(in, i, reterr);
    }
    return 0;
}

/* All axes of the second input replace the gathered axis of the first. */
int pl_infer_gather(pl_infer *in, pl_error *reterr)
{
    int axis;
    const pl_shape *from = pl_infer_shape(in, 0), *indices = pl_infer_shape(in, 1);
    if (!pl_op_takes_dtype(PL_OP_TAKES_INTEGERS, in->inputs[1]->dtype))
        return pl_infer_fail(in, reterr, "the indices are %s: they are integers",
                             pl_dtype_info_of(in->inputs[1]->dtype)->name);
    int r = pl_infer_axis(in, in->attrs[PL_ATTR_gather_axis].value.i, from, &axis, reterr);
    if (r < 0)
        return r;
    if (from->rank + indices->rank - 1 > PL_RANK_MAX)
        return pl_infer_fail(in, reterr, "%s by indices %s: at most %d axes are possible",
                             PL_SHAPE_TEXT(from), PL_SHAPE_TEXT(indices), PL_RANK_MAX);
    in->shape.rank = 0;
    for (int i = 0; i < from->rank; i++) {
        if (i != axis)
            in->shape.dims[in->shape.rank++] = from->dims[i];
        for (int k = 0; i == axis && k < indices->rank; k++)
            in->shape.dims[in->shape.rank++] = indices->dims[k];
    }
    return 0;
}

int pl_infer_one_hot(pl_infer *in, pl_error *reterr)
{
    const pl_shape *from = pl_infer_shape(in, 0);
    int64_t depth = in->attrs[PL_ATTR_one_hot_depth].value.i;
    int64_t at = in->attrs[PL_ATTR_one_hot_axis].value.i;
    int axis = pl_axis_of(at, from->rank + 1);
    if (depth < 0)
        return pl_infer_fail(in, reterr, "'depth' is %" PRId64, depth);
    if (!pl_op_takes_dtype(PL_OP_TAKES_UNTEXT, in->dtype))
        return pl_infer_fail(in, reterr, "dtype %s: it gives %s", pl_dtype_info_of(in->dtype)->name,
                             pl_op_takes_name(PL_OP_TAKES_UNTEXT));
    if (from->rank == PL_RANK_MAX)
        return pl_infer_fail(in, reterr, "%s has %d axes already: there is no room for one more",
                             PL_SHAPE_TEXT(from), PL_RANK_MAX);
    if (axis < 0)
        return pl_infer_fail(in, reterr, "axis %" PRId64 " for %s: it goes to one of %d to %d", at,
                             PL_SHAPE_TEXT(from), -from->rank - 1, from->rank);
    in->shape.rank = from->rank + 1;
    for (int i = 0; i < in->shape.rank; i++)
        in->shape.dims[i] = i == axis ? depth : from->dims[i - (i > axis)];
    return 0;
}
