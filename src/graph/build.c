/* SPDX-License-Identifier: Apache-2.0 */
/* pl_graph_add() with typed arguments, for code written by hand. */
#include "base/base.h"
#include "plimsoll/graph.h"

static int add_tensor(pl_graph *graph, const char *op, const char *name, pl_dtype dtype,
                      const pl_shape *shape, pl_node **ret_node, pl_error *reterr)
{
    const pl_attr attrs[] = {pl_attr_dtype("dtype", dtype), pl_attr_shape("shape", shape)};
    return pl_graph_add(graph, op, name, NULL, 0, attrs, PL_COUNT_OF(attrs), ret_node, reterr);
}

int pl_graph_placeholder(pl_graph *graph, const char *name, pl_dtype dtype, const pl_shape *shape,
                         pl_node **ret_node, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(shape, reterr);
    PL_NOT_NULL(ret_node, reterr);
    return add_tensor(graph, "placeholder", name, dtype, shape, ret_node, reterr);
}

int pl_graph_variable(pl_graph *graph, const char *name, pl_dtype dtype, const pl_shape *shape,
                      pl_node **ret_node, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(shape, reterr);
    PL_NOT_NULL(ret_node, reterr);
    return add_tensor(graph, "variable", name, dtype, shape, ret_node, reterr);
}

int pl_graph_constant(pl_graph *graph, const char *name, pl_dtype dtype, const pl_shape *shape,
                      pl_node **ret_node, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(shape, reterr);
    PL_NOT_NULL(ret_node, reterr);
    return add_tensor(graph, "constant", name, dtype, shape, ret_node, reterr);
}

int pl_graph_fill(pl_graph *graph, const char *name, pl_dtype dtype, const pl_shape *shape,
                  double value, pl_node **ret_node, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(shape, reterr);
    PL_NOT_NULL(ret_node, reterr);
    const pl_attr attrs[] = {pl_attr_dtype("dtype", dtype), pl_attr_shape("shape", shape),
                             pl_attr_float("value", value)};
    return pl_graph_add(graph, "fill", name, NULL, 0, attrs, PL_COUNT_OF(attrs), ret_node, reterr);
}

int pl_graph_unary(pl_graph *graph, const char *op, const char *name, pl_node *x,
                   pl_node **ret_node, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(op, reterr);
    PL_NOT_NULL(x, reterr);
    PL_NOT_NULL(ret_node, reterr);
    return pl_graph_add(graph, op, name, &x, 1, NULL, 0, ret_node, reterr);
}

int pl_graph_binary(pl_graph *graph, const char *op, const char *name, pl_node *a, pl_node *b,
                    pl_node **ret_node, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(op, reterr);
    PL_NOT_NULL(a, reterr);
    PL_NOT_NULL(b, reterr);
    PL_NOT_NULL(ret_node, reterr);
    return pl_graph_add(graph, op, name, (pl_node *[]){a, b}, 2, NULL, 0, ret_node, reterr);
}

int pl_graph_matmul(pl_graph *graph, const char *name, pl_node *a, pl_node *b, bool transpose_a,
                    bool transpose_b, pl_node **ret_node, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(a, reterr);
    PL_NOT_NULL(b, reterr);
    PL_NOT_NULL(ret_node, reterr);
    const pl_attr attrs[] = {pl_attr_bool("transpose_a", transpose_a),
                             pl_attr_bool("transpose_b", transpose_b)};
    return pl_graph_add(graph, "matmul", name, (pl_node *[]){a, b}, 2, attrs, PL_COUNT_OF(attrs),
                        ret_node, reterr);
}

int pl_graph_cast(pl_graph *graph, const char *name, pl_node *x, pl_dtype dtype, pl_node **ret_node,
                  pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(x, reterr);
    PL_NOT_NULL(ret_node, reterr);
    const pl_attr attr = pl_attr_dtype("dtype", dtype);
    return pl_graph_add(graph, "cast", name, &x, 1, &attr, 1, ret_node, reterr);
}

int pl_graph_reshape(pl_graph *graph, const char *name, pl_node *x, const pl_shape *shape,
                     pl_node **ret_node, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(x, reterr);
    PL_NOT_NULL(shape, reterr);
    PL_NOT_NULL(ret_node, reterr);
    const pl_attr attr = pl_attr_shape("shape", shape);
    return pl_graph_add(graph, "reshape", name, &x, 1, &attr, 1, ret_node, reterr);
}

int pl_graph_reduce(pl_graph *graph, const char *op, const char *name, pl_node *x,
                    const int64_t *axes, int n_axes, bool keepdims, pl_node **ret_node,
                    pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(op, reterr);
    PL_NOT_NULL(x, reterr);
    PL_NOT_NULL(ret_node, reterr);
    const pl_attr attrs[] = {pl_attr_bool("keepdims", keepdims),
                             pl_attr_ints("axes", axes, n_axes)};
    return pl_graph_add(graph, op, name, &x, 1, attrs, axes ? 2 : 1, ret_node, reterr);
}
