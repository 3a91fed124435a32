/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: run graphs, planned in advance and never over the budget.
 *   feed     a tensor for a placeholder
 *   fetch    a node whose value is wanted: as a tensor, or in an .npy file
 *   plan     the steps of a run, where its values lie and what it claims; made before a run, and
 *            cached for similar runs
 *   variable a value that a session keeps between runs; changed by the assign ops
 *
 * Within one run every variable reads as it was before the run. Assigned values take effect when
 * the whole run has succeeded; otherwise the variables are unchanged. Runs that assign wait for
 * each other; all others run in parallel, from any number of threads. A run that does not fit into
 * what the others leave of the budget waits for them.
 *
 * A session is open until it is closed or freed, or its graph is freed. After that its variables
 * are gone, and every use returns -ESTALE. The user frees the handle, before or after the graph;
 * after the graph, it must be freed before the runtime, which frees what is left. Do not add to a
 * graph while a session runs it. */
#ifndef PLIMSOLL_SESSION_H
#define PLIMSOLL_SESSION_H

#include "plimsoll/graph.h"
#include "plimsoll/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_session pl_session;

typedef struct pl_feed {
    const pl_node *placeholder;
    pl_tensor *tensor;
} pl_feed;

typedef struct pl_fetch {
    const pl_node *node;
    const char *npy_path; /* NULL: as a tensor. The file exists only after a successful run */
} pl_fetch;

typedef struct pl_run_options {
    size_t size;           /* sizeof this struct; 0: as in version 0.1; see libplimsoll(3) */
    uint64_t budget_bytes; /* 0: what the runtime has left */
    const int *cancel;     /* may be NULL; once not 0 (read atomically), the run is -ECANCELED */
    /* May be NULL. Called occasionally, from any thread of the runtime, but by one at a time: the
     * fraction done, and the node being computed. The fraction never falls, and reaches 1 once, at
     * the end of a successful run that had anything to compute. */
    void (*progress)(void *context, double fraction, const char *node_name);
    void *progress_context;
    /* Added to the `stream` of every random op, modulo 2^64: a different number makes the same
     * graph draw different numbers. 0: as the ops say. */
    uint64_t random_stream;
} pl_run_options;

/* Sets the value of a constant, for as long as the graph lives; not while a session runs. -EINVAL
 * if the node is not a constant, or the tensor has another dtype or shape. */
PL_API PL_MUST_CHECK int pl_constant_set(pl_node *constant, pl_tensor *tensor, pl_error *reterr);

PL_API PL_MUST_CHECK int pl_session_new(const pl_graph *graph, pl_runtime *runtime,
                                        pl_session **ret_session, pl_error *reterr);

/* Cancels the runs in progress; later ones are unaffected. */
PL_API void pl_session_cancel(pl_session *session);

/* Cancels the runs in progress, waits for them, and releases the variables. Deadlocks inside a
 * progress callback, which would wait for itself. A closed session stays closed. */
PL_API void pl_session_close(pl_session *session);

/* Closes the session and frees the handle, which must not be in use. NULL is allowed. */
PL_API void pl_session_free(pl_session *session);

/* Gets or sets a variable's value. Set: -EINVAL for another dtype or shape. Get: NULL in
 * *ret_tensor if it has none. */
PL_API PL_MUST_CHECK int pl_session_set(pl_session *session, const pl_node *variable,
                                        pl_tensor *tensor, pl_error *reterr);
PL_API PL_MUST_CHECK int pl_session_get(pl_session *session, const pl_node *variable,
                                        pl_tensor **ret_tensor, pl_error *reterr);

/* Runs what the fetches need. ret_tensors has n_fetches entries, NULL for files; it may be NULL if
 * the run is wanted for its effects: assignments, files. `options` may be NULL. PL_EBUDGET before
 * anything is allocated if it cannot be done within the budget, with the smallest budget that would
 * suffice and the op that decides it; -ENOSPC for the disk in the same way; -EINVAL for a mismatch
 * or a missing feed; -ENOTSUP for an op that sessions cannot run; -ECANCELED; -EDEADLK if a
 * callback runs something that assigns while another run of the session does; errors of reading and
 * writing files. Messages name op and node. On failure nothing is left behind, and no variable has
 * changed. Files, images and strings are read and made before the rest is planned, so a refusal of
 * the rest, or of the next image, comes after that. */
PL_API PL_MUST_CHECK int pl_session_run(pl_session *session, const pl_fetch *fetches, int n_fetches,
                                        const pl_feed *feeds, int n_feeds,
                                        const pl_run_options *options, pl_tensor **ret_tensors,
                                        pl_error *reterr);

typedef struct pl_run_cost {
    uint64_t peak_bytes; /* the most memory it claims */
    uint64_t disk_bytes; /* the most it spills */
    double flops;
    int n_unknown; /* nodes whose cost is unknown, or partly unknown, before files are read */
} pl_run_cost;

/* Returns the plan that a run would have now, as a table for people or as JSON, to free(). Either
 * output may be NULL. Fails as the run would. For nodes that depend on files and strings it
 * contains what is known before they are read, and so does the cost: with n_unknown > 0 it is a
 * lower bound. */
PL_API PL_MUST_CHECK int pl_session_explain(pl_session *session, const pl_fetch *fetches,
                                            int n_fetches, const pl_feed *feeds, int n_feeds,
                                            const pl_run_options *options, bool as_json,
                                            char **ret_text, pl_run_cost *ret_cost,
                                            pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
