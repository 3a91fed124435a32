/* SPDX-License-Identifier: Apache-2.0 */
/* See threads.h. Jobs live on their callers' stacks, in a list while they have parts left. A thread
 * joins and leaves a job under the lock; in between, it takes parts with one atomic operation each.
 * The caller removes the job when no part is left and waits until no thread is inside: only then
 * can the job's memory go. */
#include "util/threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/cpu.h"
#include "util/fork.h"

enum {
    THREADS_MOST = 1024,
    /* About 4 us on a 3 GHz Xeon, where a pause takes 43 ns: what a sleep and its wake-up cost
     * (5 to 50 us) is saved when jobs follow each other closely, and an idle thread is soon idle.
     */
    SPINS = 96,
};

typedef struct job {
    pl_threads_work *work;
    void *context;
    int64_t n_parts;
    _Atomic int64_t next_part; /* beyond n_parts: none are left, or the job has failed */
    int n_joined;              /* mu; the next worker's number */
    _Atomic int n_inside;      /* written under mu; the caller spins on it */
    int64_t failed_part;       /* mu; INT64_MAX: none */
    int result;                /* mu; of failed_part */
    bool hooked;               /* mu; in the list */
    struct job *before;        /* mu */
    struct job *after;         /* mu */
} job;

struct pl_threads {
    int n_threads;       /* constant once made, as is generation */
    uint32_t generation; /* of the process whose threads these are */
    pthread_mutex_t mu;  /* leaf lock */
    pthread_cond_t work_came;
    pthread_cond_t someone_left;
    job *first_job;          /* mu; newest first: nested ones are waited for by others */
    _Atomic uint32_t n_jobs; /* ever hooked; written under mu; idle threads watch it */
    int n_asleep;            /* mu; in work_came */
    bool ends;               /* mu */
    pthread_t threads[];     /* n_threads - 1 */
};

static _Thread_local bool works_alone;

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void hook(pl_threads *threads, job *new_job)
{
    new_job->after = threads->first_job;
    if (new_job->after)
        new_job->after->before = new_job;
    threads->first_job = new_job;
    new_job->hooked = true;
    atomic_fetch_add_explicit(&threads->n_jobs, 1, memory_order_relaxed);
}

static void unhook(pl_threads *threads, job *old_job)
{
    if (!old_job->hooked)
        return;
    if (old_job->before)
        old_job->before->after = old_job->after;
    else
        threads->first_job = old_job->after;
    if (old_job->after)
        old_job->after->before = old_job->before;
    old_job->hooked = false;
}

/* A failed job has no parts left: those that run finish, the rest are skipped. */
static void note_failure(pl_threads *threads, job *failed, int64_t part, int result)
{
    atomic_store_explicit(&failed->next_part, failed->n_parts, memory_order_relaxed);
    pthread_mutex_lock(&threads->mu);
    if (part < failed->failed_part) {
        failed->failed_part = part;
        failed->result = result;
    }
    pthread_mutex_unlock(&threads->mu);
}

/* next_part needs no memory ordering: the data it leads to was published by the lock under which
 * this thread joined. */
static void do_parts(pl_threads *threads, job *current, int worker)
{
    for (;;) {
        int64_t part = atomic_fetch_add_explicit(&current->next_part, 1, memory_order_relaxed);
        if (part >= current->n_parts)
            return;
        int result = current->work(current->context, part, worker);
        if (result < 0)
            note_failure(threads, current, part, result);
    }
}

/* Called with the lock held; releases it while doing parts. */
static void help_with(pl_threads *threads, job *current)
{
    int worker = current->n_joined++;
    atomic_fetch_add_explicit(&current->n_inside, 1, memory_order_relaxed);
    pthread_mutex_unlock(&threads->mu);
    do_parts(threads, current, worker);
    pthread_mutex_lock(&threads->mu);
    unhook(threads, current);
    if (atomic_fetch_sub_explicit(&current->n_inside, 1, memory_order_relaxed) == 1)
        pthread_cond_broadcast(&threads->someone_left);
}

/* Spins for a while, looking for a job. Called with the lock held, returns with it. */
static void look_out(pl_threads *threads)
{
    uint32_t seen = atomic_load_explicit(&threads->n_jobs, memory_order_relaxed);
    pthread_mutex_unlock(&threads->mu);
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&threads->n_jobs, memory_order_relaxed) != seen)
            break;
        pause_briefly();
    }
    pthread_mutex_lock(&threads->mu);
}

static void *live(void *argument)
{
    pl_threads *threads = argument;
    pthread_mutex_lock(&threads->mu);
    while (!threads->ends) {
        if (threads->first_job) {
            help_with(threads, threads->first_job);
            continue;
        }
        look_out(threads);
        if (threads->first_job || threads->ends)
            continue;
        threads->n_asleep++;
        pthread_cond_wait(&threads->work_came, &threads->mu);
        threads->n_asleep--;
    }
    pthread_mutex_unlock(&threads->mu);
    return NULL;
}

void pl_threads_block_signals(sigset_t *ret_before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < PL_COUNT_OF(own); i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, ret_before);
}

/* Returns the number of threads that could be started. */
static void start(pl_threads *threads, int n_threads)
{
    sigset_t before;
    pl_threads_block_signals(&before);
    threads->n_threads = 1;
    while (threads->n_threads < n_threads) {
        pthread_t *thread = &threads->threads[threads->n_threads - 1];
        if (pthread_create(thread, NULL, live, threads) != 0)
            break;
        char name[16];
        snprintf(name, sizeof name, "plimsoll-%d", threads->n_threads);
        pthread_setname_np(*thread, name);
        threads->n_threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int choose_count(int n_threads)
{
    pl_cpu cpu;
    if (n_threads == 0)
        n_threads = pl_cpu_read("", &cpu) == 0 ? (int)cpu.n_usable : 1;
    return n_threads > THREADS_MOST ? THREADS_MOST : n_threads;
}

int pl_threads_new(int n_threads, pl_threads **ret_threads, pl_error *reterr)
{
    if (n_threads < 0)
        return pl_error_set(reterr, -EINVAL,
                            "%d threads: expected at least 1, or 0 for one per processor",
                            n_threads);
    n_threads = choose_count(n_threads);
    pl_threads *threads =
        calloc(1, sizeof *threads + (size_t)(n_threads - 1) * sizeof threads->threads[0]);
    if (!threads || pl_fork_watch() < 0) {
        free(threads);
        return pl_error_set(reterr, -ENOMEM, "no memory for %d threads", n_threads);
    }
    threads->generation = pl_fork_generation();
    pthread_mutex_init(&threads->mu, NULL);
    pthread_cond_init(&threads->work_came, NULL);
    pthread_cond_init(&threads->someone_left, NULL);
    start(threads, n_threads);
    *ret_threads = threads;
    return 0;
}

static bool is_of_this_process(const pl_threads *threads)
{
    return threads->generation == pl_fork_generation();
}

void pl_threads_free(pl_threads *threads)
{
    if (!threads)
        return;
    /* In a forked child the lock and conditions are as another thread left them: only the memory
     * can be given back. */
    if (is_of_this_process(threads)) {
        pthread_mutex_lock(&threads->mu);
        threads->ends = true;
        pthread_cond_broadcast(&threads->work_came);
        pthread_mutex_unlock(&threads->mu);
        for (int i = 0; i < threads->n_threads - 1; i++)
            pthread_join(threads->threads[i], NULL);
        pthread_cond_destroy(&threads->someone_left);
        pthread_cond_destroy(&threads->work_came);
        pthread_mutex_destroy(&threads->mu);
    }
    free(threads);
}

int pl_threads_count(const pl_threads *threads)
{
    return threads->n_threads;
}

bool pl_threads_work_alone(bool alone)
{
    bool before = works_alone;
    works_alone = alone;
    return before;
}

int pl_threads_count_here(const pl_threads *threads)
{
    return works_alone ? 1 : threads->n_threads;
}

static int run_alone(int64_t n_parts, pl_threads_work *work, void *context)
{
    for (int64_t part = 0; part < n_parts; part++) {
        int result = work(context, part, 0);
        if (result < 0)
            return result;
    }
    return 0;
}

static void publish(pl_threads *threads, job *new_job)
{
    pthread_mutex_lock(&threads->mu);
    hook(threads, new_job);
    int64_t n_wanted = new_job->n_parts - 1;
    for (int i = 0; i < threads->n_asleep && i < n_wanted; i++)
        pthread_cond_signal(&threads->work_came);
    pthread_mutex_unlock(&threads->mu);
}

/* Waits until no thread is inside the job. Takes the lock last in any case: a thread that has left
 * may still hold it, with a pointer to the job. */
static void finish(pl_threads *threads, job *current)
{
    pthread_mutex_lock(&threads->mu);
    unhook(threads, current);
    if (atomic_load_explicit(&current->n_inside, memory_order_relaxed) > 0) {
        pthread_mutex_unlock(&threads->mu);
        for (int i = 0; i < SPINS; i++) {
            if (atomic_load_explicit(&current->n_inside, memory_order_relaxed) == 0)
                break;
            pause_briefly();
        }
        pthread_mutex_lock(&threads->mu);
    }
    while (atomic_load_explicit(&current->n_inside, memory_order_relaxed) > 0)
        pthread_cond_wait(&threads->someone_left, &threads->mu);
    pthread_mutex_unlock(&threads->mu);
}

int pl_threads_run(pl_threads *threads, int64_t n_parts, pl_threads_work *work, void *context)
{
    if (n_parts <= 1 || pl_threads_count_here(threads) == 1 || !is_of_this_process(threads))
        return run_alone(n_parts, work, context);

    job own = {
        .work = work,
        .context = context,
        .n_parts = n_parts,
        .n_joined = 1, /* the caller is worker 0 */
        .failed_part = INT64_MAX,
    };
    publish(threads, &own);
    do_parts(threads, &own, 0);
    finish(threads, &own);
    return own.result;
}
