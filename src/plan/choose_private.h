/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by choose.c, which chooses the nodes that become values, and build_steps.c, which makes
 * values and steps from them.
 *   use site  a step and a box in it, where a consumer reads a node. Two consumers that read the
 *             same elements at the same time share a site
 *   demand    all use sites of a node, and why it becomes a value */
#ifndef PL_PLAN_CHOOSE_PRIVATE_H
#define PL_PLAN_CHOOSE_PRIVATE_H

#include "plan/plan.h"

/* With more use sites than this, a node becomes a value, however cheap it is. */
enum { PL_USE_SITES_MAX = 4 };

typedef struct pl_use_site {
    int step, box;
} pl_use_site;

typedef struct pl_node_demand {
    pl_use_site sites[PL_USE_SITES_MAX];
    int n_sites; /* PL_USE_SITES_MAX + 1: too many */
    bool needed, source, root;
    const char *why;
    const pl_node *why_node;
} pl_node_demand;

typedef struct pl_chooser {
    pl_plan *plan;
    const pl_plan_request *request;
    pl_node_demand *demands; /* by number of the node */
    int *n_in_step;          /* nodes, by number of the root */
    int *box_of;             /* of the step, by number of the root */
    int n_boxes;
} pl_chooser;

/* Such a node reads nothing, and is computed wherever it is used. */
static inline bool pl_node_is_generator(const pl_node *node)
{
    return node->op->op_class == PL_CLASS_SOURCE &&
           (node->op->id == PL_OP_fill || node->op->id == PL_OP_range ||
            node->op->id == PL_OP_random_uniform || node->op->id == PL_OP_random_normal ||
            node->op->id == PL_OP_random_truncated);
}

/* ---- build_steps.c ---- */

/* Fails with -EINVAL if the source is given twice, or with another shape. */
PL_MUST_CHECK int pl_build_add_source(pl_chooser *c, const pl_plan_source *source,
                                      pl_error *reterr);

/* Makes values in the order of their nodes, then a step for each value that does not come from
 * outside. */
PL_MUST_CHECK int pl_build_steps(pl_chooser *c, pl_error *reterr);

/* Marks the values that outlive the run. */
void pl_build_mark_kept(pl_chooser *c);

#endif
