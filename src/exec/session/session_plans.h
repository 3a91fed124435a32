/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that a session keeps, because small graphs are run more often than they change.
 *   alike  two runs that fetch the same nodes, to the same kind of place, and feed the same
 *          placeholders, in the same order
 *   plain  a value from outside that is in memory, its elements one after the other
 *
 * Kept is what no budget had a part in: all is on the CPU, values from outside are plain, nothing
 * is spilled, and the peak is at most a PL_KEPT_SHARE-th of the budget. Tiles are halved until they
 * fit, so nothing was made smaller than is best, and any budget that large gives the same plan. It
 * is used again for a run that is alike, whose values have the same shapes and are plain, in such a
 * budget.
 *
 * A kept plan is counted: runs side by side share one. Safe from any thread. */
#ifndef PL_EXEC_SESSION_SESSION_PLANS_H
#define PL_EXEC_SESSION_SESSION_PLANS_H

#include "exec/session/session_private.h"
#include "graph/node.h"
#include "plan/plan.h"

#define PL_KEPT_SHARE 4

typedef struct pl_kept_source {
    const pl_node *node;
    pl_shape shape;
    int feed; /* its number; -1: it is none */
} pl_kept_source;

struct pl_kept_plan {
    _Atomic int n_refs;
    pl_plan *plan;
    bool assigns;
    int n_fetches, n_feeds, n_sources;
    const pl_node **fed;
    pl_kept_source *sources;
    pl_plan_fetch *fetches; /* to_file: is written to a file, by the plan or after it */
};

/* A run as a session keeps its plan. */
typedef struct pl_kept_key {
    const pl_fetch *fetches;
    int n_fetches;
    const pl_feed *feeds;
    int n_feeds;
} pl_kept_key;

/* The plan of a run that was alike, one more reference to it; NULL: there is none. */
pl_kept_plan *pl_session_find_plan(pl_session *session, const pl_kept_key *key);

/* Takes over the plan and keeps it, in place of the one that was used longest ago. One reference is
 * the caller's. NULL for want of memory: the plan is then the caller's still. */
pl_kept_plan *pl_session_keep_plan(pl_session *session, const pl_kept_key *key,
                                   const pl_plan_source *sources, int n_sources, bool assigns,
                                   pl_plan *plan);

void pl_kept_plan_unref(pl_kept_plan *kept); /* NULL is allowed */

static inline bool pl_source_is_plain(const pl_plan_source *source)
{
    return source->resident && !source->permuted && !source->scattered;
}

#endif
