/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the ops that readers are made of. The size that a file contains is known only once
 * it is read; ensure_shape can state it before. */
#include <inttypes.h>
#include <string.h>

#include "graph/infer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

static int want_scalar(const pl_infer *in, pl_error *reterr)
{
    const pl_shape *shape = pl_infer_shape(in, 0);
    if (shape->rank == 0)
        return 0;
    return pl_infer_fail(in, reterr, "shape %s: it takes a scalar, one at a time",
                         PL_SHAPE_TEXT(shape));
}

int pl_infer_decode(pl_infer *in, pl_error *reterr)
{
    int64_t channels = in->attrs[PL_ATTR_decode_channels].value.i;
    int r = want_scalar(in, reterr);
    if (r < 0)
        return r;
    if (channels != 0 && channels != 1 && channels != 3 && channels != 4)
        return pl_infer_fail(in, reterr, "'channels' is %" PRId64 ": it is 0, 1, 3 or 4", channels);
    if (in->dtype != PL_U8 && in->dtype != PL_U16 && in->dtype != PL_F32)
        return pl_infer_fail(in, reterr, "dtype %s: pixels are uint8, uint16 or float32",
                             pl_dtype_info_of(in->dtype)->name);
    in->shape = PL_SHAPE(PL_UNKNOWN, PL_UNKNOWN, channels == 0 ? PL_UNKNOWN : channels);
    return 0;
}

int pl_infer_decode_raw(pl_infer *in, pl_error *reterr)
{
    in->shape = *pl_infer_shape(in, 0);
    if (in->shape.rank == PL_RANK_MAX)
        return pl_infer_fail(in, reterr, "%s has %d axes already: there is no room for one more",
                             PL_SHAPE_TEXT(&in->shape), PL_RANK_MAX);
    if (!pl_op_takes_dtype(PL_OP_TAKES_UNTEXT, in->dtype))
        return pl_infer_fail(in, reterr, "dtype string: it gives %s",
                             pl_op_takes_name(PL_OP_TAKES_UNTEXT));
    in->shape.dims[in->shape.rank++] = PL_UNKNOWN;
    return 0;
}

int pl_infer_resize(pl_infer *in, pl_error *reterr)
{
    const pl_attr *size = &in->attrs[PL_ATTR_resize_size];
    const char *method = in->attrs[PL_ATTR_resize_method].value.text;
    bool nearest = strcmp(method, "nearest") == 0;
    if (!nearest && strcmp(method, "bilinear") != 0)
        return pl_infer_fail(in, reterr, "method '%.40s': it is 'bilinear' or 'nearest'", method);
    if (size->n != 2 || size->value.values[0] < 0 || size->value.values[1] < 0)
        return pl_infer_fail(in, reterr, "'size' is a height and a width, neither negative");
    in->shape = *pl_infer_shape(in, 0);
    if (in->shape.rank != 3 && in->shape.rank != 4)
        return pl_infer_fail(in, reterr,
                             "shape %s: it takes [height,width,channels], or [n,height,width,"
                             "channels]",
                             PL_SHAPE_TEXT(&in->shape));
    for (int i = 0; i < 2; i++) {
        int64_t *dim = &in->shape.dims[in->shape.rank - 3 + i];
        if (*dim == 0 && size->value.values[i] > 0)
            return pl_infer_fail(in, reterr, "shape %s: there are no pixels",
                                 PL_SHAPE_TEXT(pl_infer_shape(in, 0)));
        *dim = size->value.values[i];
    }
    return 0;
}

int pl_infer_split(pl_infer *in, pl_error *reterr)
{
    in->shape = PL_SHAPE(PL_UNKNOWN);
    return want_scalar(in, reterr);
}

int pl_infer_to_number(pl_infer *in, pl_error *reterr)
{
    in->shape = *pl_infer_shape(in, 0);
    if (!pl_op_takes_dtype(PL_OP_TAKES_NUMBERS, in->dtype))
        return pl_infer_fail(in, reterr, "dtype %s: it gives %s", pl_dtype_info_of(in->dtype)->name,
                             pl_op_takes_name(PL_OP_TAKES_NUMBERS));
    return 0;
}
