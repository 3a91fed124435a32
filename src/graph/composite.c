/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that are made of other ops, so that planning and running a graph needs fewer ops.
 * einsum has its own file. */
#include "graph/composite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/geometry.h"
#include "graph/node.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

const char *pl_inner_name(const char *base, const char *op, char text[PL_INNER_NAME_BYTES])
{
    snprintf(text, PL_INNER_NAME_BYTES, "%.200s/%s", base, op);
    return text;
}

int pl_graph_reshape_keep(pl_graph *graph, const char *name, pl_node *x, const pl_shape *shape,
                          const int64_t *keep, pl_node **ret_node, pl_error *reterr)
{
    const pl_attr attrs[] = {pl_attr_shape("shape", shape),
                             pl_attr_ints("keep", keep, shape->rank)};
    return pl_graph_add(graph, "reshape", name, &x, 1, attrs, PL_COUNT_OF(attrs), ret_node, reterr);
}

/* ---- axes of 1 ---- */

/* Returns the axes as a mask; -EINVAL if one is out of range or named twice. */
static int mask_of(const char *op, const char *name, const pl_node *x, const int64_t *axes,
                   int n_axes, int rank, uint32_t *ret_mask, pl_error *reterr)
{
    uint32_t mask = 0;
    for (int i = 0; i < n_axes; i++) {
        int axis = pl_axis_of(axes[i], rank);
        if (rank == 0)
            return pl_error_set(reterr, -EINVAL,
                                "%s '%.120s': axis %" PRId64 " of a scalar ('%.120s'), which has "
                                "none",
                                op, name, axes[i], x->name);
        if (axis < 0 || mask & 1u << axis)
            return pl_error_set(reterr, -EINVAL,
                                "%s '%.120s': axis %" PRId64 " of %s ('%.120s'): each is between "
                                "%d and %d, and named once",
                                op, name, axes[i], PL_SHAPE_TEXT(&x->shape), x->name, -rank,
                                rank - 1);
        mask |= 1u << axis;
    }
    *ret_mask = mask;
    return 0;
}

int pl_graph_expand_dims(pl_graph *graph, const char *name, pl_node *x, const int64_t *axes,
                         int n_axes, pl_node **ret_node, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(x, reterr);
    PL_NOT_NULL_IF(n_axes > 0, axes, reterr);
    PL_NOT_NULL(ret_node, reterr);
    uint32_t mask;
    name = name ? name : "expand_dims";
    pl_shape shape = {.rank = x->shape.rank + n_axes};
    if (n_axes < 0 || n_axes > PL_RANK_MAX - x->shape.rank)
        return pl_error_set(reterr, -EINVAL,
                            "expand_dims '%.120s': %s ('%.120s') and %d axes more: at most %d are "
                            "possible",
                            name, PL_SHAPE_TEXT(&x->shape), x->name, n_axes, PL_RANK_MAX);
    int r = mask_of("expand_dims", name, x, axes, n_axes, shape.rank, &mask, reterr);
    if (r < 0)
        return r;
    int64_t keep[PL_RANK_MAX];
    for (int i = 0, from = 0; i < shape.rank; i++) {
        bool is_new = mask & 1u << i;
        keep[i] = is_new ? -1 : from++;
        shape.dims[i] = is_new ? 1 : PL_UNKNOWN;
    }
    return pl_graph_reshape_keep(graph, name, x, &shape, keep, ret_node, reterr);
}

int pl_graph_squeeze(pl_graph *graph, const char *name, pl_node *x, const int64_t *axes, int n_axes,
                     pl_node **ret_node, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(x, reterr);
    PL_NOT_NULL(ret_node, reterr);
    uint32_t mask = 0;
    name = name ? name : "squeeze";
    int r = axes ? mask_of("squeeze", name, x, axes, n_axes, x->shape.rank, &mask, reterr) : 0;
    if (r < 0)
        return r;
    pl_shape shape = {0};
    int64_t keep[PL_RANK_MAX];
    for (int i = 0; i < x->shape.rank; i++) {
        int64_t dim = x->shape.dims[i];
        if (mask & 1u << i && dim != 1 && dim != PL_UNKNOWN)
            return pl_error_set(reterr, -EINVAL,
                                "squeeze '%.120s': %s ('%.120s'): axis %d is %" PRId64 ", not 1",
                                name, PL_SHAPE_TEXT(&x->shape), x->name, i, dim);
        if (mask & 1u << i || (!axes && dim == 1))
            continue;
        keep[shape.rank] = i;
        shape.dims[shape.rank++] = PL_UNKNOWN;
    }
    return pl_graph_reshape_keep(graph, name, x, &shape, keep, ret_node, reterr);
}

/* ---- stack and split ---- */

static int check_stack(const char *name, pl_node *const *inputs, int n_inputs, pl_error *reterr)
{
    pl_error inner;
    pl_error_init(&inner);
    if (n_inputs < 1 || n_inputs > PL_INPUTS_MAX)
        return pl_error_set(reterr, -EINVAL, "stack '%.120s': %d inputs: between 1 and %d", name,
                            n_inputs, PL_INPUTS_MAX);
    if (inputs[0]->shape.rank == PL_RANK_MAX)
        return pl_error_set(reterr, -EINVAL, "stack '%.120s': %s ('%.120s') has %d axes already",
                            name, PL_SHAPE_TEXT(&inputs[0]->shape), inputs[0]->name, PL_RANK_MAX);
    pl_shape shape = inputs[0]->shape;
    for (int i = 1; i < n_inputs; i++) {
        if (inputs[i]->dtype != inputs[0]->dtype)
            return pl_error_set(reterr, -EINVAL,
                                "stack '%.120s': %s and %s: cast one of them ('%.80s' and '%.80s')",
                                name, pl_dtype_info_of(inputs[0]->dtype)->name,
                                pl_dtype_info_of(inputs[i]->dtype)->name, inputs[0]->name,
                                inputs[i]->name);
        if (pl_shape_merge(&shape, &inputs[i]->shape, &shape, &inner) < 0)
            return pl_error_set(reterr, -EINVAL, "stack '%.120s': %.200s ('%.80s' and '%.80s')",
                                name, inner.message, inputs[0]->name, inputs[i]->name);
    }
    return 0;
}

static int stack_widened(pl_graph *graph, const char *name, pl_node *const *inputs, int n_inputs,
                         int64_t axis, pl_node **widened, pl_node **ret_node, pl_error *reterr)
{
    char text[PL_INNER_NAME_BYTES];
    pl_inner_name(name, "expand_dims", text);
    for (int i = 0; i < n_inputs; i++) {
        int r = pl_graph_expand_dims(graph, text, inputs[i], &axis, 1, &widened[i], reterr);
        if (r < 0)
            return r;
    }
    const pl_attr attr = pl_attr_int("axis", axis);
    return pl_graph_add(graph, "concat", name, widened, n_inputs, &attr, 1, ret_node, reterr);
}

int pl_graph_stack(pl_graph *graph, const char *name, pl_node *const *inputs, int n_inputs,
                   int axis, pl_node **ret_node, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULLS(inputs, n_inputs, reterr);
    PL_NOT_NULL(ret_node, reterr);
    uint32_t mask;
    int64_t at = axis;
    name = name ? name : "stack";
    int r = check_stack(name, inputs, n_inputs, reterr);
    if (r == 0)
        r = mask_of("stack", name, inputs[0], &at, 1, inputs[0]->shape.rank + 1, &mask, reterr);
    if (r < 0)
        return r;
    pl_node **widened = malloc((size_t)n_inputs * sizeof *widened);
    if (!widened)
        return pl_error_set(reterr, -ENOMEM, "stack '%.120s': no memory for %d inputs", name,
                            n_inputs);
    r = stack_widened(graph, name, inputs, n_inputs, at, widened, ret_node, reterr);
    free(widened);
    return r;
}

static int check_split(const char *name, const pl_node *x, int axis, const int64_t *sizes,
                       int n_parts, pl_error *reterr)
{
    int64_t dim = x->shape.dims[axis], sum = 0;
    if (n_parts < 1 || dim == PL_UNKNOWN)
        return pl_error_set(reterr, -EINVAL,
                            "split '%.120s': %s ('%.120s') along axis %d into %d parts: there is "
                            "at least one, and the dimension is known",
                            name, PL_SHAPE_TEXT(&x->shape), x->name, axis, n_parts);
    if (!sizes && dim % n_parts != 0)
        return pl_error_set(reterr, -EINVAL,
                            "split '%.120s': %s ('%.120s'): axis %d is %" PRId64
                            ", which is not a multiple of %d",
                            name, PL_SHAPE_TEXT(&x->shape), x->name, axis, dim, n_parts);
    for (int i = 0; sizes && i < n_parts; i++)
        if (sizes[i] < 0 || __builtin_add_overflow(sum, sizes[i], &sum) || sum > dim)
            sum = INT64_MAX;
    if (sizes && sum != dim)
        return pl_error_set(reterr, -EINVAL,
                            "split '%.120s': %s ('%.120s'): the sizes are not together the "
                            "%" PRId64 " of axis %d",
                            name, PL_SHAPE_TEXT(&x->shape), x->name, dim, axis);
    return 0;
}

int pl_graph_split(pl_graph *graph, const char *name, pl_node *x, int axis, const int64_t *sizes,
                   int n_parts, pl_node **ret_nodes, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(x, reterr);
    PL_NOT_NULL(ret_nodes, reterr);
    uint32_t mask;
    int64_t at = axis, start[PL_RANK_MAX] = {0}, size[PL_RANK_MAX];
    name = name ? name : "split";
    int r = mask_of("split", name, x, &at, 1, x->shape.rank, &mask, reterr);
    if (r < 0)
        return r;
    axis = pl_axis_of(at, x->shape.rank);
    r = check_split(name, x, axis, sizes, n_parts, reterr);
    for (int i = 0; i < x->shape.rank; i++)
        size[i] = -1;
    for (int i = 0; r == 0 && i < n_parts; i++) {
        size[axis] = sizes ? sizes[i] : x->shape.dims[axis] / n_parts;
        const pl_attr attrs[] = {pl_attr_ints("start", start, x->shape.rank),
                                 pl_attr_ints("size", size, x->shape.rank)};
        r = pl_graph_add(graph, "crop", name, &x, 1, attrs, PL_COUNT_OF(attrs), &ret_nodes[i],
                         reterr);
        start[axis] += size[axis];
    }
    return r;
}

int pl_graph_squared_difference(pl_graph *graph, const char *name, pl_node *a, pl_node *b,
                                pl_node **ret_node, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(a, reterr);
    PL_NOT_NULL(b, reterr);
    PL_NOT_NULL(ret_node, reterr);
    char text[PL_INNER_NAME_BYTES];
    pl_node *difference;
    name = name ? name : "squared_difference";
    int r =
        pl_graph_binary(graph, "sub", pl_inner_name(name, "sub", text), a, b, &difference, reterr);
    if (r < 0)
        return r;
    return pl_graph_unary(graph, "square", name, difference, ret_node, reterr);
}
