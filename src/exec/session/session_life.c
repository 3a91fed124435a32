/* SPDX-License-Identifier: Apache-2.0 */
/* The life of sessions: any number of threads use them, until their user or their graph closes
 * them. See session_private.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "exec/session/session_plans.h"
#include "exec/session/session_private.h"
#include "graph/node.h"
#include "tensor/pool.h"
#include "tensor/runtime.h"
#include "tensor/tensor.h"

static pl_session *session_of_graph(pl_link *link)
{
    return (pl_session *)((char *)link - offsetof(pl_session, in_graph));
}

static pl_session *session_of_runtime(pl_link *link)
{
    return (pl_session *)((char *)link - offsetof(pl_session, in_runtime));
}

/* ---- calls ---- */

int pl_session_enter(pl_session *session, pl_run_mark *mark, pl_error *reterr)
{
    int r = pl_pool_enter(session->runtime->pool, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&session->mu);
    bool open = session->state == PL_SESSION_OPEN;
    session->n_users += open;
    if (open && mark) {
        mark->before = NULL;
        mark->after = session->runs;
        if (mark->after)
            mark->after->before = mark;
        session->runs = mark;
    }
    pthread_mutex_unlock(&session->mu);
    return open ? 0
                : pl_error_set(reterr, -ESTALE,
                               "session %llu is closed, or its graph was freed: make a new one",
                               (unsigned long long)session->number);
}

void pl_session_leave(pl_session *session, pl_run_mark *mark)
{
    pthread_mutex_lock(&session->mu);
    if (mark && mark->before)
        mark->before->after = mark->after;
    else if (mark)
        session->runs = mark->after;
    if (mark && mark->after)
        mark->after->before = mark->before;
    if (--session->n_users == 0)
        pthread_cond_broadcast(&session->left);
    pthread_mutex_unlock(&session->mu);
}

/* Call with the lock held. */
static void cancel_runs(pl_session *session)
{
    for (pl_run_mark *run = session->runs; run; run = run->after)
        atomic_store_explicit(&run->cancelled, 1, memory_order_relaxed);
}

void pl_session_cancel(pl_session *session)
{
    PL_NULL_DOES_NOTHING(session);
    if (pl_pool_is_inherited(session->runtime->pool))
        return;
    pthread_mutex_lock(&session->mu);
    cancel_runs(session);
    pthread_mutex_unlock(&session->mu);
}

/* ---- ends ---- */

static void drop_all(pl_session *session)
{
    for (int i = 0; i < session->n_nodes; i++)
        pl_tensor_let_go(session->variables[i]);
    free(PL_TAKE(session->variables));
    session->n_nodes = 0;
    for (int i = 0; i < PL_KEPT_REQUESTS; i++)
        pl_checked_request_unref(PL_TAKE(session->requests[i]));
}

/* Call with the lock held: from here on the caller alone closes the session. Returns false if
 * another thread has closed it. */
static bool begin_closing(pl_session *session)
{
    if (session->state != PL_SESSION_OPEN) {
        while (session->state != PL_SESSION_CLOSED)
            pthread_cond_wait(&session->left, &session->mu);
        return false;
    }
    session->state = PL_SESSION_CLOSING;
    cancel_runs(session);
    while (session->n_users > 0)
        pthread_cond_wait(&session->left, &session->mu);
    return true;
}

/* When it returns the session is closed, whichever thread did it. It leaves the graph's list last:
 * the graph may be freed after that. */
static void session_close(pl_session *session)
{
    pthread_mutex_lock(&session->mu);
    bool alone = begin_closing(session);
    pthread_mutex_unlock(&session->mu);
    if (!alone)
        return;
    drop_all(session);
    pl_links_remove(pl_graph_sessions(session->graph), &session->in_graph);
    session->graph = NULL;
    pthread_mutex_lock(&session->mu);
    session->state = PL_SESSION_CLOSED;
    pthread_cond_broadcast(&session->left);
    pthread_mutex_unlock(&session->mu);
}

pl_session *pl_session_ref(pl_session *session)
{
    atomic_fetch_add(&session->n_refs, 1);
    return session;
}

bool pl_session_try_ref(pl_session *session)
{
    int n = atomic_load(&session->n_refs);
    while (n > 0 && !atomic_compare_exchange_weak(&session->n_refs, &n, n + 1))
        ;
    return n > 0;
}

void pl_session_unref(pl_session *session)
{
    if (atomic_fetch_sub(&session->n_refs, 1) > 1)
        return;
    pl_links_remove(session->runtime->sessions, &session->in_runtime);
    pthread_mutex_destroy(&session->mu);
    pthread_cond_destroy(&session->left);
    pthread_cond_destroy(&session->assigned);
    free(session);
}

/* The runtime may end with its last session, and frees what is left of closed ones, so it is
 * released after this session. */
static void close_and_unref(pl_session *session)
{
    session_close(session);
    pthread_mutex_lock(&session->mu);
    pl_runtime *runtime = session->keeps_runtime ? session->runtime : NULL;
    session->keeps_runtime = false;
    pthread_mutex_unlock(&session->mu);
    pl_session_unref(session);
    pl_runtime_unref(runtime);
}

void pl_session_close(pl_session *session)
{
    PL_NULL_DOES_NOTHING(session);
    if (!pl_pool_is_inherited(session->runtime->pool))
        session_close(session);
}

/* In a forked child, threads that do not exist there may hold its locks; the memory ends with the
 * child. */
void pl_session_free(pl_session *session)
{
    if (session && !pl_pool_is_inherited(session->runtime->pool))
        close_and_unref(session);
}

static void hold_for_graph(pl_link *link)
{
    pl_session_ref(session_of_graph(link));
}

static void end_with_graph(pl_link *link)
{
    close_and_unref(session_of_graph(link));
}

static void hold_for_runtime(pl_link *link)
{
    pl_session_ref(session_of_runtime(link));
}

/* Frees a session that was closed, but never freed by its user. */
static void end_with_runtime(pl_link *link)
{
    pl_session_unref(session_of_runtime(link));
    pl_session_unref(session_of_runtime(link));
}

/* ---- beginnings ---- */

int pl_session_new(const pl_graph *graph, pl_runtime *runtime, pl_session **ret_session,
                   pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(ret_session, reterr);
    static const pl_link_ends with_graph = {hold_for_graph, end_with_graph};
    static const pl_link_ends with_runtime = {hold_for_runtime, end_with_runtime};
    int r = pl_pool_enter(runtime->pool, reterr);
    if (r < 0)
        return r;
    pl_session *session = calloc(1, sizeof *session);
    if (!session)
        return pl_error_set(reterr, -ENOMEM, "out of memory for a session");
    session->n_refs = 1;
    session->number = atomic_fetch_add(&runtime->n_sessions, 1) + 1;
    session->graph = graph;
    session->runtime = pl_runtime_ref(runtime);
    session->keeps_runtime = true;
    pthread_mutex_init(&session->mu, NULL);
    pthread_cond_init(&session->left, NULL);
    pthread_cond_init(&session->assigned, NULL);
    session->in_graph.ends = &with_graph;
    session->in_runtime.ends = &with_runtime;
    pl_links_add(runtime->sessions, &session->in_runtime);
    pl_links_add(pl_graph_sessions(graph), &session->in_graph);
    *ret_session = session;
    return 0;
}
