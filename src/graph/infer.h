/* SPDX-License-Identifier: Apache-2.0 */
/* Inference: finds the dtype and shape of a node's output, or why it is invalid.
 *
 * Each function below is one column of ops.def. Its inputs' number and dtypes are already checked,
 * and attributes are in the order of their set. It sets in->shape (and in->dtype if the table does
 * not determine it). Unknown dimensions stay unknown, and are checked again when pl_graph_infer()
 * knows more. Pure; never allocates. */
#ifndef PL_GRAPH_INFER_H
#define PL_GRAPH_INFER_H

#include "graph/node.h"

struct pl_infer {
    const pl_op *op;
    const char *name; /* that the node has, or would have */
    pl_node *const *inputs;
    int n_inputs;
    const pl_attr *attrs;   /* by place: PL_ATTR_<set>_<name> */
    const pl_shape *shapes; /* by number of the node; NULL: those the inputs were made with */
    pl_dtype dtype;         /* the results */
    pl_shape shape;
};

/* Runs the op's function, with the checks that all ops share: dtypes of inputs before it, the
 * result's size after it. Fails with -EINVAL, or -EOVERFLOW for more bytes than can be counted. */
PL_MUST_CHECK int pl_infer_run(pl_infer *in, pl_error *reterr);

/* pl_infer_run() for an input of unknown rank: checks dtypes, and uses a shape that attributes
 * determine. */
PL_MUST_CHECK int pl_infer_open(pl_infer *in, pl_error *reterr);

/* Refuses a number of inputs that the op does not take. */
PL_MUST_CHECK int pl_infer_count(const pl_op *op, const char *name, int n_inputs, pl_error *reterr);

/* pl_graph_infer() where shapes may be given for any nodes, not just placeholders: such a node must
 * not be `needed`, and has the shape given. */
PL_MUST_CHECK int pl_graph_infer_given(const pl_graph *graph, const pl_feed_shape *given,
                                       int n_given, const bool *needed, pl_shape *shapes,
                                       pl_error *reterr);

static inline const pl_shape *pl_infer_shape(const pl_infer *in, int i)
{
    const pl_node *input = in->inputs[i];
    return in->shapes ? &in->shapes[input->number] : &input->shape;
}

/* Fails with -EINVAL, putting "op 'name': " before the message and the inputs, " ('x' and 'y')",
 * after it. */
PL_MUST_CHECK int pl_infer_fail(const pl_infer *in, pl_error *reterr, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Converts an attribute's axis of a shape with that rank to an axis from 0. */
PL_MUST_CHECK int pl_infer_axis(const pl_infer *in, int64_t axis, const pl_shape *shape,
                                int *ret_axis, pl_error *reterr);

/* Refuses axes that are out of range or named twice. */
PL_MUST_CHECK int pl_infer_axes(const pl_infer *in, const pl_attr *axes, const pl_shape *shape,
                                pl_error *reterr);

/* Refuses a list that does not have one number for each axis of the input. */
PL_MUST_CHECK int pl_infer_one_per_axis(const pl_infer *in, const pl_attr *list, pl_error *reterr);

pl_shape pl_shape_of_attr(const pl_attr *attr);

/* infer_source.c */
int pl_infer_tensor(pl_infer *in, pl_error *reterr);
int pl_infer_known(pl_infer *in, pl_error *reterr);
int pl_infer_fill(pl_infer *in, pl_error *reterr);
int pl_infer_range(pl_infer *in, pl_error *reterr);
int pl_infer_uniform(pl_infer *in, pl_error *reterr);
int pl_infer_normal(pl_infer *in, pl_error *reterr);

/* infer_elementwise.c */
int pl_infer_elementwise(pl_infer *in, pl_error *reterr);
int pl_infer_cast(pl_infer *in, pl_error *reterr);
int pl_infer_where(pl_infer *in, pl_error *reterr);
int pl_infer_same(pl_infer *in, pl_error *reterr);
int pl_infer_assign(pl_infer *in, pl_error *reterr);

/* infer_view.c */
int pl_infer_ensure(pl_infer *in, pl_error *reterr);
int pl_infer_reshape(pl_infer *in, pl_error *reterr);
int pl_infer_transpose(pl_infer *in, pl_error *reterr);
int pl_infer_broadcast(pl_infer *in, pl_error *reterr);
int pl_infer_slice(pl_infer *in, pl_error *reterr);
int pl_infer_crop(pl_infer *in, pl_error *reterr);
int pl_infer_reverse(pl_infer *in, pl_error *reterr);

/* infer_move.c */
int pl_infer_concat(pl_infer *in, pl_error *reterr);
int pl_infer_pad(pl_infer *in, pl_error *reterr);
int pl_infer_tile(pl_infer *in, pl_error *reterr);
int pl_infer_gather(pl_infer *in, pl_error *reterr);
int pl_infer_one_hot(pl_infer *in, pl_error *reterr);

/* infer_reduce.c */
int pl_infer_reduce(pl_infer *in, pl_error *reterr);
int pl_infer_arg(pl_infer *in, pl_error *reterr);
int pl_infer_row(pl_infer *in, pl_error *reterr);
int pl_infer_top_k(pl_infer *in, pl_error *reterr);
int pl_infer_matmul(pl_infer *in, pl_error *reterr);

/* infer_data.c */
int pl_infer_decode(pl_infer *in, pl_error *reterr);
int pl_infer_decode_raw(pl_infer *in, pl_error *reterr);
int pl_infer_resize(pl_infer *in, pl_error *reterr);
int pl_infer_split(pl_infer *in, pl_error *reterr);
int pl_infer_to_number(pl_infer *in, pl_error *reterr);

#endif
