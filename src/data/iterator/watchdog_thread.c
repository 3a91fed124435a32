/* SPDX-License-Identifier: Apache-2.0 */
#include "data/iterator/watchdog_thread.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "data/iterator/activity.h"
#include "util/threads.h"

/* A cancelled pull that can end does so within this time; the consumer gets its error no later. */
#define MOMENT_NS (100 * PL_NS_PER_MS)

/* How long a pull may take to end when the consumer leaves. */
#define FREE_NS (2 * PL_NS_PER_SEC)

struct pl_watchdog_thread {
    pl_watched_pull how; /* constant, as are the next two */
    pl_pass *pass;
    pthread_t thread;
    pthread_mutex_t mu; /* leaf lock; guards all that follows */
    pthread_cond_t asked, answered;
    bool wanted;    /* the consumer waits for an element */
    bool ends;      /* the consumer has left */
    bool closed;    /* close() is done */
    bool abandoned; /* nobody waits: the thread frees the struct */
    bool lost;
    int result;
    pl_element element;
    pl_error error;
};

static void free_watchdog(pl_watchdog_thread *watchdog)
{
    pl_element_clear(&watchdog->element);
    pl_error_done(&watchdog->error);
    pthread_cond_destroy(&watchdog->answered);
    pthread_cond_destroy(&watchdog->asked);
    pthread_mutex_destroy(&watchdog->mu);
    free(watchdog);
}

/* ---- the thread ---- */

/* Call with mu held, which it releases meanwhile. */
static void pull(pl_watchdog_thread *watchdog)
{
    pl_element element = {0};
    pl_error error = {0};
    pthread_mutex_unlock(&watchdog->mu);
    int r = watchdog->how.pull(watchdog->how.context, &element, &error);
    pthread_mutex_lock(&watchdog->mu);
    watchdog->element = element;
    pl_error_move(&watchdog->error, &error); /* the one before was taken: nothing is released */
    watchdog->result = r;
    watchdog->wanted = false;
    pthread_cond_signal(&watchdog->answered);
}

static void *work(void *context)
{
    pl_watchdog_thread *watchdog = context;
    pthread_mutex_lock(&watchdog->mu);
    while (!watchdog->ends || watchdog->wanted) {
        if (watchdog->wanted)
            pull(watchdog);
        else
            pthread_cond_wait(&watchdog->asked, &watchdog->mu);
    }
    pl_element_clear(&watchdog->element); /* that came too late */
    pthread_mutex_unlock(&watchdog->mu);
    watchdog->how.close(watchdog->how.context);
    pthread_mutex_lock(&watchdog->mu);
    watchdog->closed = true;
    bool abandoned = watchdog->abandoned;
    pthread_cond_signal(&watchdog->answered);
    pthread_mutex_unlock(&watchdog->mu);
    if (abandoned)
        free_watchdog(watchdog);
    return NULL;
}

int pl_watchdog_thread_new(const pl_watched_pull *how, pl_pass *pass,
                           pl_watchdog_thread **ret_watchdog, pl_error *reterr)
{
    pl_watchdog_thread *watchdog = calloc(1, sizeof *watchdog);
    if (!watchdog)
        return pl_error_set(reterr, -ENOMEM, "out of memory for a watchdog");
    watchdog->how = *how;
    watchdog->pass = pass;
    pthread_mutex_init(&watchdog->mu, NULL);
    pthread_cond_init(&watchdog->asked, NULL);
    pthread_cond_init(&watchdog->answered, NULL);
    sigset_t before;
    pl_threads_block_signals(&before);
    int r = -pthread_create(&watchdog->thread, NULL, work, watchdog);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r < 0) {
        free_watchdog(watchdog);
        return pl_error_set(reterr, r, "a watchdog needs a thread: %s", pl_error_text(r));
    }
    *ret_watchdog = watchdog;
    return 0;
}

/* ---- the consumer ---- */

/* Waits for an answer, or for at most this long. Call with mu held. */
static void wait_for(pl_watchdog_thread *watchdog, uint64_t ns)
{
    uint64_t until_ns = pl_clock_monotonic_ns() + ns;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / PL_NS_PER_SEC),
                                   .tv_nsec = (long)(until_ns % PL_NS_PER_SEC)};
    pthread_cond_clockwait(&watchdog->answered, &watchdog->mu, CLOCK_MONOTONIC, &until);
}

static void bark(pl_watchdog_thread *watchdog)
{
    char text[PL_ACTIVITY_TEXT_BYTES];
    pl_error error = PL_ERROR_INIT;
    pl_activity_describe(watchdog->pass, text);
    pl_pass_fail(watchdog->pass, -ETIMEDOUT, &error, "no progress for %.1f s: %s",
                 (double)watchdog->pass->watchdog_ns / (double)PL_NS_PER_SEC, text);
}

/* Waits until the element is ready, or the consumer gives up. Call with mu held. */
static void watch(pl_watchdog_thread *watchdog)
{
    pl_pass *pass = watchdog->pass;
    const uint64_t look_ns = pl_min_u64(pass->watchdog_ns / 4 + 1, MOMENT_NS / 2);
    uint64_t progress = pl_activity_progress(pass), since_ns = pl_clock_monotonic_ns();
    bool over = false;
    while (watchdog->wanted && !watchdog->lost) {
        wait_for(watchdog, look_ns);
        uint64_t now_ns = pl_clock_monotonic_ns(), now_at = pl_activity_progress(pass);
        bool is_over = pl_pass_is_over(pass);
        if (now_at != progress || is_over != over) {
            progress = now_at;
            since_ns = now_ns;
            over = is_over;
        } else if (over && now_ns - since_ns >= MOMENT_NS / 2) {
            watchdog->lost = true;
        } else if (!over && now_ns - since_ns >= pass->watchdog_ns && watchdog->wanted) {
            bark(watchdog);
        }
    }
}

int pl_watchdog_thread_next(pl_watchdog_thread *watchdog, pl_element *ret_element, pl_error *reterr)
{
    pthread_mutex_lock(&watchdog->mu);
    if (!watchdog->lost) {
        watchdog->wanted = true;
        pthread_cond_signal(&watchdog->asked);
        watch(watchdog);
    }
    int r = PL_REPORTED;
    if (watchdog->lost) {
        *ret_element = (pl_element){0};
        r = pl_pass_over(watchdog->pass, reterr);
    } else {
        *ret_element = watchdog->element;
        watchdog->element = (pl_element){0};
        pl_error_move(reterr, &watchdog->error);
        r = watchdog->result;
    }
    pthread_mutex_unlock(&watchdog->mu);
    return r;
}

void pl_watchdog_thread_free(pl_watchdog_thread *watchdog)
{
    uint64_t begun_ns = pl_clock_monotonic_ns();
    pthread_mutex_lock(&watchdog->mu);
    uint64_t most_ns = watchdog->lost ? MOMENT_NS : FREE_NS;
    watchdog->ends = true;
    pthread_cond_signal(&watchdog->asked);
    while (!watchdog->closed && pl_clock_monotonic_ns() - begun_ns < most_ns)
        wait_for(watchdog, MOMENT_NS / 4);
    bool closed = watchdog->closed;
    watchdog->abandoned = !closed;
    if (closed)
        pthread_mutex_unlock(&watchdog->mu);
    else {
        pthread_detach(watchdog->thread);
        pthread_mutex_unlock(&watchdog->mu); /* from here on the thread owns it */
        return;
    }
    pthread_join(watchdog->thread, NULL);
    free_watchdog(watchdog);
}
