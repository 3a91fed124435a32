/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of views. */
#include <inttypes.h>

#include "graph/geometry.h"
#include "graph/infer.h"
#include "tensor/shape.h"

int pl_infer_ensure(pl_infer *in, pl_error *reterr)
{
    pl_error inner;
    pl_error_init(&inner);
    pl_shape said = pl_shape_of_attr(&in->attrs[PL_ATTR_ensure_shape]);
    if (pl_shape_merge(pl_infer_shape(in, 0), &said, &in->shape, &inner) < 0)
        return pl_infer_fail(in, reterr, "%s", inner.message);
    return 0;
}

/* ---- reshape ---- */

/* The elements of one side of a reshape, without axes that both sides keep. */
typedef struct part {
    int64_t n_known; /* product of the known dimensions */
    int n_unknown;
    int open; /* the axis that is unknown */
} part;

static bool multiply(part *side, int axis, int64_t dim)
{
    if (dim == PL_UNKNOWN) {
        side->n_unknown++;
        side->open = axis;
        return true;
    }
    return !__builtin_mul_overflow(side->n_known, dim, &side->n_known);
}

/* Sets the dimensions of kept axes; *ret_kept has a bit for each such input axis. */
static int keep_axes(pl_infer *in, const pl_shape *from, uint32_t *ret_kept, pl_error *reterr)
{
    const pl_attr *keep = &in->attrs[PL_ATTR_reshape_keep];
    if (keep->type == PL_ATTR_NONE)
        return 0;
    if (keep->n != in->shape.rank)
        return pl_infer_fail(in, reterr, "'keep' has %d numbers for shape %s: one for each axis",
                             keep->n, PL_SHAPE_TEXT(&in->shape));
    for (int i = 0; i < keep->n; i++) {
        int64_t axis = keep->value.values[i];
        if (axis == -1)
            continue;
        if (axis < 0 || axis >= from->rank || *ret_kept & 1u << axis)
            return pl_infer_fail(in, reterr,
                                 "'keep' has %" PRId64 ": an axis of %s, each at most once, or -1",
                                 axis, PL_SHAPE_TEXT(from));
        if (in->shape.dims[i] != PL_UNKNOWN && from->dims[axis] != PL_UNKNOWN &&
            in->shape.dims[i] != from->dims[axis])
            return pl_infer_fail(
                in, reterr, "axis %d is %" PRId64 " and keeps axis %" PRId64 " of %s, which is not",
                i, in->shape.dims[i], axis, PL_SHAPE_TEXT(from));
        if (from->dims[axis] != PL_UNKNOWN)
            in->shape.dims[i] = from->dims[axis];
        *ret_kept |= 1u << axis;
    }
    return 0;
}

static int misfit(const pl_infer *in, const pl_shape *from, pl_error *reterr)
{
    return pl_infer_fail(in, reterr, "%s does not become %s: the numbers of elements do not fit",
                         PL_SHAPE_TEXT(from), PL_SHAPE_TEXT(&in->shape));
}

static int fit_parts(pl_infer *in, const pl_shape *from, part a, part b, pl_error *reterr)
{
    if (a.n_unknown == 0 && b.n_unknown == 1) {
        if (b.n_known == 0 || a.n_known % b.n_known != 0)
            return misfit(in, from, reterr);
        in->shape.dims[b.open] = a.n_known / b.n_known;
    } else if (a.n_unknown == 0 && a.n_known != b.n_known) {
        return misfit(in, from, reterr);
    } else if (a.n_unknown > 0 && b.n_unknown == 0) {
        /* If the input is not fully known, the quotient must be an integer. */
        bool fits = a.n_known == 0 ? b.n_known == 0 : b.n_known % a.n_known == 0;
        if (!fits)
            return misfit(in, from, reterr);
    }
    return 0;
}

int pl_infer_reshape(pl_infer *in, pl_error *reterr)
{
    const pl_shape *from = pl_infer_shape(in, 0);
    const pl_attr *keep = &in->attrs[PL_ATTR_reshape_keep];
    uint32_t kept = 0;
    in->shape = pl_shape_of_attr(&in->attrs[PL_ATTR_reshape_shape]);
    int r = keep_axes(in, from, &kept, reterr);
    if (r < 0)
        return r;

    part a = {.n_known = 1}, b = {.n_known = 1};
    bool counted = true;
    for (int i = 0; i < from->rank; i++)
        if (!(kept & 1u << i))
            counted &= multiply(&a, i, from->dims[i]);
    for (int i = 0; i < in->shape.rank; i++)
        if (keep->type == PL_ATTR_NONE || keep->value.values[i] == -1)
            counted &= multiply(&b, i, in->shape.dims[i]);
    if (!counted)
        return misfit(in, from, reterr);
    if (b.n_unknown > 1)
        return pl_infer_fail(in, reterr, "shape %s: at most one dimension is -1",
                             PL_SHAPE_TEXT(&in->shape));
    return fit_parts(in, from, a, b, reterr);
}

/* ---- the others ---- */

int pl_infer_transpose(pl_infer *in, pl_error *reterr)
{
    const pl_shape *from = pl_infer_shape(in, 0);
    const pl_attr *axes = &in->attrs[PL_ATTR_transpose_axes];
    bool given = axes->type != PL_ATTR_NONE;
    int r = given ? pl_infer_one_per_axis(in, axes, reterr) : 0;
    if (r == 0 && given)
        r = pl_infer_axes(in, axes, from, reterr);
    if (r < 0)
        return r;
    in->shape.rank = from->rank;
    for (int i = 0; i < from->rank; i++) {
        int axis = given ? pl_axis_of(axes->value.values[i], from->rank) : from->rank - 1 - i;
        in->shape.dims[i] = from->dims[axis];
    }
    return 0;
}

int pl_infer_broadcast(pl_infer *in, pl_error *reterr)
{
    const pl_shape *from = pl_infer_shape(in, 0);
    pl_shape to = pl_shape_of_attr(&in->attrs[PL_ATTR_broadcast_shape]);
    int n_new = to.rank - from->rank;
    if (n_new < 0)
        return pl_infer_fail(in, reterr, "shape %s does not become %s: it has more axes",
                             PL_SHAPE_TEXT(from), PL_SHAPE_TEXT(&to));
    in->shape = to;
    for (int i = 0; i < to.rank; i++) {
        int64_t own = i < n_new ? 1 : from->dims[i - n_new];
        if (to.dims[i] == PL_UNKNOWN && i < n_new)
            return pl_infer_fail(in, reterr, "shape %s: axis %d is new, and so has to be said",
                                 PL_SHAPE_TEXT(&to), i);
        if (to.dims[i] == PL_UNKNOWN)
            in->shape.dims[i] = own;
        else if (own != 1 && own != PL_UNKNOWN && own != to.dims[i])
            return pl_infer_fail(in, reterr,
                                 "shape %s does not become %s: axis %d is %" PRId64 " and %" PRId64,
                                 PL_SHAPE_TEXT(from), PL_SHAPE_TEXT(&to), i, own, to.dims[i]);
    }
    return 0;
}

int pl_infer_slice(pl_infer *in, pl_error *reterr)
{
    const pl_shape *from = pl_infer_shape(in, 0);
    const pl_attr *start = &in->attrs[PL_ATTR_slice_start], *stop = &in->attrs[PL_ATTR_slice_stop];
    const pl_attr *step = &in->attrs[PL_ATTR_slice_step];
    bool has_step = step->type != PL_ATTR_NONE;
    if (start->n != stop->n || (has_step && step->n != start->n))
        return pl_infer_fail(in, reterr, "'start', 'stop' and 'step' have %d, %d and %d numbers",
                             start->n, stop->n, has_step ? step->n : start->n);
    if (start->n > from->rank)
        return pl_infer_fail(in, reterr, "%d axes of shape %s, which has %d", start->n,
                             PL_SHAPE_TEXT(from), from->rank);
    for (int i = 0; has_step && i < step->n; i++)
        if (step->value.values[i] == 0 || step->value.values[i] == INT64_MIN)
            return pl_infer_fail(in, reterr, "the step along axis %d is %" PRId64, i,
                                 step->value.values[i]);
    pl_slice slice = pl_slice_of(PL_OP_slice, in->attrs, from);
    in->shape.rank = from->rank;
    for (int i = 0; i < from->rank; i++)
        in->shape.dims[i] = slice.count[i];
    return 0;
}

int pl_infer_crop(pl_infer *in, pl_error *reterr)
{
    const pl_shape *from = pl_infer_shape(in, 0);
    const pl_attr *start = &in->attrs[PL_ATTR_crop_start], *size = &in->attrs[PL_ATTR_crop_size];
    int r = pl_infer_one_per_axis(in, start, reterr);
    if (r == 0)
        r = pl_infer_one_per_axis(in, size, reterr);
    if (r < 0)
        return r;
    for (int i = 0; i < from->rank; i++) {
        int64_t first = start->value.values[i], n = size->value.values[i], dim = from->dims[i];
        bool inside = first >= 0 && n >= -1;
        if (inside && dim != PL_UNKNOWN)
            inside = first <= dim && (n == -1 || n <= dim - first);
        if (!inside)
            return pl_infer_fail(
                in, reterr, "shape %s: axis %d has no %" PRId64 " elements from %" PRId64 " on",
                PL_SHAPE_TEXT(from), i, n, first);
    }
    pl_slice slice = pl_slice_of(PL_OP_crop, in->attrs, from);
    in->shape.rank = from->rank;
    for (int i = 0; i < from->rank; i++)
        in->shape.dims[i] = slice.count[i];
    return 0;
}

int pl_infer_reverse(pl_infer *in, pl_error *reterr)
{
    in->shape = *pl_infer_shape(in, 0);
    return pl_infer_axes(in, &in->attrs[PL_ATTR_reverse_axes], &in->shape, reterr);
}
