/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph lets through, a kernel computes: the tables of both say the same. */
#include "graph_fixture.h"

#include "kernels/elementwise/elementwise.h"
#include "kernels/reduce/reduce.h"
#include "tensor/dtype.h"

/* Storage is cast on the way, and strings are not computed with. */
static bool has_kernels(pl_dtype dtype)
{
    return dtype != PL_STRING && !pl_dtype_info_of(dtype)->is_storage;
}

static void check_dtype(const pl_op *op, pl_elementwise kernel, pl_dtype dtype)
{
    pl_dtype given = pl_elementwise_result(kernel, dtype);
    if (pl_op_takes_dtype(op->takes, dtype) != (given != PL_DTYPE_NONE))
        fail_msg("%s of %s: one takes it, the other does not", op->name,
                 pl_dtype_info_of(dtype)->name);
    if (given != PL_DTYPE_NONE)
        assert_int_equal(given, op->gives == PL_OP_GIVES_BOOL ? PL_BOOL : dtype);
}

static void every_elementwise_op_has_its_kernel(void **state)
{
    (void)state;
    int n_ops = 0;
    for (int id = 0; id < PL_N_OPS; id++) {
        const pl_op *op = pl_op_of((pl_op_id)id);
        if (op->op_class != PL_CLASS_ELEMENTWISE || op->id == PL_OP_cast)
            continue;
        pl_elementwise kernel = pl_elementwise_by_name(op->name);
        if (kernel == PL_ELEMENTWISE_COUNT)
            fail_msg("%s has no kernel", op->name);
        assert_int_equal(pl_elementwise_info_of(kernel)->n_operands, op->max_inputs);
        for (int dtype = PL_BOOL; dtype <= PL_STRING; dtype++)
            if (has_kernels((pl_dtype)dtype))
                check_dtype(op, kernel, (pl_dtype)dtype);
        n_ops++;
    }
    assert_true(n_ops > 50);
}

static void reductions_give_what_their_kernels_do(void **state)
{
    (void)state;
    static const struct {
        pl_op_id op;
        pl_reduce_op kernel;
    } pairs[] = {
        {PL_OP_sum, PL_REDUCE_SUM},           {PL_OP_mean, PL_REDUCE_MEAN},
        {PL_OP_prod, PL_REDUCE_PROD},         {PL_OP_max, PL_REDUCE_MAX},
        {PL_OP_min, PL_REDUCE_MIN},           {PL_OP_any, PL_REDUCE_ANY},
        {PL_OP_all, PL_REDUCE_ALL},           {PL_OP_argmax, PL_REDUCE_ARGMAX},
        {PL_OP_argmin, PL_REDUCE_ARGMIN},     {PL_OP_logsumexp, PL_REDUCE_LOGSUMEXP},
        {PL_OP_variance, PL_REDUCE_VARIANCE}, {PL_OP_cumsum, PL_REDUCE_SUM},
    };
    const pl_attr axis = pl_attr_int("axis", 0);
    for (size_t i = 0; i < PL_COUNT_OF(pairs); i++)
        for (int dtype = PL_BOOL; dtype <= PL_STRING; dtype++) {
            pl_node *x = place(NULL, (pl_dtype)dtype, PL_SHAPE(3)), *node = NULL;
            const pl_op *op = pl_op_of(pairs[i].op);
            int n_attrs = strcmp(op->attrs[0].name, "axis") == 0;
            int r = pl_graph_add(graph, op->name, NULL, &x, 1, &axis, n_attrs, &node, NULL);
            if (has_kernels((pl_dtype)dtype))
                assert_int_equal(r == 0 ? node->dtype : PL_DTYPE_NONE,
                                 pl_reduce_result((pl_reduce){pairs[i].kernel, (pl_dtype)dtype}));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(every_elementwise_op_has_its_kernel),
                                       CASE(reductions_give_what_their_kernels_do)};
    return cmocka_run_group_tests_name("graph_kernels", tests, NULL, NULL);
}
