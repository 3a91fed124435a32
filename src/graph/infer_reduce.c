/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of ops that need whole axes: reductions, rows, products of matrices. */
#include <assert.h>
#include <inttypes.h>

#include "graph/geometry.h"
#include "graph/infer.h"
#include "tensor/shape.h"

/* One function reads the axes of both. */
static_assert((int)PL_ATTR_variance_axes == (int)PL_ATTR_reduce_axes, "axes");
static_assert((int)PL_ATTR_variance_keepdims == (int)PL_ATTR_reduce_keepdims, "keepdims");

static void fold(const pl_shape *from, uint32_t folded, bool keepdims, pl_shape *to)
{
    to->rank = 0;
    for (int i = 0; i < from->rank; i++) {
        if (!(folded & 1u << i))
            to->dims[to->rank++] = from->dims[i];
        else if (keepdims)
            to->dims[to->rank++] = 1;
    }
}

int pl_infer_reduce(pl_infer *in, pl_error *reterr)
{
    const pl_shape *from = pl_infer_shape(in, 0);
    const pl_attr *axes = &in->attrs[PL_ATTR_reduce_axes];
    int r = pl_infer_axes(in, axes, from, reterr);
    if (r == 0)
        fold(from, pl_axes_mask(axes, from->rank), in->attrs[PL_ATTR_reduce_keepdims].value.i,
             &in->shape);
    return r;
}

static bool has_zero(const pl_shape *shape)
{
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] == 0)
            return true;
    return false;
}

/* An empty axis has no largest element; that is an error unless the result is empty, too. */
static int refuse_none(const pl_infer *in, int axis, pl_error *reterr)
{
    const pl_shape *from = pl_infer_shape(in, 0);
    if (from->dims[axis] == 0 && !has_zero(&in->shape) && pl_shape_is_known(&in->shape))
        return pl_infer_fail(in, reterr, "shape %s: axis %d has no elements, so there is no %s",
                             PL_SHAPE_TEXT(from), axis, in->op->name);
    return 0;
}

int pl_infer_arg(pl_infer *in, pl_error *reterr)
{
    int axis;
    const pl_shape *from = pl_infer_shape(in, 0);
    int r = pl_infer_axis(in, in->attrs[PL_ATTR_arg_axis].value.i, from, &axis, reterr);
    if (r < 0)
        return r;
    fold(from, 1u << axis, in->attrs[PL_ATTR_arg_keepdims].value.i, &in->shape);
    return refuse_none(in, axis, reterr);
}

int pl_infer_row(pl_infer *in, pl_error *reterr)
{
    int axis;
    in->shape = *pl_infer_shape(in, 0);
    return pl_infer_axis(in, in->attrs[0].value.i, &in->shape, &axis, reterr);
}

int pl_infer_top_k(pl_infer *in, pl_error *reterr)
{
    int axis;
    int64_t k = in->attrs[PL_ATTR_top_k_k].value.i;
    in->shape = *pl_infer_shape(in, 0);
    int r = pl_infer_axis(in, -1, &in->shape, &axis, reterr);
    if (r < 0)
        return r;
    int64_t dim = in->shape.dims[axis];
    if (k < 0 || (dim != PL_UNKNOWN && k > dim))
        return pl_infer_fail(in, reterr, "shape %s: the last axis has no %" PRId64 " elements",
                             PL_SHAPE_TEXT(&in->shape), k);
    in->shape.dims[axis] = k;
    return 0;
}

/* ---- matmul ---- */

static int broadcast_batches(pl_infer *in, const pl_shape *a, const pl_shape *b, pl_error *reterr)
{
    pl_error inner;
    pl_error_init(&inner);
    pl_shape batch_a = *a, batch_b = *b;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    if (pl_shape_broadcast(&batch_a, &batch_b, &in->shape, &inner) < 0)
        return pl_infer_fail(in, reterr, "%s x %s: the batches' %.200s", PL_SHAPE_TEXT(a),
                             PL_SHAPE_TEXT(b), inner.message);
    return 0;
}

int pl_infer_matmul(pl_infer *in, pl_error *reterr)
{
    const pl_shape *a = pl_infer_shape(in, 0), *b = pl_infer_shape(in, 1);
    bool ta = in->attrs[PL_ATTR_matmul_transpose_a].value.i;
    bool tb = in->attrs[PL_ATTR_matmul_transpose_b].value.i;
    if (a->rank < 2 || b->rank < 2)
        return pl_infer_fail(in, reterr, "%s x %s: both have at least two axes; add one of 1",
                             PL_SHAPE_TEXT(a), PL_SHAPE_TEXT(b));
    const int64_t *last_a = a->dims + a->rank - 2, *last_b = b->dims + b->rank - 2;
    int64_t inner_a = last_a[!ta], inner_b = last_b[tb];
    if (inner_a != PL_UNKNOWN && inner_b != PL_UNKNOWN && inner_a != inner_b)
        return pl_infer_fail(in, reterr,
                             "inner dimensions differ: %s%s x %s%s: %" PRId64 " and %" PRId64,
                             PL_SHAPE_TEXT(a), ta ? " transposed" : "", PL_SHAPE_TEXT(b),
                             tb ? " transposed" : "", inner_a, inner_b);
    int r = broadcast_batches(in, a, b, reterr);
    if (r < 0)
        return r;
    in->shape.dims[in->shape.rank++] = last_a[ta];
    in->shape.dims[in->shape.rank++] = last_b[!tb];
    return 0;
}
