/* SPDX-License-Identifier: Apache-2.0 */
#include "data/ahead/worker_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "util/fork.h"
#include "util/threads.h"

enum {
    /* A thread that waits costs some pages of stack, and a process may have as many as its
     * cgroup's pids: the common limit of containers is some thousands. */
    CREW_MOST = 256,
};

struct pl_crew {
    uint32_t generation; /* of the process whose threads these are; constant */
    pthread_mutex_t mu;  /* leaf lock; guards all that follows */
    pthread_cond_t work_came;
    pthread_cond_t someone_left; /* a thread has finished its job */
    pl_job *first, *last;        /* queued */
    int n_most;
    int n_queued;
    int n_threads, n_idle, n_working;
    bool ends;
    _Atomic bool
        paused; /* written with mu held, read without: a job that sees it late ends later */
    pthread_t threads[CREW_MOST];
};

int pl_crew_new(int n_threads, pl_crew **ret_crew, pl_error *reterr)
{
    pl_crew *crew = calloc(1, sizeof *crew);
    if (!crew)
        return pl_error_set(reterr, -ENOMEM, "no memory for the threads of a pass");
    crew->generation = pl_fork_generation();
    crew->n_most = n_threads < CREW_MOST ? n_threads : CREW_MOST;
    pthread_mutex_init(&crew->mu, NULL);
    pthread_cond_init(&crew->work_came, NULL);
    pthread_cond_init(&crew->someone_left, NULL);
    *ret_crew = crew;
    return 0;
}

int pl_crew_size(pl_crew *crew)
{
    pthread_mutex_lock(&crew->mu);
    int n = crew->n_most;
    pthread_mutex_unlock(&crew->mu);
    return n;
}

bool pl_crew_is_lost(const pl_crew *crew)
{
    return crew->generation != pl_fork_generation() && crew->n_threads > 0;
}

int pl_crew_want(pl_crew *crew, int n_threads)
{
    pthread_mutex_lock(&crew->mu);
    int n = n_threads < CREW_MOST ? n_threads : CREW_MOST;
    if (n > crew->n_most)
        crew->n_most = n;
    n = crew->n_most;
    pthread_mutex_unlock(&crew->mu);
    return n;
}

static pl_job *take_first(pl_crew *crew)
{
    pl_job *job = crew->first;
    crew->first = job->after;
    if (!crew->first)
        crew->last = NULL;
    job->after = NULL;
    job->queued = false;
    crew->n_queued--;
    return job;
}

static void *work(void *context)
{
    pl_crew *crew = context;
    pthread_mutex_lock(&crew->mu);
    for (;;) {
        while (!crew->ends && (crew->paused || !crew->first)) {
            crew->n_idle++;
            pthread_cond_wait(&crew->work_came, &crew->mu);
            crew->n_idle--;
        }
        if (crew->ends)
            break;
        pl_job *job = take_first(crew);
        crew->n_working++;
        pthread_mutex_unlock(&crew->mu);
        job->run(job); /* which may be gone after it */
        pthread_mutex_lock(&crew->mu);
        crew->n_working--;
        pthread_cond_broadcast(&crew->someone_left);
    }
    pthread_mutex_unlock(&crew->mu);
    return NULL;
}

/* Where the system gives none, those who need what the jobs make do them. */
static void start_thread(pl_crew *crew)
{
    sigset_t before;
    pl_threads_block_signals(&before);
    if (pthread_create(&crew->threads[crew->n_threads], NULL, work, crew) == 0)
        crew->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void pl_crew_submit(pl_crew *crew, pl_job *job)
{
    bool is_ours =
        crew->generation == pl_fork_generation(); /* a child starts none: see worker_pool.h */
    pthread_mutex_lock(&crew->mu);
    if (!job->queued) {
        job->queued = true;
        job->after = NULL;
        if (crew->last)
            crew->last->after = job;
        else
            crew->first = job;
        crew->last = job;
        crew->n_queued++;
        if (is_ours && crew->n_queued > crew->n_idle && crew->n_threads < crew->n_most)
            start_thread(crew);
        else
            pthread_cond_signal(&crew->work_came);
    }
    pthread_mutex_unlock(&crew->mu);
}

bool pl_crew_withdraw(pl_crew *crew, pl_job *job)
{
    pthread_mutex_lock(&crew->mu);
    bool was_queued = job->queued;
    pl_job *before = NULL;
    for (pl_job *at = crew->first; was_queued && at != job; at = at->after)
        before = at;
    if (was_queued) {
        if (before)
            before->after = job->after;
        else
            crew->first = job->after;
        if (crew->last == job)
            crew->last = before;
        job->after = NULL;
        job->queued = false;
        crew->n_queued--;
    }
    pthread_mutex_unlock(&crew->mu);
    return was_queued;
}

void pl_crew_pause(pl_crew *crew)
{
    pthread_mutex_lock(&crew->mu);
    crew->paused = true;
    while (crew->n_working > 0)
        pthread_cond_wait(&crew->someone_left, &crew->mu);
    pthread_mutex_unlock(&crew->mu);
}

bool pl_crew_is_paused(const pl_crew *crew)
{
    return atomic_load_explicit(&crew->paused, memory_order_relaxed);
}

void pl_crew_resume(pl_crew *crew)
{
    pthread_mutex_lock(&crew->mu);
    crew->paused = false;
    pthread_cond_broadcast(&crew->work_came);
    pthread_mutex_unlock(&crew->mu);
}

void pl_crew_settle(pl_crew *crew)
{
    pthread_mutex_lock(&crew->mu);
    /* where the system gave no threads, jobs stay queued for ever */
    while (crew->n_working > 0 || (crew->n_queued > 0 && crew->n_threads > 0))
        pthread_cond_wait(&crew->someone_left, &crew->mu);
    pthread_mutex_unlock(&crew->mu);
}

void pl_crew_free(pl_crew *crew)
{
    if (!crew)
        return;
    if (crew->generation != pl_fork_generation())
        return; /* its locks may be held by threads that are not here */
    pthread_mutex_lock(&crew->mu);
    crew->ends = true;
    pthread_cond_broadcast(&crew->work_came);
    pthread_mutex_unlock(&crew->mu);
    for (int i = 0; i < crew->n_threads; i++)
        pthread_join(crew->threads[i], NULL);
    pthread_cond_destroy(&crew->someone_left);
    pthread_cond_destroy(&crew->work_came);
    pthread_mutex_destroy(&crew->mu);
    free(crew);
}
