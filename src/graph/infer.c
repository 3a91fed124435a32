/* SPDX-License-Identifier: Apache-2.0 */
/* See infer.h: the parts that all ops share, and inference over a whole graph. */
#include "graph/infer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/geometry.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* " ('x' and 'y')"; of many inputs, names only the first two. */
static void append_inputs(const pl_infer *in, char *text, size_t bytes)
{
    size_t used = strlen(text);
    if (in->n_inputs == 0 || used >= bytes)
        return;
    if (in->n_inputs == 1)
        snprintf(text + used, bytes - used, " ('%.80s')", in->inputs[0]->name);
    else
        snprintf(text + used, bytes - used, " ('%.80s'%s '%.80s'%s", in->inputs[0]->name,
                 in->n_inputs == 2 ? " and" : ",", in->inputs[1]->name,
                 in->n_inputs == 2 ? ")" : " ...)");
}

int pl_infer_fail(const pl_infer *in, pl_error *reterr, const char *format, ...)
{
    char text[PL_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    append_inputs(in, text, sizeof text);
    pl_error_set(reterr, -EINVAL, "%s", text);
    pl_error_in_op(reterr, in->op->name, in->name);
    return -EINVAL;
}

int pl_infer_axis(const pl_infer *in, int64_t axis, const pl_shape *shape, int *ret_axis,
                  pl_error *reterr)
{
    int found = pl_axis_of(axis, shape->rank);
    if (found < 0 && shape->rank == 0)
        return pl_infer_fail(in, reterr, "axis %" PRId64 " of a scalar, which has none", axis);
    if (found < 0)
        return pl_infer_fail(in, reterr, "axis %" PRId64 " of shape %s: its axes are %d to %d",
                             axis, PL_SHAPE_TEXT(shape), -shape->rank, shape->rank - 1);
    *ret_axis = found;
    return 0;
}

int pl_infer_axes(const pl_infer *in, const pl_attr *axes, const pl_shape *shape, pl_error *reterr)
{
    uint32_t seen = 0;
    for (int i = 0; i < axes->n; i++) {
        int axis = 0; /* gcc 14 does not see that it is set, without optimisation */
        int r = pl_infer_axis(in, axes->value.values[i], shape, &axis, reterr);
        if (r < 0)
            return r;
        if (seen & 1u << axis)
            return pl_infer_fail(in, reterr, "axis %d is named twice", axis);
        seen |= 1u << axis;
    }
    return 0;
}

int pl_infer_one_per_axis(const pl_infer *in, const pl_attr *list, pl_error *reterr)
{
    const pl_shape *shape = pl_infer_shape(in, 0);
    if (list->n == shape->rank)
        return 0;
    return pl_infer_fail(in, reterr, "'%s' has %d numbers for shape %s: one for each axis",
                         list->name, list->n, PL_SHAPE_TEXT(shape));
}

pl_shape pl_shape_of_attr(const pl_attr *attr)
{
    pl_shape shape = {.rank = attr->n};
    for (int i = 0; i < attr->n; i++)
        shape.dims[i] = attr->value.values[i];
    return shape;
}

int pl_infer_count(const pl_op *op, const char *name, int n_inputs, pl_error *reterr)
{
    if (n_inputs >= op->min_inputs && n_inputs <= op->max_inputs)
        return 0;
    bool few = n_inputs < op->min_inputs, exactly = op->min_inputs == op->max_inputs;
    return pl_error_set(reterr, -EINVAL, "%s '%.120s': inputs: %d given, it takes %s%d", op->name,
                        name, n_inputs,
                        exactly ? ""
                        : few   ? "at least "
                                : "at most ",
                        few ? op->min_inputs : op->max_inputs);
}

/* ---- dtypes ---- */

static const char *dtype_name(pl_dtype dtype)
{
    return pl_dtype_info_of(dtype)->name;
}

/* The inputs that must have one dtype, as a range: a condition or indices have their own. */
static void alike_inputs(const pl_infer *in, int *ret_begin, int *ret_end)
{
    *ret_begin = in->op->id == PL_OP_where;
    *ret_end = in->op->id == PL_OP_gather ? 1 : in->n_inputs;
}

static int check_dtypes(const pl_infer *in, pl_error *reterr)
{
    int begin, end;
    alike_inputs(in, &begin, &end);
    for (int i = begin; i < end; i++) {
        pl_dtype first = in->inputs[begin]->dtype, own = in->inputs[i]->dtype;
        if (own != first)
            return pl_infer_fail(in, reterr, "%s and %s: cast one of them", dtype_name(first),
                                 dtype_name(own));
        if (!pl_op_takes_dtype(in->op->takes, own))
            return pl_infer_fail(in, reterr, "%s: it takes %s: cast it", dtype_name(own),
                                 pl_op_takes_name(in->op->takes));
    }
    return 0;
}

/* Like NumPy, sums use the widest integer of the same kind; true is 1. */
static pl_dtype sum_dtype(pl_dtype dtype)
{
    switch (pl_dtype_info_of(dtype)->kind) {
    case PL_KIND_BOOL:
    case PL_KIND_SIGNED:
        return PL_I64;
    case PL_KIND_UNSIGNED:
        return PL_U64;
    default:
        return dtype;
    }
}

static pl_dtype result_dtype(const pl_infer *in)
{
    pl_dtype first = in->n_inputs > 0 ? in->inputs[0]->dtype : PL_F32;
    switch (in->op->gives) {
    case PL_OP_GIVES_SAME:
        return first;
    case PL_OP_GIVES_RESIZED:
        return strcmp(in->attrs[PL_ATTR_resize_method].value.text, "nearest") == 0 ? first : PL_F32;
    case PL_OP_GIVES_SECOND:
        return in->inputs[1]->dtype;
    case PL_OP_GIVES_BOOL:
        return PL_BOOL;
    case PL_OP_GIVES_INDEX:
        return PL_I64;
    case PL_OP_GIVES_SUM:
        return sum_dtype(first);
    case PL_OP_GIVES_MEAN:
        return pl_dtype_info_of(first)->kind == PL_KIND_FLOAT ? first : PL_F64;
    case PL_OP_GIVES_ATTR: /* the first of its set */
        return in->attrs[0].type == PL_ATTR_DTYPE ? in->attrs[0].value.dtype : first;
    }
    return PL_DTYPE_NONE;
}

/* ---- a node ---- */

static int check_size(const pl_infer *in, pl_error *reterr)
{
    int64_t bytes;
    pl_error inner;
    pl_error_init(&inner);
    if (!pl_shape_is_known(&in->shape))
        return 0;
    int r = pl_shape_bytes(&in->shape, pl_dtype_info_of(in->dtype)->item_bytes, &bytes, &inner);
    if (r == 0)
        return 0;
    (void)!pl_infer_fail(in, reterr, "%s", inner.message);
    if (reterr)
        reterr->code = r;
    return r;
}

int pl_infer_run(pl_infer *in, pl_error *reterr)
{
    int r = check_dtypes(in, reterr);
    if (r < 0)
        return r;
    in->dtype = result_dtype(in);
    r = in->op->infer(in, reterr);
    return r < 0 ? r : check_size(in, reterr);
}

/* Returns the shape of a result that depends only on attributes. */
static pl_shape shape_by_attrs(const pl_infer *in)
{
    if (in->op->id == PL_OP_ensure_shape)
        return pl_shape_of_attr(&in->attrs[PL_ATTR_ensure_shape]);
    if (in->op->id == PL_OP_reshape)
        return pl_shape_of_attr(&in->attrs[PL_ATTR_reshape_shape]);
    if (in->op->infer == pl_infer_reduce && in->attrs[PL_ATTR_reduce_axes].type == PL_ATTR_NONE &&
        !in->attrs[PL_ATTR_reduce_keepdims].value.i)
        return (pl_shape){.rank = 0};
    return (pl_shape){.rank = PL_RANK_UNKNOWN};
}

int pl_infer_open(pl_infer *in, pl_error *reterr)
{
    int r = check_dtypes(in, reterr);
    if (r < 0)
        return r;
    in->dtype = result_dtype(in);
    in->shape = shape_by_attrs(in);
    return in->shape.rank == PL_RANK_UNKNOWN ? 0 : check_size(in, reterr);
}

/* ---- a graph ---- */

void pl_graph_mark_needed(const pl_graph *graph, pl_node *const *fetches, int n_fetches,
                          bool *needed)
{
    PL_NULL_DOES_NOTHING(graph);
    if (n_fetches > 0 && fetches == NULL)
        return;
    PL_NULL_DOES_NOTHING(needed);
    int n_nodes = pl_graph_n_nodes(graph);
    memset(needed, 0, (size_t)n_nodes * sizeof *needed);
    for (int i = 0; i < n_fetches; i++)
        needed[fetches[i]->number] = true;
    for (int number = n_nodes - 1; number >= 0; number--) {
        const pl_node *node = pl_graph_node(graph, number);
        for (int i = 0; needed[number] && i < node->n_inputs; i++)
            needed[node->inputs[i]->number] = true;
    }
}

static int feed(const pl_graph *graph, const pl_feed_shape *fed, bool any_node, pl_shape *shapes,
                pl_error *reterr)
{
    pl_error inner;
    pl_error_init(&inner);
    const pl_node *node = fed->placeholder;
    if (node->graph != graph)
        return pl_error_set(reterr, -EINVAL, "feed of '%.120s': it belongs to another graph",
                            node->name);
    if (node->op->id != PL_OP_placeholder && !any_node)
        return pl_error_set(reterr, -EINVAL, "feed of '%.120s': its op is %s, not placeholder",
                            node->name, node->op->name);
    if (pl_shape_merge(&node->shape, &fed->shape, &shapes[node->number], &inner) < 0)
        return pl_error_set(reterr, -EINVAL, "feed of '%.120s': it takes %s: %.250s", node->name,
                            PL_SHAPE_TEXT(&node->shape), inner.message);
    return 0;
}

static int infer_again(const pl_node *node, pl_shape *shapes, pl_error *reterr)
{
    pl_infer in = {.op = node->op,
                   .name = node->name,
                   .inputs = node->inputs,
                   .n_inputs = node->n_inputs,
                   .attrs = node->attrs,
                   .shapes = shapes,
                   .dtype = node->dtype};
    int r = node->op->infer(&in, reterr);
    if (r == 0)
        r = check_size(&in, reterr);
    if (r == 0)
        shapes[node->number] = in.shape;
    return r;
}

/* Returns whether all inputs have the shapes that they were made with; then the node has its own as
 * well. */
static bool is_as_made(const pl_node *node, const pl_shape *shapes)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (!pl_shape_equal(&shapes[node->inputs[i]->number], &node->inputs[i]->shape))
            return false;
    return true;
}

static int infer_all(const pl_graph *graph, const pl_feed_shape *feeds, int n_feeds, bool any_node,
                     const bool *needed, pl_shape *shapes, pl_error *reterr)
{
    int n_nodes = pl_graph_n_nodes(graph);
    for (int number = 0; number < n_nodes; number++)
        shapes[number] = pl_graph_node(graph, number)->shape;
    for (int i = 0; i < n_feeds; i++) {
        int r = feed(graph, &feeds[i], any_node, shapes, reterr);
        if (r < 0)
            return r;
    }
    for (int number = 0; number < n_nodes; number++) {
        const pl_node *node = pl_graph_node(graph, number);
        if ((needed && !needed[number]) || is_as_made(node, shapes))
            continue; /* a source as well: its shape is given */
        int r = infer_again(node, shapes, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

int pl_graph_infer(const pl_graph *graph, const pl_feed_shape *feeds, int n_feeds,
                   const bool *needed, pl_shape *shapes, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL_IF(n_feeds > 0, feeds, reterr);
    for (int i = 0; i < n_feeds; i++)
        PL_NOT_NULL(feeds[i].placeholder, reterr);
    PL_NOT_NULL(shapes, reterr);
    return infer_all(graph, feeds, n_feeds, false, needed, shapes, reterr);
}

int pl_graph_infer_given(const pl_graph *graph, const pl_feed_shape *given, int n_given,
                         const bool *needed, pl_shape *shapes, pl_error *reterr)
{
    return infer_all(graph, given, n_given, true, needed, shapes, reterr);
}
