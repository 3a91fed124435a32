/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: graphs that are planned before they run, and never pass the budget.
 *   feed     a tensor for a placeholder
 *   fetch    a node whose value is wanted: as a tensor, or in an .npy file
 *   plan     the steps of a run, where its values lie and what it claims; made before a run,
 *            and kept for others that are alike
 *   variable a value that a session keeps between runs; assigned to by the assign ops
 *
 * In one run every variable has the value from before the run, wherever it is read. What is
 * assigned becomes its value when the whole run has gone well, else it stays as it was. Runs that
 * assign wait for each other; all others go on side by side, from any number of threads. One that
 * does not fit into what the others leave of the budget waits for them.
 *
 * A session is open until it is closed, freed, or its graph is freed. From then on its variables
 * are gone, and every use of it is -ESTALE. Its handle is the user's to free, before or after the
 * graph; but after the graph it is good for only as long as the runtime, which frees what nobody
 * has. Nobody adds to a graph while a session runs. */
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
    const char *npy_path; /* NULL: as a tensor. Else the file is there when the run went well */
} pl_fetch;

typedef struct pl_run_options {
    size_t size;           /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    uint64_t budget_bytes; /* 0: what the runtime has left */
    const int *cancel; /* may be NULL; read atomically: once it is not 0, the run is -ECANCELED */
    /* May be NULL. Called now and then, from any thread of the runtime, but not by two at once:
     * how much of all is done, and the node that is being computed. Never falls, and is 1 once, at
     * the end of a run that went well and had anything to compute. */
    void (*progress)(void *context, double fraction, const char *node_name);
    void *progress_context;
    /* Added to the `stream` of every random op, modulo 2^64: with another number the same graph
     * draws others. 0: as the ops say. */
    uint64_t random_stream;
} pl_run_options;

/* The value of a constant, for as long as the graph lives; not while a session runs. -EINVAL if it
 * is none, or the tensor has another dtype or shape. */
PL_API PL_MUST_CHECK int pl_constant_set(pl_node *constant, pl_tensor *tensor, pl_error *reterr);

PL_API PL_MUST_CHECK int pl_session_new(const pl_graph *graph, pl_runtime *runtime,
                                        pl_session **ret_session, pl_error *reterr);

/* Cancels the runs that are under way; later ones go on. */
PL_API void pl_session_cancel(pl_session *session);

/* Cancels the runs that are under way, waits for them, and lets go of the variables. Not from
 * inside of a progress callback, which would wait for itself. One that is closed stays so. */
PL_API void pl_session_close(pl_session *session);

/* Closes it, and gives back the handle: nobody uses it any more. NULL is allowed. */
PL_API void pl_session_free(pl_session *session);

/* A variable's value. Setting it: -EINVAL for another dtype or shape. Reading it: NULL in
 * *ret_tensor if it has none. */
PL_API PL_MUST_CHECK int pl_session_set(pl_session *session, const pl_node *variable,
                                        pl_tensor *tensor, pl_error *reterr);
PL_API PL_MUST_CHECK int pl_session_get(pl_session *session, const pl_node *variable,
                                        pl_tensor **ret_tensor, pl_error *reterr);

/* Runs what the fetches need. ret_tensors has n_fetches places; NULL in those of files. It may be
 * NULL itself, where the run is wanted for what it does: assignments, files. `options` may be NULL. PL_EBUDGET before anything is
 * allocated if it cannot be done in the budget, with the smallest one that would do and the op that
 * decides it; -ENOSPC likewise for the disk; -EINVAL for what does not fit or is not fed; -ENOTSUP
 * for an op that sessions cannot run; -ECANCELED; -EDEADLK for what assigns, in a callback, while
 * another run of the session does; what reading and writing files gave. Messages
 * name op and node. Then nothing is left behind, and no variable has changed.
 * Files, images and strings are read and made before the rest is planned: a refusal of the rest, or
 * of the next image, then comes after that. */
PL_API PL_MUST_CHECK int pl_session_run(pl_session *session, const pl_fetch *fetches, int n_fetches,
                                        const pl_feed *feeds, int n_feeds,
                                        const pl_run_options *options, pl_tensor **ret_tensors,
                                        pl_error *reterr);

typedef struct pl_run_cost {
    uint64_t peak_bytes; /* the most memory that it claims */
    uint64_t disk_bytes; /* spilled at a time */
    double flops;
    int n_unknown; /* nodes whose cost is not known, or not all of it, before files are read */
} pl_run_cost;

/* The plan that a run would have now: a table for people, or JSON, to free(). Either output may be
 * NULL. Fails as the run would. Of what hangs on files and strings it tells what is known before
 * they are read, and so does the cost: with n_unknown > 0 it is a lower bound. */
PL_API PL_MUST_CHECK int pl_session_explain(pl_session *session, const pl_fetch *fetches,
                                            int n_fetches, const pl_feed *feeds, int n_feeds,
                                            const pl_run_options *options, bool as_json,
                                            char **ret_text, pl_run_cost *ret_cost,
                                            pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
