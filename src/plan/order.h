/* SPDX-License-Identifier: Apache-2.0 */
/* In which order the steps of a plan are run.
 *   as made   steps in the order of their nodes, which is how users wrote them
 *   deep      what a step needs is made right before it: from each result down, inputs in the order
 *             of their nodes
 *   heavy     deep, and of a step's inputs the one first that needs the most beyond what it leaves
 *             (Sethi and Ullman's order: the best one for trees)
 *   need      the most that values take at once while a value is made, if nothing else is there
 *
 * Every order gives the same results; they differ in how much is in memory at once. Pure. */
#ifndef PL_PLAN_ORDER_H
#define PL_PLAN_ORDER_H

#include "plan/plan.h"

typedef enum pl_order_kind { PL_ORDER_DEEP, PL_ORDER_HEAVY, PL_N_ORDERS } pl_order_kind;

/* Numbers of the nodes whose steps are run, in this order: nodes[plan->n_steps]. The plan has its
 * steps and what they use. -ENOMEM. Linear, but for sorting the inputs of each step. */
PL_MUST_CHECK int pl_plan_order(const pl_plan *plan, pl_order_kind kind, int *nodes);

/* The most that the values of steps take at once in this order, scratch and disk aside; NULL: as
 * the plan has them. UINT64_MAX if out of memory. */
uint64_t pl_plan_order_bytes(const pl_plan *plan, const int *nodes);

#endif
