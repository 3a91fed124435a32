/* SPDX-License-Identifier: Apache-2.0 */
/* A pass's threads: they run jobs that stages leave to them.
 *   job   something that may be done ahead, by any thread; a member of what it works on
 *
 * Nobody waits for a job that has not begun: whoever needs what it would make withdraws it and does
 * the work himself. So nothing can deadlock, whatever the number of threads; with none at all (the
 * system gives none, or the process was forked) everything happens in the caller of next(). Threads
 * are started when there is a job and nobody idle. Safe from any thread. */
#ifndef PL_DATA_AHEAD_WORKER_POOL_H
#define PL_DATA_AHEAD_WORKER_POOL_H

#include "base/base.h"

typedef struct pl_worker_pool pl_worker_pool;

typedef struct pl_pool_job {
    void (*run)(struct pl_pool_job *job);
    struct pl_pool_job *after; /* the crew's, as is all that follows */
    bool queued;
} pl_pool_job;

/* `n_threads` at most, until somebody wants more. -ENOMEM. */
PL_MUST_CHECK int pl_worker_pool_new(int n_threads, pl_worker_pool **ret_pool, pl_error *reterr);

/* No job is queued any more; those that run are waited for. NULL is allowed. */
void pl_worker_pool_free(pl_worker_pool *pool);

int pl_worker_pool_size(pl_worker_pool *pool); /* the most threads that it may have */

/* Was the process forked since it had threads? They are not here, and locks may be theirs for ever:
 * nothing of the pass may be touched. */
bool pl_worker_pool_is_lost(const pl_worker_pool *pool);

/* For calls that mostly wait: so many threads may be had. There is an end to that, which the
 * machine sets: what is returned is what may be had. */
int pl_worker_pool_want(pl_worker_pool *pool, int n_threads);

/* A job that is queued already stays so. */
void pl_worker_pool_submit(pl_worker_pool *pool, pl_pool_job *job);

/* True: it was queued, and is not any more. False: it has begun, or was never submitted. */
bool pl_worker_pool_withdraw(pl_worker_pool *pool, pl_pool_job *job);

/* Between these no job begins; pause() waits for those that run. */
void pl_worker_pool_pause(pl_worker_pool *pool);
void pl_worker_pool_resume(pl_worker_pool *pool);

/* Waits until no job is queued and none runs: what runs ahead has then come as far as it may, and
 * stays there until somebody submits again. For tests that need the same state in every run; not
 * while it is paused. */
void pl_worker_pool_settle(pl_worker_pool *pool);

/* For jobs that go on and on: somebody waits for them to end. */
bool pl_worker_pool_is_paused(const pl_worker_pool *pool);

#endif
