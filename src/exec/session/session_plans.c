/* SPDX-License-Identifier: Apache-2.0 */
/* See session_plans.h. */
#include "exec/session/session_plans.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/shape.h"

void pl_kept_plan_unref(pl_kept_plan *kept)
{
    if (!kept || atomic_fetch_sub(&kept->n_refs, 1) > 1)
        return;
    pl_plan_free(kept->plan);
    free(kept);
}

void pl_checked_request_unref(pl_checked_request *checked)
{
    if (!checked || atomic_fetch_sub(&checked->n_refs, 1) > 1)
        return;
    for (int i = 0; i < PL_KEPT_PLANS; i++)
        pl_kept_plan_unref(checked->plans[i]);
    for (int i = 0; checked->nested && i < checked->n_nodes; i++)
        pl_checked_request_unref(checked->nested[i]);
    free(checked->nested);
    free(checked->fetches);
    free(checked->fed);
    free(checked->needed);
    free(checked->feed_of);
    free(checked->n_fetched);
    free(checked->outside);
    free(checked->planned);
    free(checked);
}

/* Moves the entry at `i` to the front. Call with the lock held. */
static void move_to_front(void *pointers, int i)
{
    char *first = pointers;
    void *moved;
    memcpy(&moved, first + (size_t)i * sizeof moved, sizeof moved);
    memmove(first + sizeof moved, first, (size_t)i * sizeof moved);
    memcpy(first, &moved, sizeof moved);
}

/* ---- requests ---- */

static bool is_alike(const pl_checked_request *checked, const pl_run_request *request)
{
    if (checked->n_fetches != request->n_fetches || checked->n_feeds != request->n_feeds)
        return false;
    for (int i = 0; i < request->n_fetches; i++)
        if (checked->fetches[i].node != request->fetches[i].node ||
            checked->fetches[i].to_file != (request->fetches[i].npy_path != NULL))
            return false;
    for (int i = 0; i < request->n_feeds; i++)
        if (checked->fed[i] != request->feeds[i].placeholder)
            return false;
    return true;
}

pl_checked_request *pl_session_find_request(const pl_run_request *request)
{
    pl_session *session = request->session;
    pl_checked_request *found = NULL;
    pthread_mutex_lock(&session->mu);
    for (int i = 0; i < PL_KEPT_REQUESTS && session->requests[i] && !found; i++)
        if (is_alike(session->requests[i], request)) {
            found = session->requests[i];
            atomic_fetch_add(&found->n_refs, 1);
            move_to_front(session->requests, i);
        }
    pthread_mutex_unlock(&session->mu);
    return found;
}

void pl_session_keep_request(pl_session *session, pl_checked_request *checked)
{
    atomic_fetch_add(&checked->n_refs, 1);
    pthread_mutex_lock(&session->mu);
    pl_checked_request *last = session->requests[PL_KEPT_REQUESTS - 1];
    session->requests[PL_KEPT_REQUESTS - 1] = checked;
    move_to_front(session->requests, PL_KEPT_REQUESTS - 1);
    pthread_mutex_unlock(&session->mu);
    pl_checked_request_unref(last);
}

pl_checked_request *pl_session_find_nested(pl_session *session, const pl_checked_request *outer,
                                           const pl_node *node)
{
    pthread_mutex_lock(&session->mu);
    pl_checked_request *found = outer->nested ? outer->nested[node->number] : NULL;
    if (found)
        atomic_fetch_add(&found->n_refs, 1);
    pthread_mutex_unlock(&session->mu);
    return found;
}

void pl_session_keep_nested(pl_session *session, pl_checked_request *outer, const pl_node *node,
                            pl_checked_request *checked)
{
    pl_checked_request *before = NULL;
    pthread_mutex_lock(&session->mu);
    if (!outer->nested)
        outer->nested = calloc((size_t)outer->n_nodes, sizeof(pl_checked_request *));
    if (outer->nested) {
        before = outer->nested[node->number];
        outer->nested[node->number] = checked;
        atomic_fetch_add(&checked->n_refs, 1);
    }
    pthread_mutex_unlock(&session->mu);
    pl_checked_request_unref(before);
}

/* ---- plans ---- */

static bool serves(const pl_kept_plan *kept, const pl_plan_source *sources, int n_sources)
{
    if (kept->n_sources != n_sources)
        return false;
    for (int i = 0; i < n_sources; i++)
        if (kept->sources[i].node != sources[i].node ||
            !pl_shape_equal(&kept->sources[i].shape, &sources[i].shape))
            return false;
    return true;
}

pl_kept_plan *pl_session_find_plan(pl_session *session, pl_checked_request *checked,
                                   const pl_plan_source *sources, int n_sources)
{
    pl_kept_plan *found = NULL;
    pthread_mutex_lock(&session->mu);
    for (int i = 0; i < PL_KEPT_PLANS && checked->plans[i] && !found; i++)
        if (serves(checked->plans[i], sources, n_sources)) {
            found = checked->plans[i];
            atomic_fetch_add(&found->n_refs, 1);
            move_to_front(checked->plans, i);
        }
    pthread_mutex_unlock(&session->mu);
    return found;
}

pl_kept_plan *pl_session_keep_plan(pl_session *session, pl_checked_request *checked,
                                   const pl_plan_source *sources, int n_sources,
                                   uint64_t held_bytes, pl_plan *plan)
{
    pl_kept_plan *kept =
        calloc(1, sizeof *kept + (size_t)n_sources * sizeof(struct pl_kept_source));
    if (!kept)
        return NULL;
    kept->n_refs = 2;
    kept->plan = plan;
    kept->held_bytes = held_bytes;
    kept->n_sources = n_sources;
    for (int i = 0; i < n_sources; i++)
        kept->sources[i] = (struct pl_kept_source){sources[i].node, sources[i].shape};
    pthread_mutex_lock(&session->mu);
    pl_kept_plan *last = checked->plans[PL_KEPT_PLANS - 1];
    checked->plans[PL_KEPT_PLANS - 1] = kept;
    move_to_front(checked->plans, PL_KEPT_PLANS - 1);
    pthread_mutex_unlock(&session->mu);
    pl_kept_plan_unref(last);
    return kept;
}
