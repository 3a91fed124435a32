/* SPDX-License-Identifier: Apache-2.0 */
/* A run as a pipeline, one struct for each phase (session_run.c has them in this order):
 *
 *     check -> gather -> eager ops -> plan -> admit -> run -> commit
 *
 *   check    is the request valid, and which nodes does it need? The answer is kept for the next
 *            request with the same fetches and feeds (session_inputs.c)
 *   gather   the tensors of placeholders, constants, variables and files (session_inputs.c)
 *   eager    ops on strings, files and images, whose output size is known only once they have run
 *            (session_eager.c)
 *   plan     a kept plan if the inputs look the same, else a new one (session_plan.c)
 *   admit    waits until the plan's peak fits beside the runs under way (session_plan.c)
 *   run      the steps of the plan (session_run.c)
 *   commit   names all files and sets all variables, or none (session_run.c)
 *
 * explain() stops after the plan. If an eager op needs the value of a node that is not eager, a
 * nested pipeline computes it from the same values, and leaves the commit to the outer one.
 *
 * A pipeline belongs to one thread. */
#ifndef PL_EXEC_SESSION_PIPELINE_H
#define PL_EXEC_SESSION_PIPELINE_H

#include <errno.h>

#include "exec/eager/eager_ops.h"
#include "exec/session/session_plans.h"
#include "exec/step/run.h"
#include "tensor/admission.h"

typedef struct pl_gather_phase {
    pl_tensor **values; /* by number of the node, if there are eager ops: gathered, then made by
                         * them. A nested pipeline shares its outer's. NULL: no eager ops */
    pl_plan_source *sources; /* the inputs of the plan */
    pl_tensor **tensors;     /* by source; behind them */
    int n_sources;
} pl_gather_phase;

typedef struct pl_eager_phase {
    uint64_t held_bytes; /* in memory, of values made by eager ops */
    pl_run_cost cost;    /* of explain(): as far as it is known */
} pl_eager_phase;

typedef struct pl_plan_phase {
    pl_plan *plan;
    pl_kept_plan *kept;  /* that owns the plan; NULL: the pipeline does */
    uint64_t peak_bytes; /* with what eager ops hold now */
} pl_plan_phase;

typedef struct pl_admit_phase {
    pl_admission admission;
    bool assigning; /* no other run of the session assigns meanwhile */
} pl_admit_phase;

typedef struct pl_run_phase {
    pl_run steps;
    pl_npy_file *files; /* by fetch: being written; NULL: the run has not begun */
} pl_run_phase;

typedef struct pl_pipeline {
    pl_run_request request;
    struct pl_pipeline *outer; /* whose eager op this one is for; NULL: none */
    pl_run_mark mark;
    pl_checked_request *check;
    pl_gather_phase gather;
    pl_eager_phase eager;
    pl_plan_phase plan;
    pl_admit_phase admit;
    pl_run_phase run;
} pl_pipeline;

static inline int pl_pipeline_no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "out of memory while describing a run");
}

/* ---- session_inputs.c: check and gather ---- */

/* Fails with -EINVAL or -ENOMEM. */
PL_MUST_CHECK int pl_pipeline_check(pl_pipeline *p, pl_error *reterr);

/* Gathers all values in one step, so that a variable has the same value wherever it is read. Again
 * after pl_pipeline_drop_plan(); values[] are gathered once. */
PL_MUST_CHECK int pl_pipeline_gather(pl_pipeline *p, pl_error *reterr);

/* Lists as sources what eager ops and the gathering have left in values[]. */
void pl_pipeline_list_sources(pl_pipeline *p);
void pl_pipeline_describe(const pl_node *node, const pl_tensor *tensor, pl_plan_source *source);
void pl_pipeline_drop_sources(pl_pipeline *p);

/* ---- session_eager.c: the eager ops ---- */

PL_MUST_CHECK int pl_pipeline_run_eager_ops(pl_pipeline *p, pl_error *reterr);

/* For pl_eager_count() and pl_eager_explain(), too. */
pl_eager_run pl_pipeline_eager_run(pl_pipeline *p);

/* Sets held_bytes, and marks the sources that are part of it. Fails with -ENOMEM. */
PL_MUST_CHECK int pl_pipeline_count_held(pl_pipeline *p);

/* Moves values made by eager ops to disk, except those that `user` reads; it may be NULL. Returns
 * false if nothing was moved. */
bool pl_pipeline_evict_held(const pl_pipeline *p, const pl_node *user);

/* ---- session_plan.c: plan and admit ---- */

/* Finds a kept plan or makes one. */
PL_MUST_CHECK int pl_pipeline_plan(pl_pipeline *p, pl_error *reterr);

/* Makes a plan for the sources as listed. */
PL_MUST_CHECK int pl_pipeline_make_plan(pl_pipeline *p, pl_error *reterr);

/* `planned` is the code of gather or plan. Returns 1 if the plan may run; 0 if other runs have
 * ended or begun meanwhile, so that the caller must gather and plan again; else an error. */
PL_MUST_CHECK int pl_pipeline_admit(pl_pipeline *p, int planned, pl_error *reterr);

/* Drops the plan and its sources, and ends its admission. */
void pl_pipeline_drop_plan(pl_pipeline *p);

/* Waits until no other run of the session assigns. Fails with -ECANCELED, or with -EDEADLK in a
 * callback, which might otherwise wait for its own run. */
PL_MUST_CHECK int pl_pipeline_begin_assigning(pl_pipeline *p, pl_error *reterr);
void pl_pipeline_end_assigning(pl_pipeline *p);

/* Fails with -ECANCELED if the run was cancelled, by its options or by the session. */
PL_MUST_CHECK int pl_pipeline_cancelled(const pl_pipeline *p);

/* ---- session_run.c: run and commit ---- */

void pl_pipeline_init(pl_pipeline *p, const pl_run_request *request, pl_pipeline *outer);

/* Runs all phases but the eager ops and commit, for an input of an eager op. results[] is by
 * fetch. */
PL_MUST_CHECK int pl_pipeline_run_nested(pl_pipeline *p, pl_tensor **results, pl_error *reterr);

/* Returns the value of a node that outlives the run, as a tensor. */
PL_MUST_CHECK int pl_pipeline_result(pl_pipeline *p, const pl_node *node, pl_tensor **ret_tensor,
                                     pl_error *reterr);

void pl_pipeline_done(pl_pipeline *p);

#endif
