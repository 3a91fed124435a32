/* SPDX-License-Identifier: Apache-2.0 */
/* A session from inside: its variables (session.c), and its runs (session_run.c). */
#ifndef PL_EXEC_SESSION_PRIVATE_H
#define PL_EXEC_SESSION_PRIVATE_H

#include <pthread.h>

#include "plimsoll/session.h"

struct pl_session {
    const pl_graph *graph;
    pl_runtime *runtime;
    pthread_mutex_t mu;     /* leaf lock, held for a few loads and stores */
    pl_tensor **variables;  /* mu; by number of the node */
    int n_nodes;            /* constant, as is all above mu */
    pthread_mutex_t assign; /* held by a run that assigns, for all of it; taken before mu */
};

/* -EINVAL if the node cannot have this value. */
PL_MUST_CHECK int pl_session_check(const pl_node *node, const pl_tensor *tensor, pl_error *reterr);

/* A variable's value, now, the caller's; NULL if it has none. */
pl_tensor *pl_session_variable(pl_session *session, const pl_node *variable);

#endif
