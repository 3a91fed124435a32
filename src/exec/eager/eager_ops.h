/* SPDX-License-Identifier: Apache-2.0 */
/* What a run computes before its plan: nodes that whole_ops.h takes, in the order of their numbers, each
 * as a whole tensor; and, by plans of their own, nodes that are inputs of these. The tensors are
 * then given to the plan, as feeds are, with the shapes that they turned out to have.
 *
 * Between its making and its use such a tensor is idle: it is evicted when the line is near. One
 * that no stage uses any more, and that the plan will not ask for, is let go of.
 *
 * Stages are run one after the other, by the thread that called; what one computes may use the
 * runtime's threads. */
#ifndef PL_EXEC_EAGER_EAGER_OPS_H
#define PL_EXEC_EAGER_EAGER_OPS_H

#include <stdio.h>

#include "exec/eager/whole_ops.h"
#include "graph/node.h"
#include "plimsoll/session.h"
#include "tensor/runtime.h"
#include "tensor/tensor.h"

typedef struct pl_stages {
    pl_runtime *runtime;
    const pl_graph *graph;
    const bool *needed;  /* by number of the node, as all arrays */
    const int *asked;    /* how often it is fetched */
    pl_tensor **of_node; /* what is given; the stages add what they make, the caller's to unref */
    int (*check)(void *context); /* -ECANCELED: it is to stop */
    /* Computes a node, that is no stage, to of_node[its number]. */
    int (*compute)(void *context, const pl_node *node, pl_error *reterr);
    /* Runs side by side share the budget: what a stage can count on, the promise of so much of it
     * (PL_EBUDGET), the end of that; a wait for another run to end (-EAGAIN: there is none). What
     * is told not exactly may be too little, and need not be measured. */
    int (*budget)(void *context, const pl_node *stage, bool exactly, uint64_t *ret_bytes);
    /* Puts on disk what idles; false if there was nothing. */
    bool (*make_room)(void *context, const pl_node *stage);
    int (*promise)(void *context, uint64_t bytes);
    bool (*settle)(void *context); /* false: nothing was promised */
    int (*wait)(void *context);
    void (*be_patient)(void *context); /* whatever came of the wait: others may begin again */
    pl_data_run_graph *run_graph;      /* see whole_ops.h */
    void *context;
} pl_stages;

/* Is there one among the needed? */
bool pl_stages_any(const pl_graph *graph, const bool *needed);

/* Will the plan ask for this stage's value: is it fetched, or an input of what is no stage? */
bool pl_stages_asked(const pl_graph *graph, const bool *needed, const int *asked,
                     const pl_node *stage);

PL_MUST_CHECK int pl_stages_run(const pl_stages *stages, pl_error *reterr);

/* What is known before stages have run; shapes[] are, as far as they can be. */
typedef struct pl_stages_cost {
    uint64_t peak_bytes; /* of what the stages make and read, and of the plans of their own */
    uint64_t left_bytes; /* that the plan finds in memory */
    int n_unknown;       /* stages of which some is not known: strings, and what decoding takes */
} pl_stages_cost;

/* What computing a node, that is no stage, would claim, with `live_bytes` that were made before it.
 * 1; 0 if that is not known; errors as of the run. */
typedef int pl_stages_foresee(void *context, const pl_node *node, const pl_shape *shapes,
                              uint64_t live_bytes, uint64_t *ret_bytes, pl_error *reterr);

/* `foresee` gets the context of `stages`. PL_EBUDGET for a stage that would be refused, as far as
 * it is known; -ENOMEM, and what `foresee` gave. */
PL_MUST_CHECK int pl_stages_count(const pl_stages *stages, const pl_shape *shapes,
                                  pl_stages_foresee *foresee, pl_stages_cost *ret_cost,
                                  pl_error *reterr);

/* A line, or an object of JSON, for each stage. */
void pl_stages_explain(const pl_stages *stages, const pl_shape *shapes, bool as_json, FILE *to);

#endif
