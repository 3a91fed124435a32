/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which the steps of a plan run.
 *   as made   steps in the order of their nodes, which is how users wrote them
 *   deep      what a step needs is made right before it: from each result down, inputs in the order
 *             of their nodes
 *   heavy     deep, but a step's inputs are ordered by how much each needs beyond what it leaves,
 *             most first (Sethi and Ullman's order, the best one for trees)
 *   need      the most that values take at once while a value is made, if nothing else is in memory
 *
 * Every order gives the same results; they differ in how much is in memory at once. Pure. */
#ifndef PL_PLAN_ORDER_H
#define PL_PLAN_ORDER_H

#include "plan/plan.h"

typedef enum pl_order_kind { PL_ORDER_DEEP, PL_ORDER_HEAVY, PL_N_ORDERS } pl_order_kind;

/* Writes the numbers of the nodes to nodes[plan->n_steps], in the order their steps should run. The
 * plan must have its steps and their uses. Fails with -ENOMEM. Takes linear time, but for sorting
 * the inputs of each step. */
PL_MUST_CHECK int pl_plan_order(const pl_plan *plan, pl_order_kind kind, int *nodes);

/* The most that the values of steps take at once in this order, without scratch and disk; NULL: in
 * the plan's order. UINT64_MAX if out of memory. */
uint64_t pl_plan_order_bytes(const pl_plan *plan, const int *nodes);

#endif
