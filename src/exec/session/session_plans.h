/* SPDX-License-Identifier: Apache-2.0 */
/* The checked requests and plans that a session keeps, because programs run the same graph again
 * and again.
 *   request  what a run asks for: fetches and feeds. Two requests are similar if they fetch the
 *            same nodes, to the same kind of place, and feed the same placeholders, in the same
 *            order
 *   checked  a request that was found valid, with the nodes that it needs. Kept for similar
 *            requests
 *   plain    an input that is in memory, its elements one after the other
 *
 * We cache only plans that the budget did not influence: everything is on the CPU, inputs are
 * plain, nothing is spilled, and the peak is at most a PL_KEPT_SHARE-th of the budget. Tiles are
 * halved until they fit, so nothing was made smaller than is best, and any budget that large gives
 * the same plan. A cached plan serves a similar request with plain inputs of the same shapes from
 * the same nodes, in such a budget. An input may be the result of an eager op: pictures of one size
 * share a plan.
 *
 * Requests and plans are reference-counted, because runs side by side share them. Safe from any
 * thread. */
#ifndef PL_EXEC_SESSION_SESSION_PLANS_H
#define PL_EXEC_SESSION_SESSION_PLANS_H

#include "exec/session/session_private.h"
#include "graph/node.h"
#include "plan/plan.h"

#define PL_KEPT_SHARE 4

/* For one request, because shapes may alternate, as for a last, smaller batch. */
enum { PL_KEPT_PLANS = 8 };

typedef struct pl_run_request {
    pl_session *session;
    const pl_fetch *fetches;
    int n_fetches;
    const pl_feed *feeds;
    int n_feeds;
    const pl_run_options *options;
} pl_run_request;

typedef struct pl_kept_plan {
    _Atomic int n_refs;
    pl_plan *plan;
    uint64_t held_bytes; /* by eager ops, when the plan was made: part of its peak */
    int n_sources;
    struct pl_kept_source {
        const pl_node *node;
        pl_shape shape;
    } sources[];
} pl_kept_plan;

/* Constant, except for the fields that the session's lock guards. Nodes added later are not
 * needed. */
struct pl_checked_request {
    _Atomic int n_refs;
    int n_fetches, n_feeds;
    pl_plan_fetch *fetches; /* to_file: written to a file, by the plan or after it */
    const pl_node **fed;
    int n_nodes;             /* all that are needed have lower numbers */
    bool *needed;            /* by number of the node, like the next two */
    int *feed_of;            /* its number plus 1; 0: not fed */
    int *n_fetched;          /* how often */
    const pl_node **outside; /* needed placeholders, constants, variables and files, in order */
    const pl_node *
        *planned; /* if there are eager ops: the plan's inputs, as far as they have values */
    int n_outside, n_planned;
    bool assigns, has_eager_ops;
    pl_kept_plan *plans[PL_KEPT_PLANS]; /* the session's mu; last used first */
    pl_checked_request **nested; /* mu; by number of the node that an eager op reads; NULL: none */
};

/* Returns a kept request that is similar, with a new reference; NULL: none is kept. */
pl_checked_request *pl_session_find_request(const pl_run_request *request);

/* Keeps it, replacing the least recently used one. */
void pl_session_keep_request(pl_session *session, pl_checked_request *checked);

/* pl_session_find_request() and pl_session_keep_request() for a request nested in another one, for
 * one node. If out of memory, it is not kept. */
pl_checked_request *pl_session_find_nested(pl_session *session, const pl_checked_request *outer,
                                           const pl_node *node);
void pl_session_keep_nested(pl_session *session, pl_checked_request *outer, const pl_node *node,
                            pl_checked_request *checked);

void pl_checked_request_unref(pl_checked_request *checked); /* NULL is allowed */

/* Returns the plan for plain sources like these, with a new reference; NULL: none is kept. */
pl_kept_plan *pl_session_find_plan(pl_session *session, pl_checked_request *checked,
                                   const pl_plan_source *sources, int n_sources);

/* Takes the plan and keeps it, replacing the least recently used one. Returns a reference for the
 * caller. NULL if out of memory: the caller then still owns the plan. */
pl_kept_plan *pl_session_keep_plan(pl_session *session, pl_checked_request *checked,
                                   const pl_plan_source *sources, int n_sources,
                                   uint64_t held_bytes, pl_plan *plan);

void pl_kept_plan_unref(pl_kept_plan *kept); /* NULL is allowed */

#endif
