/* SPDX-License-Identifier: Apache-2.0 */
/* What a session keeps of its last runs, because programs run the same graph again and again.
 *   request  what a run asks for: fetches and feeds. Two are alike if they fetch the same nodes, to
 *            the same kind of place, and feed the same placeholders, in the same order
 *   checked  a request that was found valid, with the nodes that it needs. Kept for requests alike
 *   plain    an input that is in memory, its elements one after the other
 *
 * We cache only plans the budget did not influence: all is on the CPU, inputs are plain, nothing is
 * spilled, and the peak is at most a PL_KEPT_SHARE-th of the budget. Tiles are halved until they fit,
 * so nothing was made smaller than is best, and any budget that large gives the same plan. It serves
 * a request that is alike whose inputs are the same nodes with the same shapes, and plain, in such a
 * budget. An input may be what an eager op has made: pictures of one size share a plan.
 *
 * Both are counted: runs side by side share them. Safe from any thread. */
#ifndef PL_EXEC_SESSION_SESSION_PLANS_H
#define PL_EXEC_SESSION_SESSION_PLANS_H

#include "exec/session/session_private.h"
#include "graph/node.h"
#include "plan/plan.h"

#define PL_KEPT_SHARE 4

/* For one request: the shapes that come in turns, such as a last, smaller batch. */
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
    uint64_t held_bytes; /* by eager ops, when it was made: part of its peak */
    int n_sources;
    struct pl_kept_source {
        const pl_node *node;
        pl_shape shape;
    } sources[];
} pl_kept_plan;

/* Constant, but for what the session's lock guards. Nodes that are added later are not needed. */
struct pl_checked_request {
    _Atomic int n_refs;
    int n_fetches, n_feeds;
    pl_plan_fetch *fetches; /* to_file: written to a file, by the plan or after it */
    const pl_node **fed;
    int n_nodes;             /* all that are needed have lower numbers */
    bool *needed;            /* by number of the node, as the next two */
    int *feed_of;            /* its number and 1; 0: not fed */
    int *n_fetched;          /* how often */
    const pl_node **outside; /* needed placeholders, constants, variables and files, in order */
    const pl_node *
        *planned; /* if there are eager ops: the plan's inputs, as far as they have values */
    int n_outside, n_planned;
    bool assigns, has_eager_ops;
    pl_kept_plan *plans[PL_KEPT_PLANS]; /* the session's mu; last used first */
    pl_checked_request **nested; /* mu; by number of the node that an eager op reads; NULL: none */
};

/* The request that was alike, one more reference to it; NULL: none is kept. */
pl_checked_request *pl_session_find_request(const pl_run_request *request);

/* Keeps it, in place of the one that was used longest ago. */
void pl_session_keep_request(pl_session *session, pl_checked_request *checked);

/* The same for a request nested in another one, for one node. Keeping needs memory: without it, it
 * is not kept. */
pl_checked_request *pl_session_find_nested(pl_session *session, const pl_checked_request *outer,
                                           const pl_node *node);
void pl_session_keep_nested(pl_session *session, pl_checked_request *outer, const pl_node *node,
                            pl_checked_request *checked);

void pl_checked_request_unref(pl_checked_request *checked); /* NULL is allowed */

/* The plan for plain sources like these, one more reference to it; NULL: none is kept. */
pl_kept_plan *pl_session_find_plan(pl_session *session, pl_checked_request *checked,
                                   const pl_plan_source *sources, int n_sources);

/* Takes over the plan and keeps it, in place of the one that was used longest ago. One reference is
 * the caller's. NULL if out of memory: the plan is then the caller's still. */
pl_kept_plan *pl_session_keep_plan(pl_session *session, pl_checked_request *checked,
                                   const pl_plan_source *sources, int n_sources,
                                   uint64_t held_bytes, pl_plan *plan);

void pl_kept_plan_unref(pl_kept_plan *kept); /* NULL is allowed */

#endif
