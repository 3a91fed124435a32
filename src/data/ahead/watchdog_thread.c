/* SPDX-License-Identifier: Apache-2.0 */
#include "data/ahead/watchdog_thread.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "data/core/activity.h"
#include "util/threads.h"

/* What is cancelled and can end does so within this; the consumer is told no later than that. */
#define MOMENT_NS (100 * PL_NS_PER_MS)

/* What is at work when the consumer leaves, and can end, has this long. */
#define FREE_NS (2 * PL_NS_PER_SEC)

struct pl_puller {
    pl_pull how; /* constant, as are the next two */
    pl_pass *pass;
    pthread_t thread;
    pthread_mutex_t mu; /* leaf lock; guards all that follows */
    pthread_cond_t asked, answered;
    bool wanted;    /* an element, which has not come yet */
    bool ends;      /* the consumer has gone */
    bool closed;    /* close() is done */
    bool abandoned; /* nobody waits for that: the thread frees the puller */
    bool lost;
    int result;
    pl_element element;
    pl_error error;
};

static void free_puller(pl_puller *puller)
{
    pl_element_clear(&puller->element);
    pl_error_done(&puller->error);
    pthread_cond_destroy(&puller->answered);
    pthread_cond_destroy(&puller->asked);
    pthread_mutex_destroy(&puller->mu);
    free(puller);
}

/* ---- the thread ---- */

/* With mu held, and returns so. */
static void pull(pl_puller *puller)
{
    pl_element element = {0};
    pl_error error = {0};
    pthread_mutex_unlock(&puller->mu);
    int r = puller->how.pull(puller->how.context, &element, &error);
    pthread_mutex_lock(&puller->mu);
    puller->element = element;
    pl_error_move(&puller->error, &error);
    puller->result = r;
    puller->wanted = false;
    pthread_cond_signal(&puller->answered);
}

static void *work(void *context)
{
    pl_puller *puller = context;
    pthread_mutex_lock(&puller->mu);
    while (!puller->ends || puller->wanted) {
        if (puller->wanted)
            pull(puller);
        else
            pthread_cond_wait(&puller->asked, &puller->mu);
    }
    pl_element_clear(&puller->element); /* that came too late */
    pthread_mutex_unlock(&puller->mu);
    puller->how.close(puller->how.context);
    pthread_mutex_lock(&puller->mu);
    puller->closed = true;
    bool abandoned = puller->abandoned;
    pthread_cond_signal(&puller->answered);
    pthread_mutex_unlock(&puller->mu);
    if (abandoned)
        free_puller(puller);
    return NULL;
}

int pl_puller_new(const pl_pull *how, pl_pass *pass, pl_puller **ret_puller, pl_error *reterr)
{
    pl_puller *puller = calloc(1, sizeof *puller);
    if (!puller)
        return pl_error_set(reterr, -ENOMEM, "no memory for a watchdog");
    puller->how = *how;
    puller->pass = pass;
    pthread_mutex_init(&puller->mu, NULL);
    pthread_cond_init(&puller->asked, NULL);
    pthread_cond_init(&puller->answered, NULL);
    sigset_t before;
    pl_threads_block_signals(&before);
    int r = -pthread_create(&puller->thread, NULL, work, puller);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r < 0) {
        free_puller(puller);
        return pl_error_set(reterr, r, "a watchdog needs a thread, and there is none: %s",
                            pl_error_text(r));
    }
    *ret_puller = puller;
    return 0;
}

/* ---- the consumer ---- */

/* With mu held: until something was answered, or for so long. */
static void wait_for(pl_puller *puller, uint64_t ns)
{
    uint64_t until_ns = pl_clock_monotonic_ns() + ns;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / PL_NS_PER_SEC),
                                   .tv_nsec = (long)(until_ns % PL_NS_PER_SEC)};
    pthread_cond_clockwait(&puller->answered, &puller->mu, CLOCK_MONOTONIC, &until);
}

static void bark(pl_puller *puller)
{
    char text[PL_WATCH_TEXT_BYTES];
    pl_error error = {0};
    pl_watch_tell(puller->pass, text);
    pl_pass_fail(puller->pass, -ETIMEDOUT, &error, "no progress for %.1f s: %s",
                 (double)puller->pass->watchdog_ns / (double)PL_NS_PER_SEC, text);
    pl_error_done(&error);
}

/* With mu held: until the element is there, or nobody waits for it any more. */
static void watch(pl_puller *puller)
{
    pl_pass *pass = puller->pass;
    const uint64_t look_ns = pl_min_u64(pass->watchdog_ns / 4 + 1, MOMENT_NS / 2);
    uint64_t progress = pl_watch_progress(pass), since_ns = pl_clock_monotonic_ns();
    bool over = false;
    while (puller->wanted && !puller->lost) {
        wait_for(puller, look_ns);
        uint64_t now_ns = pl_clock_monotonic_ns(), now_at = pl_watch_progress(pass);
        bool is_over = pl_pass_is_over(pass);
        if (now_at != progress || is_over != over) {
            progress = now_at;
            since_ns = now_ns;
            over = is_over;
        } else if (over && now_ns - since_ns >= MOMENT_NS / 2) {
            puller->lost = true;
        } else if (!over && now_ns - since_ns >= pass->watchdog_ns && puller->wanted) {
            bark(puller);
        }
    }
}

int pl_puller_next(pl_puller *puller, pl_element *ret_element, pl_error *reterr)
{
    pthread_mutex_lock(&puller->mu);
    if (!puller->lost) {
        puller->wanted = true;
        pthread_cond_signal(&puller->asked);
        watch(puller);
    }
    int r = PL_REPORTED;
    if (puller->lost) {
        *ret_element = (pl_element){0};
        r = pl_pass_over(puller->pass, reterr);
    } else {
        *ret_element = puller->element;
        puller->element = (pl_element){0};
        pl_error_move(reterr, &puller->error);
        r = puller->result;
    }
    pthread_mutex_unlock(&puller->mu);
    return r;
}

void pl_puller_free(pl_puller *puller)
{
    uint64_t begun_ns = pl_clock_monotonic_ns();
    pthread_mutex_lock(&puller->mu);
    uint64_t most_ns = puller->lost ? MOMENT_NS : FREE_NS;
    puller->ends = true;
    pthread_cond_signal(&puller->asked);
    while (!puller->closed && pl_clock_monotonic_ns() - begun_ns < most_ns)
        wait_for(puller, MOMENT_NS / 4);
    bool closed = puller->closed;
    puller->abandoned = !closed;
    if (closed)
        pthread_mutex_unlock(&puller->mu);
    else {
        pthread_detach(puller->thread);
        pthread_mutex_unlock(&puller->mu); /* from here on it is the thread's */
        return;
    }
    pthread_join(puller->thread, NULL);
    free_puller(puller);
}
