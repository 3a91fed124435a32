/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices that are steps of their own: matmul_plan.h says how each is computed.
 *   operand  a value whose matrices lie one after the other, as they are or transposed. What is
 *            between it and the product only swaps their axes or says another shape
 *   batch    the products of one step; operands repeat along axes where their stride is 0
 *   large    worth a step of its own kind; the others are computed as tiles (PL_INSTR_MATMUL)
 *
 * Pure, as all of the planner. */
#ifndef PL_PLAN_PRODUCT_H
#define PL_PLAN_PRODUCT_H

#include "plan/matmul_plan.h"
#include "plan/plan.h"

typedef struct pl_operand {
    int value;                    /* of the plan */
    int64_t strides[PL_RANK_MAX]; /* bytes from one matrix to the next, along the batch's axes */
} pl_operand;

struct pl_product {
    pl_matmul_question question; /* one product: dtype, sizes, how operands are stored */
    pl_operand a, b;
    int32_t rank; /* of the batch */
    int64_t dims[PL_RANK_MAX];
    int64_t n_products;
    bool as_batch;       /* all in memory, by pl_matmul_batch_run(); else one after the other */
    pl_matmul_plan plan; /* the answer for one; of a batch, its workspace and flops */
};

/* The node that a product's input is read from: the input itself, or what it is a view of. Before
 * values are chosen (`stored` NULL) that is the one which should become a value. */
typedef struct pl_product_base {
    const pl_node *node;
    const pl_node *shaped; /* it lies in this one's shape */
    bool swapped;          /* and is used with the last two axes the other way */
} pl_product_base;

pl_product_base pl_product_base_of(const pl_plan *plan, const bool *stored, const pl_node *input);

bool pl_product_is_large(const pl_node *node, const pl_shape *shapes);

/* The product of a step whose values are chosen; NULL in *ret_product if it is computed as tiles.
 * -ENOMEM. */
PL_MUST_CHECK int pl_product_new(const pl_plan *plan, const bool *stored, const pl_node *node,
                                 struct pl_product **ret_product);

/* Is the step done as a product, where its values are now? Sets its kind. */
bool pl_step_is_product(const pl_plan *plan, pl_step *step);

/* Plans it within `room`. *ret_bytes is what scratch and BLAS claim. PL_EBUDGET, without a message,
 * if that cannot be, or `must_pay` and much more would be much faster; -EOVERFLOW if no room would
 * do. */
PL_MUST_CHECK int pl_step_plan_product(const pl_plan *plan, pl_step *step,
                                       const pl_plan_request *request, int n_threads, uint64_t room,
                                       bool must_pay, uint64_t *ret_bytes, pl_error *reterr);

/* The cost of the smallest tiling, for messages. */
pl_matmul_plan pl_step_least_product(const pl_plan *plan, const pl_step *step);

#endif
