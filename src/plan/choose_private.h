/* SPDX-License-Identifier: Apache-2.0 */
/* Between choose.c, which says what is a value, and chosen.c, which makes values and steps of it.
 *   spot  a step and a box in it: where a consumer wants a node. Two consumers that want the same
 *         elements at the same time share a spot */
#ifndef PL_PLAN_CHOOSE_PRIVATE_H
#define PL_PLAN_CHOOSE_PRIVATE_H

#include "plan/plan.h"

/* Wanted in more spots, a node is a value, however cheap. */
enum { PL_SPOTS_MAX = 4 };

typedef struct pl_spot {
    int step, box;
} pl_spot;

typedef struct pl_want {
    pl_spot spots[PL_SPOTS_MAX];
    int n_spots; /* PL_SPOTS_MAX + 1: too many */
    bool needed, source, root;
    const char *why;
    const pl_node *why_node;
} pl_want;

typedef struct pl_chooser {
    pl_plan *plan;
    const pl_plan_request *request;
    pl_want *wants; /* by number of the node */
    int *n_in_step; /* nodes, by number of the root */
    int *box_of;    /* of the step, by number of the root */
    int n_boxes;
} pl_chooser;

/* Made from nothing, wherever it is used. */
static inline bool pl_node_is_generator(const pl_node *node)
{
    return node->op->op_class == PL_CLASS_SOURCE &&
           (node->op->id == PL_OP_fill || node->op->id == PL_OP_range ||
            node->op->id == PL_OP_random_uniform || node->op->id == PL_OP_random_normal ||
            node->op->id == PL_OP_random_truncated);
}

/* ---- chosen.c ---- */

/* -EINVAL if it is given twice, or with another shape. */
PL_MUST_CHECK int pl_chosen_add_source(pl_chooser *c, const pl_plan_source *source,
                                       pl_error *reterr);

/* Values in the order of their nodes, then a step for each that is not from outside. */
PL_MUST_CHECK int pl_chosen_add_all(pl_chooser *c, pl_error *reterr);

/* What outlives the run. */
void pl_chosen_keep(pl_chooser *c);

#endif
