/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of sources: ops without inputs, or with one that only lends its shape. */
#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "graph/infer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* One function reads the shape of all of these. */
static_assert((int)PL_ATTR_file_shape == (int)PL_ATTR_tensor_shape, "known");
static_assert((int)PL_ATTR_uniform_shape == (int)PL_ATTR_fill_shape, "like");
static_assert((int)PL_ATTR_normal_shape == (int)PL_ATTR_fill_shape, "like");

int pl_infer_tensor(pl_infer *in, pl_error *reterr)
{
    (void)reterr;
    in->shape = pl_shape_of_attr(&in->attrs[PL_ATTR_tensor_shape]);
    return 0;
}

int pl_infer_known(pl_infer *in, pl_error *reterr)
{
    in->shape = pl_shape_of_attr(&in->attrs[PL_ATTR_tensor_shape]);
    if (!pl_shape_is_known(&in->shape))
        return pl_infer_fail(in, reterr, "shape %s: every dimension of a %s is known",
                             PL_SHAPE_TEXT(&in->shape), in->op->name);
    return 0;
}

/* Takes the shape from the attribute or from the input. */
static int take_shape(pl_infer *in, pl_error *reterr)
{
    const pl_attr *attr = &in->attrs[PL_ATTR_fill_shape];
    if (in->n_inputs == 0 && attr->type == PL_ATTR_NONE)
        return pl_infer_fail(in, reterr, "neither 'shape' nor an input to have the shape of");
    if (in->n_inputs > 0 && attr->type != PL_ATTR_NONE)
        return pl_infer_fail(in, reterr, "both 'shape' and an input to have the shape of");
    if (in->n_inputs > 0) {
        in->shape = *pl_infer_shape(in, 0);
        return 0;
    }
    in->shape = pl_shape_of_attr(attr);
    if (!pl_shape_is_known(&in->shape))
        return pl_infer_fail(in, reterr,
                             "shape %s: every dimension is known, or an input has the shape",
                             PL_SHAPE_TEXT(&in->shape));
    return 0;
}

static int refuse_dtype(const pl_infer *in, pl_op_takes wanted, pl_error *reterr)
{
    return pl_infer_fail(in, reterr, "dtype %s: it gives %s", pl_dtype_info_of(in->dtype)->name,
                         pl_op_takes_name(wanted));
}

int pl_infer_fill(pl_infer *in, pl_error *reterr)
{
    if (!pl_op_takes_dtype(PL_OP_TAKES_UNTEXT, in->dtype))
        return refuse_dtype(in, PL_OP_TAKES_UNTEXT, reterr);
    return take_shape(in, reterr);
}

static double as_double(const pl_attr *number)
{
    return number->type == PL_ATTR_INT ? (double)number->value.i : number->value.f;
}

static double largest_of(pl_dtype dtype)
{
    return dtype == PL_F16    ? 65504
           : dtype == PL_BF16 ? 0x1.fep127
           : dtype == PL_F32  ? (double)FLT_MAX
                              : DBL_MAX;
}

/* Values are low + u * (high - low), computed at least in float32: if that overflows there, all
 * values would be the same. */
static bool uniform_can_be_computed(double low, double high, pl_dtype dtype)
{
    return fabs(low) <= largest_of(dtype) && fabs(high) <= largest_of(dtype) &&
           high - low <= (dtype == PL_F64 ? DBL_MAX : (double)FLT_MAX);
}

/* Values in [low, high): at least one must exist. */
int pl_infer_uniform(pl_infer *in, pl_error *reterr)
{
    const pl_attr *low = &in->attrs[PL_ATTR_uniform_low], *high = &in->attrs[PL_ATTR_uniform_high];
    if (!pl_op_takes_dtype(PL_OP_TAKES_NUMBERS, in->dtype))
        return refuse_dtype(in, PL_OP_TAKES_NUMBERS, reterr);
    bool both_ints = low->type == PL_ATTR_INT && high->type == PL_ATTR_INT;
    if (!both_ints && pl_op_takes_dtype(PL_OP_TAKES_INTEGERS, in->dtype))
        return pl_infer_fail(in, reterr, "'low' and 'high' are integers for dtype %s",
                             pl_dtype_info_of(in->dtype)->name);
    if (both_ints ? low->value.i >= high->value.i : !(as_double(low) < as_double(high)))
        return pl_infer_fail(in, reterr, "'low' is %g and 'high' %g: nothing is between",
                             as_double(low), as_double(high));
    if (pl_op_takes_dtype(PL_OP_TAKES_FLOATS, in->dtype) &&
        !uniform_can_be_computed(as_double(low), as_double(high), in->dtype))
        return pl_infer_fail(
            in, reterr,
            "'low' is %g and 'high' %g: these, or what lies between, are more than "
            "%s holds",
            as_double(low), as_double(high), pl_dtype_info_of(in->dtype)->name);
    return take_shape(in, reterr);
}

int pl_infer_normal(pl_infer *in, pl_error *reterr)
{
    if (!pl_op_takes_dtype(PL_OP_TAKES_FLOATS, in->dtype))
        return refuse_dtype(in, PL_OP_TAKES_FLOATS, reterr);
    double stddev = as_double(&in->attrs[PL_ATTR_normal_stddev]);
    if (!(stddev >= 0))
        return pl_infer_fail(in, reterr, "'stddev' is %g: it is at least 0", stddev);
    return take_shape(in, reterr);
}

/* Returns how many values numpy.arange() has; -1: too many, or not a number. */
static int64_t count_ints(int64_t start, int64_t stop, int64_t step)
{
    __int128 way = step > 0 ? (__int128)stop - start : (__int128)start - stop;
    __int128 stride = step > 0 ? (__int128)step : -(__int128)step;
    __int128 count = way <= 0 ? 0 : (way - 1) / stride + 1;
    return count > INT64_MAX ? -1 : (int64_t)count;
}

static int64_t count_floats(double start, double stop, double step)
{
    double count = ceil((stop - start) / step);
    if (!(count < 9.2e18))
        return -1;
    return count > 0 ? (int64_t)count : 0;
}

int pl_infer_range(pl_infer *in, pl_error *reterr)
{
    const pl_attr *start = &in->attrs[PL_ATTR_range_start], *stop = &in->attrs[PL_ATTR_range_stop];
    const pl_attr *step = &in->attrs[PL_ATTR_range_step];
    if (!pl_op_takes_dtype(PL_OP_TAKES_NUMBERS, in->dtype))
        return refuse_dtype(in, PL_OP_TAKES_NUMBERS, reterr);
    if (as_double(step) == 0)
        return pl_infer_fail(in, reterr, "'step' is 0");
    bool ints =
        start->type == PL_ATTR_INT && stop->type == PL_ATTR_INT && step->type == PL_ATTR_INT;
    int64_t count = ints ? count_ints(start->value.i, stop->value.i, step->value.i)
                         : count_floats(as_double(start), as_double(stop), as_double(step));
    if (count < 0)
        return pl_infer_fail(in, reterr, "from %g to %g by %g: these cannot be counted",
                             as_double(start), as_double(stop), as_double(step));
    in->shape = PL_SHAPE(count);
    return 0;
}
