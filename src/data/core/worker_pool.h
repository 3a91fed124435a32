/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a pass, which run jobs that stages submit.
 *   job   work that any thread may do ahead of time; a member of the struct that it works on
 *
 * No thread waits for a job that has not begun: a thread that needs its result withdraws the job
 * and does the work itself. So a pass cannot deadlock, however few threads there are; without any
 * (the system refuses them, or the process was forked) the caller of next() does everything.
 * Submitting a job starts a thread if none is idle. Safe from any thread. */
#ifndef PL_DATA_CORE_WORKER_POOL_H
#define PL_DATA_CORE_WORKER_POOL_H

#include "base/base.h"

typedef struct pl_worker_pool pl_worker_pool;

typedef struct pl_pool_job {
    void (*run)(struct pl_pool_job *job);
    struct pl_pool_job *after; /* the pool's, like all that follows */
    bool queued;
} pl_pool_job;

/* At most `n_threads`, until pl_worker_pool_want() raises that. -ENOMEM. */
PL_MUST_CHECK int pl_worker_pool_new(int n_threads, pl_worker_pool **ret_pool, pl_error *reterr);

/* Call when no job is queued; waits for those that run. NULL is allowed. */
void pl_worker_pool_free(pl_worker_pool *pool);

int pl_worker_pool_size(pl_worker_pool *pool); /* threads at most */

/* Returns whether the process was forked since it had threads. They stayed in the parent and may
 * hold locks permanently, so nothing of the pass may be touched. */
bool pl_worker_pool_is_lost(const pl_worker_pool *pool);

/* Raises the number of threads, for calls that mostly wait. Returns the number allowed, which has a
 * limit. */
int pl_worker_pool_want(pl_worker_pool *pool, int n_threads);

/* Does nothing if the job is queued already. */
void pl_worker_pool_submit(pl_worker_pool *pool, pl_pool_job *job);

/* Returns true if it was queued, and no longer is; false if it has begun, or was never
 * submitted. */
bool pl_worker_pool_withdraw(pl_worker_pool *pool, pl_pool_job *job);

/* No job begins between pause() and resume(); pause() waits for those that run. */
void pl_worker_pool_pause(pl_worker_pool *pool);
void pl_worker_pool_resume(pl_worker_pool *pool);

/* Waits until no job is queued or running, so that everything that may be made ahead is made. For
 * tests that need the same state in every run; not while it is paused. */
void pl_worker_pool_settle(pl_worker_pool *pool);

/* A long job checks this, and ends, because another thread waits for it. */
bool pl_worker_pool_is_paused(const pl_worker_pool *pool);

#endif
