/* SPDX-License-Identifier: Apache-2.0 */
#include "data/ahead/ahead.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "data/persist/state.h"

enum {
    /* How often a waiting consumer checks whether the pass was cancelled. */
    LOOK_MS = 50,
    /* Elements for each worker by which a number of workers is judged; and how many until the next
     * trial: using fewer workers than help is a loss. */
    LOOK_BACK = 8,
    TRY_MORE = 256,
    TRY_FEWER = 1024,
    TRY_FEWER_MOST = 65536,
};

/* ---- slots ---- */

static const pl_error out_of_memory = {.code = -ENOMEM,
                                       .message = "out of memory while reporting an error"};

void pl_ahead_slot_fill(pl_ahead_slot *slot, int result, pl_element *element, pl_error *error)
{
    slot->result = result;
    slot->starved = result == PL_RETRY_ALONE;
    slot->done = !slot->starved;
    slot->element = *element;
    *element = (pl_element){0};
    if (result < 0 && slot->done && (slot->error = calloc(1, sizeof *slot->error)))
        pl_error_move(slot->error, error);
    pl_error_done(error); /* its element will be made again, or there was no memory for it */
}

int pl_ahead_slot_take(pl_ahead_slot *slot, pl_prefetch_budget *budget, pl_element *ret_element,
                       pl_error *reterr)
{
    int r = slot->result;
    pl_prefetch_budget_give(budget, slot->room_bytes);
    if (r < 0 && slot->error)
        pl_error_move(reterr, slot->error);
    else if (r < 0)
        pl_error_copy(reterr, &out_of_memory);
    free(slot->error);
    *ret_element = slot->element;
    *slot = (pl_ahead_slot){0};
    return r;
}

void pl_ahead_slot_clear(pl_ahead_slot *slot, pl_prefetch_budget *budget)
{
    pl_prefetch_budget_give(budget, slot->room_bytes);
    pl_element_clear(&slot->element);
    pl_error_done(slot->error);
    free(slot->error);
    *slot = (pl_ahead_slot){0};
}

int pl_ahead_slot_save(const pl_ahead_slot *slot, pl_saver *saver, pl_error *reterr)
{
    int r = pl_save_int(saver, slot->result, reterr);
    if (r == 0)
        r = pl_save_element(saver, &slot->element, reterr);
    if (r == 0 && slot->result < 0 && !slot->starved)
        r = pl_save_error(saver, slot->error ? slot->error : &out_of_memory, reterr);
    return r;
}

int pl_ahead_slot_load(pl_ahead_slot *slot, pl_stage *stage, const pl_dataset *input,
                       pl_loader *loader, pl_error *reterr)
{
    int64_t result = 0;
    pl_element element = {0};
    pl_error error = {0};
    int r = pl_load_int(loader, INT32_MIN, 1, &result, reterr);
    bool starved = result == PL_RETRY_ALONE, failed = result < 0 && !starved;
    if (r == 0 && (result == 0 || (starved && !input)))
        r = pl_load_refuse(reterr, "invalid prefetched element");
    const pl_dataset *of = starved ? input : failed ? NULL : stage->dataset;
    if (r == 0)
        r = pl_load_element(loader, of, &element, reterr);
    if (r == 0 && failed)
        r = pl_load_error(loader, &error, reterr);
    if (r < 0) {
        pl_element_clear(&element);
        return r;
    }
    slot->room_bytes = pl_element_bytes(&element) + 1;
    pl_prefetch_budget_take(&stage->pass->prefetch_budget, slot->room_bytes);
    pl_ahead_slot_fill(slot, (int)result, &element, &error);
    return 0;
}

/* ---- workers ---- */

static void run_worker(pl_pool_job *job)
{
    pl_ahead_worker *worker = (pl_ahead_worker *)job;
    pl_ahead *ahead = worker->ahead;
    pl_pass *pass = ahead->stage->pass;
    pl_ahead_lock(ahead);
    while (!pl_worker_pool_is_paused(pass->pool) && ahead->n_working <= ahead->n_parallel &&
           !pl_ahead_is_over(ahead) && ahead->step(ahead->stage))
        ;
    worker->busy = false;
    ahead->n_working--;
    pl_ahead_changed(ahead);
    pl_ahead_unlock(ahead);
}

int pl_ahead_init(pl_ahead *ahead, pl_stage *stage, pl_ahead_step *step, int n_parallel,
                  pl_error *reterr)
{
    pl_worker_pool *pool = stage->pass->pool;
    int n_may = n_parallel > 0 ? pl_worker_pool_want(pool, n_parallel) : pl_worker_pool_size(pool);
    int n_most = n_parallel == PL_AUTO || n_parallel > n_may ? n_may : n_parallel;
    pl_ahead_worker *workers = calloc((size_t)n_most + 1, sizeof *workers);
    if (!workers)
        return pl_error_set(reterr, -ENOMEM, "out of memory for %d workers", n_most);
    *ahead = (pl_ahead){
        .stage = stage,
        .step = step,
        .n_most = n_most,
        .grows = n_parallel == PL_AUTO,
        .workers = workers,
        .n_parallel = n_most,
        .growth = {.since_ns = pl_clock_monotonic_ns(), .wait = TRY_FEWER},
    };
    for (int i = 0; i < n_most; i++)
        workers[i] = (pl_ahead_worker){.base = {.run = run_worker}, .ahead = ahead};
    pthread_mutex_init(&ahead->mu, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    return 0;
}

void pl_ahead_call(pl_ahead *ahead, int64_t n)
{
    if (pl_ahead_is_over(ahead))
        return;
    for (int i = 0; i < ahead->n_most && ahead->n_working < ahead->n_parallel && n > 0; i++) {
        if (ahead->workers[i].busy)
            continue;
        ahead->workers[i].busy = true;
        ahead->n_working++;
        n--;
        pl_worker_pool_submit(ahead->stage->pass->pool, &ahead->workers[i].base);
    }
}

void pl_ahead_withdraw(pl_ahead *ahead)
{
    for (int i = 0; i < ahead->n_most; i++)
        if (ahead->workers[i].busy &&
            pl_worker_pool_withdraw(ahead->stage->pass->pool, &ahead->workers[i].base)) {
            ahead->workers[i].busy = false;
            ahead->n_working--;
        }
}

void pl_ahead_wait(pl_ahead *ahead)
{
    uint64_t begun_ns = pl_clock_monotonic_ns(), until_ns = begun_ns + LOOK_MS * PL_NS_PER_MS;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / PL_NS_PER_SEC),
                                   .tv_nsec = (long)(until_ns % PL_NS_PER_SEC)};
    pthread_cond_clockwait(&ahead->changed, &ahead->mu, CLOCK_MONOTONIC, &until);
    atomic_fetch_add_explicit(&ahead->stage->profile.waiting_ns, pl_clock_monotonic_ns() - begun_ns,
                              memory_order_relaxed);
}

void pl_ahead_stop(pl_ahead *ahead)
{
    if (!ahead->workers)
        return;
    pl_ahead_lock(ahead);
    ahead->closing = true;
    pl_ahead_withdraw(ahead);
    while (ahead->n_working > 0)
        pthread_cond_wait(&ahead->changed, &ahead->mu);
    pl_ahead_unlock(ahead);
}

void pl_ahead_done(pl_ahead *ahead)
{
    if (!ahead->workers)
        return;
    free(ahead->workers);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->mu);
    *ahead = (pl_ahead){0};
}

/* ---- elements ---- */

bool pl_ahead_take_room(pl_ahead *ahead, uint64_t *ret_room_bytes)
{
    pl_pass *pass = ahead->stage->pass;
    if (ahead->element_bytes == 0 || pl_pass_get_mode(pass) != PL_PASS_SHARED)
        return false;
    if (!pl_prefetch_budget_try(&pass->prefetch_budget, ahead->element_bytes)) {
        atomic_fetch_add_explicit(&ahead->stage->profile.n_held, 1, memory_order_relaxed);
        return false;
    }
    *ret_room_bytes = ahead->element_bytes;
    return true;
}

void pl_ahead_fill(pl_ahead *ahead, pl_ahead_slot *slot, int result, pl_element *element,
                   pl_error *error)
{
    ahead->element_bytes = pl_max_u64(ahead->element_bytes, pl_element_bytes(element) + 1);
    pl_ahead_slot_fill(slot, result, element, error);
    pl_ahead_changed(ahead);
}

/* ---- growth ---- */

static void count_from(pl_ahead_growth *growth, int64_t head)
{
    growth->head = head;
    growth->since_ns = pl_clock_monotonic_ns();
    growth->short_ns = 0;
}

/* Starts a trial with half as many workers, or twice as many if there were fewer than allowed. They
 * are judged by elements after those that may be ready already. */
static void begin_trial(pl_ahead *ahead, double rate)
{
    pl_ahead_growth *growth = &ahead->growth;
    int n = ahead->n_parallel, n_most = ahead->n_most;
    growth->n_other = n;
    growth->rate = rate;
    growth->head = growth->n_taken + ahead->n_ahead_most;
    growth->since_ns = 0;
    ahead->n_parallel = n == n_most ? n / 2 : n * 2 < n_most ? n * 2 : n_most;
}

/* Decides whether the larger of the two numbers is worth it: twice as many workers can be twice as
 * fast, and a quarter of that must show. */
static void end_trial(pl_ahead *ahead, double rate)
{
    pl_ahead_growth *growth = &ahead->growth;
    bool had_more = growth->n_other > ahead->n_parallel;
    bool worth = had_more ? growth->rate > 1.25 * rate : rate > 1.25 * growth->rate;
    if (worth == had_more)
        ahead->n_parallel = growth->n_other;
    if (ahead->n_parallel < ahead->n_most)
        growth->wait = TRY_MORE;
    else if (!had_more)
        growth->wait = TRY_FEWER;
    else if (growth->wait < TRY_FEWER_MOST)
        growth->wait *= 2;
    growth->n_other = 0;
    count_from(growth, growth->n_taken);
}

/* The policy: starts with all workers. While the consumer has to wait, now and then tries half of
 * them for a while, or twice as many if there are fewer. */
static void adapt(pl_ahead *ahead)
{
    pl_ahead_growth *growth = &ahead->growth;
    int64_t n = growth->n_taken - growth->head;
    if (growth->since_ns == 0 && n >= 0) {
        count_from(growth, growth->n_taken);
        return;
    }
    if (n < (growth->n_other ? (int64_t)LOOK_BACK * ahead->n_parallel : growth->wait))
        return;
    double took_ns = (double)(pl_clock_monotonic_ns() - growth->since_ns + 1);
    double rate = (double)n / took_ns;
    if (growth->n_other)
        end_trial(ahead, rate);
    else if (ahead->n_most > 1 && (double)growth->short_ns > took_ns / 10)
        begin_trial(ahead, rate);
    else
        count_from(growth, growth->n_taken);
}

uint64_t pl_ahead_short_begin(const pl_ahead *ahead)
{
    return ahead->grows ? pl_clock_monotonic_ns() : 0;
}

void pl_ahead_short_end(pl_ahead *ahead, uint64_t begun_ns)
{
    if (begun_ns == 0)
        return;
    ahead->growth.short_ns += pl_clock_monotonic_ns() - begun_ns;
    adapt(ahead);
}
