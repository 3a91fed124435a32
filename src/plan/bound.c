/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds how large an input's region can become, whichever tile is computed: the rules of
 * op_region.h without positions. A bound is never smaller than what those rules ask for;
 * test_plan.c checks the two against each other. */
#include "graph/geometry.h"
#include "plan/program.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void clip_to_shape(pl_region *bound, const pl_shape *shape)
{
    for (int i = 0; i < bound->rank; i++)
        bound->extent[i] = least(bound->extent[i], shape->dims[i]);
}

static pl_region bound_of_slice(const pl_node *node, const pl_region *out, const pl_shape *in)
{
    pl_slice slice = pl_slice_of(node->op->id, node->attrs, in);
    pl_region bound = *out;
    for (int i = 0; i < out->rank; i++) {
        int64_t step = slice.step[i] < 0 ? -slice.step[i] : slice.step[i];
        int64_t way;
        if (out->extent[i] == 0)
            bound.extent[i] = 0;
        else if (__builtin_mul_overflow(out->extent[i] - 1, step, &way) || way >= in->dims[i])
            bound.extent[i] = in->dims[i];
        else
            bound.extent[i] = way + 1;
    }
    return bound;
}

/* Within one repetition, the region asked for; otherwise the whole axis. */
static pl_region bound_of_tile(const pl_region *out, const pl_shape *in)
{
    pl_region bound = *out;
    for (int i = 0; i < out->rank; i++)
        bound.extent[i] = out->extent[i] > 1 ? in->dims[i] : out->extent[i];
    return bound;
}

/* The span of elements from the first to the last of a region does not depend on where it begins.
 * In the input's axes it takes (span - 2) / stride + 2 places at most; where that is more than one,
 * all of the axes within may be needed. Axes are not grouped as in the exact rule, so the bound is
 * larger than needed, except for leading axes that both shapes share. */
static pl_region bound_of_reshape(const pl_region *out, const pl_shape *to, const pl_shape *from)
{
    pl_region bound = {.rank = from->rank};
    int n_same = 0;
    while (n_same < to->rank && n_same < from->rank && to->dims[n_same] == from->dims[n_same]) {
        bound.extent[n_same] = out->extent[n_same];
        n_same++;
    }
    int64_t span = 1, stride = 1;
    for (int i = to->rank - 1; i >= n_same; i--) {
        span += (out->extent[i] - 1) * stride;
        stride *= to->dims[i];
    }
    int64_t inner = 1;
    for (int i = n_same; i < from->rank; i++)
        inner *= from->dims[i];
    bool all = false;
    for (int i = n_same; i < from->rank; i++) {
        inner /= from->dims[i] > 0 ? from->dims[i] : 1;
        int64_t places = span < 2 || inner == 0 ? 1 : (span - 2) / inner + 2;
        bound.extent[i] = all ? from->dims[i] : least(places, from->dims[i]);
        all = all || bound.extent[i] > 1;
    }
    return bound;
}

static bool is_empty_shape(const pl_shape *shape)
{
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] == 0)
            return true;
    return false;
}

pl_region pl_bound_of_input(const pl_node *node, const pl_shape *shapes, const pl_region *bound,
                            int i)
{
    const pl_shape *from = pl_node_input_shape(node, shapes, i);
    pl_region in = {.rank = from->rank};
    if (is_empty_shape(from) || pl_region_is_empty(bound))
        return in;
    switch (node->op->id) {
    case PL_OP_slice:
    case PL_OP_crop:
    case PL_OP_reverse:
        return bound_of_slice(node, bound, from);
    case PL_OP_reshape:
        return bound_of_reshape(bound, &shapes[node->number], from);
    case PL_OP_tile:
        return bound_of_tile(bound, from);
    case PL_OP_concat:
    case PL_OP_pad:
        in = *bound;
        clip_to_shape(&in, from);
        return in;
    default: { /* the position does not matter: ask at the origin */
        pl_region at_origin = *bound;
        for (int k = 0; k < bound->rank; k++)
            at_origin.begin[k] = 0;
        if (!node->op->region(node, shapes, &at_origin, i, &in))
            return (pl_region){.rank = from->rank};
        return in;
    }
    }
}
