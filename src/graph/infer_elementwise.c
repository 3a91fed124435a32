/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of ops where an output element depends on one element of each input; assignments,
 * too. */
#include <errno.h>

#include "graph/infer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

int pl_infer_elementwise(pl_infer *in, pl_error *reterr)
{
    pl_error inner;
    pl_error_init(&inner);
    in->shape = *pl_infer_shape(in, 0);
    for (int i = 1; i < in->n_inputs; i++)
        if (pl_shape_broadcast(&in->shape, pl_infer_shape(in, i), &in->shape, &inner) < 0)
            return pl_infer_fail(in, reterr, "%s", inner.message);
    return 0;
}

int pl_infer_same(pl_infer *in, pl_error *reterr)
{
    (void)reterr;
    in->shape = *pl_infer_shape(in, 0);
    return 0;
}

int pl_infer_cast(pl_infer *in, pl_error *reterr)
{
    if (!pl_op_takes_dtype(PL_OP_TAKES_UNTEXT, in->dtype))
        return pl_infer_fail(in, reterr, "to %s: it gives %s", pl_dtype_info_of(in->dtype)->name,
                             pl_op_takes_name(PL_OP_TAKES_UNTEXT));
    return pl_infer_same(in, reterr);
}

int pl_infer_where(pl_infer *in, pl_error *reterr)
{
    if (in->inputs[0]->dtype != PL_BOOL)
        return pl_infer_fail(in, reterr, "the condition is %s: it is bool",
                             pl_dtype_info_of(in->inputs[0]->dtype)->name);
    return pl_infer_elementwise(in, reterr);
}

/* A variable keeps its shape: nothing is broadcast. */
int pl_infer_assign(pl_infer *in, pl_error *reterr)
{
    pl_error inner;
    pl_error_init(&inner);
    const pl_node *variable = in->inputs[0];
    if (variable->op->id != PL_OP_variable)
        return pl_infer_fail(in, reterr, "'%.80s' is made by %s: only a variable is assigned to",
                             variable->name, variable->op->name);
    if (pl_shape_merge(&variable->shape, pl_infer_shape(in, 1), &in->shape, &inner) < 0)
        return pl_infer_fail(in, reterr, "%s", inner.message);
    return 0;
}
