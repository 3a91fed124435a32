/* SPDX-License-Identifier: Apache-2.0 */
/* See session_plans.h. */
#include "exec/session/session_plans.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void pl_kept_plan_unref(pl_kept_plan *kept)
{
    if (!kept || atomic_fetch_sub(&kept->n_refs, 1) > 1)
        return;
    pl_plan_free(kept->plan);
    free(kept->fed);
    free(kept->sources);
    free(kept->fetches);
    free(kept);
}

static bool is_alike(const pl_kept_plan *kept, const pl_kept_key *key)
{
    if (kept->n_fetches != key->n_fetches || kept->n_feeds != key->n_feeds)
        return false;
    for (int i = 0; i < key->n_fetches; i++)
        if (kept->fetches[i].node != key->fetches[i].node ||
            kept->fetches[i].to_file != (key->fetches[i].npy_path != NULL))
            return false;
    for (int i = 0; i < key->n_feeds; i++)
        if (kept->fed[i] != key->feeds[i].placeholder)
            return false;
    return true;
}

/* With the lock held: the one at `i` becomes the first. */
static void move_to_front(pl_session *session, int i)
{
    pl_kept_plan *kept = session->plans[i];
    memmove(&session->plans[1], &session->plans[0], (size_t)i * sizeof session->plans[0]);
    session->plans[0] = kept;
}

pl_kept_plan *pl_session_find_plan(pl_session *session, const pl_kept_key *key)
{
    pl_kept_plan *found = NULL;
    pthread_mutex_lock(&session->mu);
    for (int i = 0; i < PL_KEPT_PLANS && session->plans[i] && !found; i++)
        if (is_alike(session->plans[i], key)) {
            found = session->plans[i];
            atomic_fetch_add(&found->n_refs, 1);
            move_to_front(session, i);
        }
    pthread_mutex_unlock(&session->mu);
    return found;
}

/* Of the plan's own copies of what the caller has. */
static pl_kept_plan *kept_alloc(const pl_kept_key *key, int n_sources)
{
    pl_kept_plan *kept = calloc(1, sizeof *kept);
    if (!kept)
        return NULL;
    kept->n_refs = 2;
    kept->n_fetches = key->n_fetches;
    kept->n_feeds = key->n_feeds;
    kept->n_sources = n_sources;
    kept->fetches = calloc((size_t)key->n_fetches + 1, sizeof *kept->fetches);
    kept->fed = calloc((size_t)key->n_feeds + 1, sizeof(pl_node *));
    kept->sources = calloc((size_t)n_sources + 1, sizeof *kept->sources);
    if (kept->fetches && kept->fed && kept->sources)
        return kept;
    kept->n_refs = 1;
    pl_kept_plan_unref(kept);
    return NULL;
}

static void describe(pl_kept_plan *kept, const pl_kept_key *key, const pl_plan_source *sources)
{
    for (int i = 0; i < key->n_fetches; i++)
        kept->fetches[i] = (pl_plan_fetch){key->fetches[i].node, key->fetches[i].npy_path != NULL};
    for (int i = 0; i < key->n_feeds; i++)
        kept->fed[i] = key->feeds[i].placeholder;
    for (int i = 0; i < kept->n_sources; i++) {
        kept->sources[i] = (pl_kept_source){sources[i].node, sources[i].shape, -1};
        for (int k = 0; k < key->n_feeds && sources[i].node->op->id == PL_OP_placeholder; k++)
            if (key->feeds[k].placeholder == sources[i].node)
                kept->sources[i].feed = k;
    }
}

pl_kept_plan *pl_session_keep_plan(pl_session *session, const pl_kept_key *key,
                                   const pl_plan_source *sources, int n_sources, bool assigns,
                                   pl_plan *plan)
{
    pl_kept_plan *kept = kept_alloc(key, n_sources);
    if (!kept)
        return NULL;
    describe(kept, key, sources);
    kept->plan = plan;
    kept->assigns = assigns;
    pthread_mutex_lock(&session->mu);
    pl_kept_plan *last = session->plans[PL_KEPT_PLANS - 1];
    session->plans[PL_KEPT_PLANS - 1] = kept;
    move_to_front(session, PL_KEPT_PLANS - 1);
    pthread_mutex_unlock(&session->mu);
    pl_kept_plan_unref(last);
    return kept;
}
