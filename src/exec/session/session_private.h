/* SPDX-License-Identifier: Apache-2.0 */
/* A session from inside: its life (session_life.c), its variables (session.c), its runs
 * (session_run.c) and the plans that it keeps (session_plans.c).
 *   open    it can be used
 *   closed  runs have ended, and variables are freed; calls on the handle fail
 *   user    a running call; a session is closed when the last one has left
 *
 * A session is in its graph's list while it is open, and in its runtime's until it is freed. It
 * keeps the runtime alive until it is freed, or closed with its graph, after which its user may
 * never free it. The runtime frees the sessions that it still has when it ends.
 *
 * Safe from any thread: each field names its lock. No lock is held during computation; runs that
 * assign exclude each other by `assigning`. */
#ifndef PL_EXEC_SESSION_SESSION_PRIVATE_H
#define PL_EXEC_SESSION_SESSION_PRIVATE_H

#include <pthread.h>

#include "plimsoll/session.h"
#include "util/links.h"

typedef enum pl_session_state {
    PL_SESSION_OPEN,
    PL_SESSION_CLOSING,
    PL_SESSION_CLOSED
} pl_session_state;

/* As many as a program alternates between, with some to spare. */
enum { PL_KEPT_REQUESTS = 8 };
typedef struct pl_checked_request pl_checked_request;

/* A run that is under way. */
typedef struct pl_run_mark {
    struct pl_run_mark *before, *after; /* the session's mu */
    const char *name;                   /* of what it computes */
    _Atomic uint64_t peak_bytes;
    _Atomic int cancelled;
} pl_run_mark;

struct pl_session {
    _Atomic int n_refs;
    uint64_t number;
    const pl_graph *graph; /* NULL once the session is closed */
    pl_runtime *runtime;   /* constant, like all above mu except counts and links */
    pl_link in_graph, in_runtime;
    pthread_mutex_t mu;     /* leaf lock, held for a few loads and stores */
    pthread_cond_t left;    /* mu; the last user has left, or it is closed */
    pl_session_state state; /* mu */
    bool keeps_runtime;     /* mu */
    int n_users;            /* mu */
    pl_run_mark *runs;      /* mu; the running ones */
    pl_tensor **variables;  /* mu; by number of the node */
    int n_nodes;            /* mu */
    pl_checked_request *requests[PL_KEPT_REQUESTS]; /* mu; last used first: session_plans.h */
    uint64_t n_planned;                             /* mu; plans ever made, for tests */
    bool assigning;                                 /* mu; a run that assigns is under way, alone */
    pthread_cond_t assigned;                        /* mu; signalled when it has ended */
};

/* ---- session_life.c ---- */

/* Begins a call. Fails with -ESTALE if the session is closed, -ECHILD if it belongs to another
 * process. A call that can be cancelled has a mark; else NULL. */
PL_MUST_CHECK int pl_session_enter(pl_session *session, pl_run_mark *mark, pl_error *reterr);
void pl_session_leave(pl_session *session, pl_run_mark *mark);

/* Takes one more reference; see pl_links. */
pl_session *pl_session_ref(pl_session *session);

/* For a caller that found it in the runtime's list and holds that list's lock: false if its last
 * reference is gone, and its owner only waits for the lock to remove it. */
PL_MUST_CHECK bool pl_session_try_ref(pl_session *session);
void pl_session_unref(pl_session *session);

/* ---- session.c ---- */

/* Fails with -EINVAL if the node cannot have this value. */
PL_MUST_CHECK int pl_session_check(const pl_node *node, const pl_tensor *tensor, pl_error *reterr);

/* Fails with -EINVAL if a node is NULL or of another graph, naming its role: "map: output 1, ...".
 * If the session is closed, fails as pl_session_enter() does. */
PL_MUST_CHECK int pl_session_check_nodes(pl_session *session, pl_node *const *nodes, int n,
                                         const char *whose, const char *what, pl_error *reterr);

/* Returns a variable's present value, with a reference for the caller; NULL if it has none. Call
 * within pl_session_enter(). */
pl_tensor *pl_session_variable(pl_session *session, const pl_node *variable);

/* Sets a value in two steps, of which only the first can fail: pass `held` to pl_session_put(), or
 * to pl_tensor_let_go(). */
PL_MUST_CHECK int pl_session_hold(pl_session *session, const pl_node *variable, pl_tensor *tensor,
                                  pl_tensor **ret_held, pl_error *reterr);
void pl_session_put(pl_session *session, const pl_node *variable, pl_tensor *held);

#endif
