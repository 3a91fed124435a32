/* SPDX-License-Identifier: Apache-2.0 */
/* Eager ops run before the plan, because the size of their results is known only then: the nodes
 * that whole_ops.h takes, in the order of their numbers, each as a whole tensor. Their inputs that
 * are not eager are computed by nested plans. The plan then gets their values as inputs, with their
 * actual shapes.
 *
 * Until it is used, such a value is idle, and is evicted when memory is short. It is dropped when
 * no eager op reads it any more, unless it is an input of the plan.
 *
 * Eager ops run one after the other, on the caller's thread; each may use the runtime's threads. */
#ifndef PL_EXEC_EAGER_EAGER_OPS_H
#define PL_EXEC_EAGER_EAGER_OPS_H

#include <stdio.h>

#include "exec/eager/whole_ops.h"
#include "graph/node.h"
#include "plimsoll/session.h"
#include "tensor/admission.h"
#include "tensor/runtime.h"
#include "tensor/tensor.h"

/* The eager ops of a run. */
typedef struct pl_eager_run {
    pl_runtime *runtime;
    const pl_graph *graph;
    int n_nodes; /* size of all arrays, which are by number of the node */
    const bool *needed;
    const int *n_fetched;
    pl_tensor **values;      /* gathered; eager ops add theirs, which the caller must unref */
    pl_admission *admission; /* begun and ended by each op */
    /* Computes a node that is not eager, and stores it in values[its number]. */
    int (*compute)(void *context, const pl_node *node, pl_error *reterr);
    /* Returns the memory of values that are held for later, except those that `user` reads; and
     * moves such values to disk, returning false if nothing was moved. */
    int (*held_bytes)(void *context, const pl_node *user, uint64_t *ret_bytes);
    bool (*evict)(void *context, const pl_node *user);
    pl_eager_run_graph *run_graph; /* see whole_ops.h */
    void *context;
} pl_eager_run;

PL_MUST_CHECK int pl_eager_run_all(const pl_eager_run *run, pl_error *reterr);

/* The costs that are known before eager ops have run; shapes[] as far as they can be. */
typedef struct pl_eager_cost {
    uint64_t peak_bytes; /* of inputs and results of eager ops, and of nested plans */
    uint64_t left_bytes; /* that the plan finds in memory */
    int n_unknown;       /* ops whose cost is not all known: strings, and the scratch of decoding */
} pl_eager_cost;

/* Returns in *ret_bytes the claim of computing a node that is not eager, with `live_bytes` made
 * before it. Returns 1; 0 if that is not known; errors as the run would. */
typedef int pl_eager_foresee(void *context, const pl_node *node, const pl_shape *shapes,
                             uint64_t live_bytes, uint64_t *ret_bytes, pl_error *reterr);

/* `foresee` gets the context of `run`. Fails with PL_EBUDGET for an op that would be refused, as
 * far as that is known; -ENOMEM; or the code of `foresee`. */
PL_MUST_CHECK int pl_eager_count(const pl_eager_run *run, const pl_shape *shapes,
                                 pl_eager_foresee *foresee, pl_eager_cost *ret_cost,
                                 pl_error *reterr);

/* Writes a line, or a JSON object, for each eager op. */
void pl_eager_explain(const pl_eager_run *run, const pl_shape *shapes, bool as_json, FILE *to);

#endif
