/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices that are steps of their own: matmul_plan.h says how each is computed.
 *   operand  a value whose matrices lie one after the other, as they are or transposed. Nodes
 *            between it and the product only swap their axes or reshape them
 *   batch    the products of one step; operands repeat along axes where their stride is 0
 *   large    worth a step of its own; other products are computed in tiles (PL_INSTR_MATMUL)
 *
 * Pure, like the rest of the planner. */
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
 * values are chosen (`stored` is NULL), the node that should become a value. */
typedef struct pl_product_base {
    const pl_node *node;
    const pl_node *shaped; /* it lies in this one's shape */
    bool swapped;          /* and its last two axes are swapped when used */
} pl_product_base;

pl_product_base pl_product_base_of(const pl_plan *plan, const bool *stored, const pl_node *input);

bool pl_product_is_large(const pl_node *node, const pl_shape *shapes);

/* Makes the product of a step whose values are chosen; *ret_product is NULL if it is computed in
 * tiles. Fails with -ENOMEM. */
PL_MUST_CHECK int pl_product_new(const pl_plan *plan, const bool *stored, const pl_node *node,
                                 struct pl_product **ret_product);

/* Decides whether the step is computed as a product with its values where they are now, and sets
 * its kind. */
bool pl_step_is_product(const pl_plan *plan, pl_step *step);

/* Plans it within `room`. *ret_bytes is what scratch and BLAS claim. Fails with PL_EBUDGET, without
 * a message, if it does not fit, or if `must_pay` is set and much more memory would be much faster;
 * -EOVERFLOW if no room would do. */
PL_MUST_CHECK int pl_step_plan_product(const pl_plan *plan, pl_step *step,
                                       const pl_plan_request *request, int n_threads, uint64_t room,
                                       bool must_pay, uint64_t *ret_bytes, pl_error *reterr);

/* The cost of the smallest tiling, for messages. */
pl_matmul_plan pl_step_least_product(const pl_plan *plan, const pl_step *step);

#endif
