/* SPDX-License-Identifier: Apache-2.0 */
/* A call of run() or explain() from inside: what is given and its plan (session_inputs.c), when it
 * is its turn (session_admission.c), what is made before the plan (session_stages.c), and the run.
 * Belongs to one thread. */
#ifndef PL_EXEC_SESSION_SESSION_CALL_H
#define PL_EXEC_SESSION_SESSION_CALL_H

#include <errno.h>

#include "exec/eager/eager_ops.h"
#include "exec/session/admission.h"
#include "exec/session/session_plans.h"
#include "exec/step/run.h"

typedef struct pl_call {
    pl_session *session;
    const pl_fetch *fetches;
    int n_fetches;
    const pl_feed *feeds;
    int n_feeds;
    const pl_run_options *options;
    bool *needed;   /* by number of the node */
    int *feed_of;   /* by number of the node: its number and 1; 0: it is not fed */
    int *n_fetched; /* by number of the node */
    pl_plan_source *sources;
    pl_tensor **given; /* by source */
    int n_sources;
    uint64_t own_bytes;      /* in memory, of what stages have made */
    pl_run_cost stages_cost; /* of explain(): as far as it is known */
    bool assigns;
    pl_tensor **staged; /* by number of the node: what is given, or was made by a stage. NULL: there
                           are no stages, and what is given is found as it is needed */
    struct pl_call *outer; /* whose stage this call is for; NULL: none. `staged`, if any, is its */
    pl_plan *plan;
    pl_kept_plan *kept; /* that has the plan; NULL: it is the call's own */
    pl_run run;
    pl_npy_file *files; /* by fetch: what is being written; NULL: the run has not begun */
    pl_run_mark mark;
    pl_turn turn;
    bool promised;        /* what the plan claims, or a stage */
    uint64_t stage_bytes; /* that were promised to it */
} pl_call;

static inline int pl_call_no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "no memory to describe a run");
}

/* ---- session_inputs.c ---- */

/* -EINVAL for a node or tensor that is NULL: what somebody failed to make. */
PL_MUST_CHECK int pl_call_check_given(const pl_call *c, pl_error *reterr);

/* -EINVAL if two results are to be written to one file. */
PL_MUST_CHECK int pl_call_check_paths(const pl_call *c, pl_error *reterr);

/* Checks what is asked for, and finds out which nodes that needs. */
PL_MUST_CHECK int pl_call_prepare(pl_call *c, pl_error *reterr);

/* Gathers what is given, and makes the plan. */
PL_MUST_CHECK int pl_call_plan(pl_call *c, pl_error *reterr);

/* The tensor of a source, the caller's; NULL if it has none. Of a placeholder only when the call is
 * prepared. */
PL_MUST_CHECK int pl_call_find_given(const pl_call *c, const pl_node *node, pl_tensor **ret_tensor,
                                     pl_error *reterr);
void pl_call_describe(const pl_node *node, const pl_tensor *tensor, pl_plan_source *source);
uint64_t pl_call_budget_bytes(pl_call *c);
uint64_t pl_call_sure_bytes(pl_call *c);             /* see pl_turn_sure_bytes() */
bool pl_call_has_budget(pl_call *c, uint64_t bytes); /* at least so much of it */

void pl_call_drop_sources(pl_call *c);

/* Only the plan: what it is made of is in c->sources. */
PL_MUST_CHECK int pl_call_make_plan(pl_call *c, pl_error *reterr);

/* ---- session_run.c ---- */

/* The steps of a prepared call, in its turn. What is fetched is in tensors[], or written but for
 * its name. */
PL_MUST_CHECK int pl_call_run_plan(pl_call *c, pl_tensor **tensors, pl_error *reterr);

/* The value of a node that is kept, as a tensor. */
PL_MUST_CHECK int pl_call_kept(pl_call *c, const pl_node *node, pl_tensor **ret_tensor,
                               pl_error *reterr);

void pl_call_done(pl_call *c);

/* ---- session_stages.c ---- */

/* Of a prepared call: makes room for what stages make, if there are any. -ENOMEM. */
PL_MUST_CHECK int pl_call_find_stages(pl_call *c, pl_error *reterr);

/* Gathers all that is given, and runs the stages. */
PL_MUST_CHECK int pl_call_run_stages(pl_call *c, pl_error *reterr);
void pl_call_drop_stages(pl_call *c);

/* What they have to do with. */
pl_stages pl_call_stages(pl_call *c);

/* All that is given, at once, so that every variable has the same value wherever it is read. */
PL_MUST_CHECK int pl_call_gather_given(pl_call *c, pl_error *reterr);

/* ---- session_idle.c ---- */

/* What stages have made and is in memory, but for what `user` reads, which may be NULL. -ENOMEM. */
PL_MUST_CHECK int pl_call_idle_bytes(const pl_call *c, const pl_node *user, uint64_t *ret_bytes);

/* Puts that on disk, as far as it can be; false if nothing of it is there now. */
bool pl_call_evict_idle(const pl_call *c, const pl_node *user);

/* Of a call with stages, for its plan: own_bytes, and which sources are part of it. -ENOMEM. */
PL_MUST_CHECK int pl_call_count_own(pl_call *c);

/* ---- session_admission.c ---- */

/* Finds out whether the run assigns: from a run that was alike, or by preparing. */
PL_MUST_CHECK int pl_call_begin(pl_call *c, pl_error *reterr);

/* Waits until no other run of the session assigns; -ECANCELED, or -EDEADLK in a callback, whose run
 * may be the one that it would wait for. */
PL_MUST_CHECK int pl_call_begin_assigning(pl_call *c, pl_error *reterr);
void pl_call_end_assigning(pl_call *c);

/* Finds or makes the plan, and waits until it fits beside the runs that are under way. A run that
 * assigns has begun assigning. */
PL_MUST_CHECK int pl_call_take_turn(pl_call *c, pl_error *reterr);

/* Was it cancelled, by its options or by the session? -ECANCELED. */
PL_MUST_CHECK int pl_call_check(const pl_call *c);

/* The turn has ended, and the plan with it; what was gathered is let go of. */
void pl_call_end_turn(pl_call *c);

#endif
