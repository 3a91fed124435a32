/* SPDX-License-Identifier: Apache-2.0 */
#include "data/core/worker_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "util/fork.h"
#include "util/threads.h"

enum {
    /* A thread that waits costs some pages of stack, and containers commonly limit a cgroup to some
     * thousand pids. */
    THREADS_MAX = 256,
};

struct pl_worker_pool {
    uint32_t generation; /* of the process that has these threads; constant */
    pthread_mutex_t mu;  /* leaf lock; guards all that follows */
    pthread_cond_t work_came;
    pthread_cond_t someone_left; /* a thread has finished its job */
    pl_pool_job *first, *last;   /* queued */
    int n_most;
    int n_queued;
    int n_threads, n_idle, n_working;
    bool ends;
    _Atomic bool paused; /* written with mu held, read without: a job that sees it late ends late */
    pthread_t threads[THREADS_MAX];
};

int pl_worker_pool_new(int n_threads, pl_worker_pool **ret_pool, pl_error *reterr)
{
    pl_worker_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return pl_error_set(reterr, -ENOMEM, "out of memory for the threads of a pass");
    pool->generation = pl_fork_generation();
    pool->n_most = n_threads < THREADS_MAX ? n_threads : THREADS_MAX;
    pthread_mutex_init(&pool->mu, NULL);
    pthread_cond_init(&pool->work_came, NULL);
    pthread_cond_init(&pool->someone_left, NULL);
    *ret_pool = pool;
    return 0;
}

int pl_worker_pool_size(pl_worker_pool *pool)
{
    pthread_mutex_lock(&pool->mu);
    int n = pool->n_most;
    pthread_mutex_unlock(&pool->mu);
    return n;
}

bool pl_worker_pool_is_lost(const pl_worker_pool *pool)
{
    return pool->generation != pl_fork_generation() && pool->n_threads > 0;
}

int pl_worker_pool_want(pl_worker_pool *pool, int n_threads)
{
    pthread_mutex_lock(&pool->mu);
    int n = n_threads < THREADS_MAX ? n_threads : THREADS_MAX;
    if (n > pool->n_most)
        pool->n_most = n;
    n = pool->n_most;
    pthread_mutex_unlock(&pool->mu);
    return n;
}

static pl_pool_job *take_first(pl_worker_pool *pool)
{
    pl_pool_job *job = pool->first;
    pool->first = job->after;
    if (!pool->first)
        pool->last = NULL;
    job->after = NULL;
    job->queued = false;
    pool->n_queued--;
    return job;
}

static void *work(void *context)
{
    pl_worker_pool *pool = context;
    pthread_mutex_lock(&pool->mu);
    for (;;) {
        while (!pool->ends && (pool->paused || !pool->first)) {
            pool->n_idle++;
            pthread_cond_wait(&pool->work_came, &pool->mu);
            pool->n_idle--;
        }
        if (pool->ends)
            break;
        pl_pool_job *job = take_first(pool);
        pool->n_working++;
        pthread_mutex_unlock(&pool->mu);
        job->run(job); /* which may free it */
        pthread_mutex_lock(&pool->mu);
        pool->n_working--;
        pthread_cond_broadcast(&pool->someone_left);
    }
    pthread_mutex_unlock(&pool->mu);
    return NULL;
}

/* If the system refuses, jobs are withdrawn and done by the threads that need their results. */
static void start_thread(pl_worker_pool *pool)
{
    sigset_t before;
    pl_threads_block_signals(&before);
    if (pthread_create(&pool->threads[pool->n_threads], NULL, work, pool) == 0)
        pool->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void pl_worker_pool_submit(pl_worker_pool *pool, pl_pool_job *job)
{
    bool is_ours = pool->generation == pl_fork_generation(); /* forked children start none */
    pthread_mutex_lock(&pool->mu);
    if (!job->queued) {
        job->queued = true;
        job->after = NULL;
        if (pool->last)
            pool->last->after = job;
        else
            pool->first = job;
        pool->last = job;
        pool->n_queued++;
        if (is_ours && pool->n_queued > pool->n_idle && pool->n_threads < pool->n_most)
            start_thread(pool);
        else
            pthread_cond_signal(&pool->work_came);
    }
    pthread_mutex_unlock(&pool->mu);
}

bool pl_worker_pool_withdraw(pl_worker_pool *pool, pl_pool_job *job)
{
    pthread_mutex_lock(&pool->mu);
    bool was_queued = job->queued;
    pl_pool_job *before = NULL;
    for (pl_pool_job *at = pool->first; was_queued && at != job; at = at->after)
        before = at;
    if (was_queued) {
        if (before)
            before->after = job->after;
        else
            pool->first = job->after;
        if (pool->last == job)
            pool->last = before;
        job->after = NULL;
        job->queued = false;
        pool->n_queued--;
    }
    pthread_mutex_unlock(&pool->mu);
    return was_queued;
}

void pl_worker_pool_pause(pl_worker_pool *pool)
{
    pthread_mutex_lock(&pool->mu);
    pool->paused = true;
    while (pool->n_working > 0)
        pthread_cond_wait(&pool->someone_left, &pool->mu);
    pthread_mutex_unlock(&pool->mu);
}

bool pl_worker_pool_is_paused(const pl_worker_pool *pool)
{
    return atomic_load_explicit(&pool->paused, memory_order_relaxed);
}

void pl_worker_pool_resume(pl_worker_pool *pool)
{
    pthread_mutex_lock(&pool->mu);
    pool->paused = false;
    pthread_cond_broadcast(&pool->work_came);
    pthread_mutex_unlock(&pool->mu);
}

void pl_worker_pool_settle(pl_worker_pool *pool)
{
    pthread_mutex_lock(&pool->mu);
    /* without threads, jobs stay queued */
    while (pool->n_working > 0 || (pool->n_queued > 0 && pool->n_threads > 0))
        pthread_cond_wait(&pool->someone_left, &pool->mu);
    pthread_mutex_unlock(&pool->mu);
}

void pl_worker_pool_free(pl_worker_pool *pool)
{
    if (!pool)
        return;
    if (pool->generation != pl_fork_generation())
        return; /* its locks may be held by threads of the parent */
    pthread_mutex_lock(&pool->mu);
    pool->ends = true;
    pthread_cond_broadcast(&pool->work_came);
    pthread_mutex_unlock(&pool->mu);
    for (int i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->someone_left);
    pthread_cond_destroy(&pool->work_came);
    pthread_mutex_destroy(&pool->mu);
    free(pool);
}
