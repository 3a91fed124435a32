/* SPDX-License-Identifier: Apache-2.0 */
#include "data/ahead/ahead.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "data/persist/state.h"
#include "util/threads.h"

enum {
    /* More than a few elements ready beyond what is being worked on only wait. */
    SLOTS_PER_WORKER = 2,
    AUTO_SLOTS = 16,
    SLOTS_MOST = 65536,
    /* Whoever waits looks so often whether the pass was cancelled. */
    LOOK_MS = 50,
    /* Elements for each worker that the use of a number of them is judged by; and how many until
     * another is tried: fewer than all are a loss if they are of use. */
    LOOK_BACK = 8,
    TRY_MORE = 256,
    TRY_FEWER = 1024,
    TRY_FEWER_MOST = 65536,
};

static void run_job(pl_job *job);

int pl_ahead_init(pl_ahead *ahead, pl_stage *stage, const pl_ahead_class *class, int64_t n_slots,
                  int n_parallel, pl_error *reterr)
{
    pl_crew *crew = stage->pass->crew;
    bool grows = n_parallel == PL_AUTO;
    int n_most = grows ? pl_crew_size(crew) : n_parallel;
    if (!grows && n_parallel > pl_crew_want(crew, n_parallel))
        n_most = pl_crew_size(crew);
    if (n_most < 1)
        n_most = 1;
    if (n_slots > SLOTS_MOST)
        n_slots = SLOTS_MOST;
    if (n_slots == PL_AUTO)
        n_slots = class->finish ? (int64_t)n_most * SLOTS_PER_WORKER : AUTO_SLOTS;
    pl_slot *slots = calloc((size_t)n_slots, sizeof *slots);
    pl_ahead_job *jobs = calloc((size_t)n_most, sizeof *jobs);
    if (!slots || !jobs) {
        free(slots);
        free(jobs);
        return pl_error_set(reterr, -ENOMEM, "no memory for %lld elements ahead",
                            (long long)n_slots);
    }
    *ahead = (pl_ahead){.stage = stage,
                        .class = class,
                        .n_slots = n_slots,
                        .n_most = n_most,
                        .slots = slots,
                        .jobs = jobs,
                        .grows = grows};
    ahead->n_parallel = n_most;
    ahead->growth = (pl_ahead_growth){.since_ns = pl_clock_monotonic_ns(), .wait = TRY_FEWER};
    for (int i = 0; i < n_most; i++)
        jobs[i] = (pl_ahead_job){.base = {.run = run_job}, .ahead = ahead};
    pthread_mutex_init(&ahead->pulling, NULL);
    pthread_mutex_init(&ahead->mu, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    return 0;
}

/* ---- making one ---- */

static void lock(pl_ahead *ahead)
{
    pthread_mutex_lock(&ahead->mu);
}

static void unlock(pl_ahead *ahead)
{
    pthread_mutex_unlock(&ahead->mu);
}

static bool is_over(const pl_ahead *ahead)
{
    return ahead->ended || ahead->closing || pl_pass_is_over(ahead->stage->pass);
}

/* With mu held: may one more be begun, and with how many bytes of room? The one that is waited for
 * needs none. */
static bool may_begin(pl_ahead *ahead, uint64_t *ret_room_bytes)
{
    int64_t n = ahead->tail - ahead->head + ahead->n_beginning + ahead->n_unplaced;
    pl_pass *pass = ahead->stage->pass;
    *ret_room_bytes = 0;
    if (is_over(ahead) || ahead->starved || n >= ahead->n_slots)
        return false;
    if (n == 0)
        return true;
    if (ahead->element_bytes == 0 || pl_pass_turn(pass) != PL_TURN_ALL)
        return false; /* what they cost is not known before the first is made */
    if (!pl_headway_try(&pass->headway, ahead->element_bytes)) {
        atomic_fetch_add_explicit(&ahead->stage->profile.n_held, 1, memory_order_relaxed);
        return false;
    }
    *ret_room_bytes = ahead->element_bytes;
    return true;
}

/* With mu held: what became of it. */
static void put(pl_ahead *ahead, pl_slot *slot, int r, pl_element *element, pl_error *error)
{
    slot->result = r;
    slot->element = *element; /* of a bad one: what it was read from */
    slot->starved = r == PL_RETRY_ALONE;
    slot->done = !slot->starved;
    ahead->element_bytes = pl_max_u64(ahead->element_bytes, pl_element_bytes(element) + 1);
    if (r < 0 && slot->done && (slot->error = calloc(1, sizeof *slot->error)))
        pl_error_move(slot->error, error);
    pthread_cond_broadcast(&ahead->changed);
}

/* With mu held: the next slot. In any order an element gets it when it is made. */
static pl_slot *give_slot(pl_ahead *ahead, uint64_t room_bytes)
{
    pl_slot *slot = &ahead->slots[ahead->tail++ % ahead->n_slots];
    *slot = (pl_slot){.room_bytes = room_bytes};
    return slot;
}

/* With mu held, and returns so: begins and finishes one element. Its function has threads to itself
 * only while nobody makes another. */
static void make_one(pl_ahead *ahead, uint64_t room_bytes)
{
    pl_element begun = {0}, element = {0};
    pl_error error = {0};
    ahead->n_beginning++;
    unlock(ahead);
    pthread_mutex_lock(&ahead->pulling);
    lock(ahead);
    bool over = is_over(ahead); /* the one before us met the end */
    unlock(ahead);
    int r = over ? 0 : ahead->class->begin(ahead->stage, &begun, &error);
    lock(ahead);
    ahead->n_beginning--;
    if (r == 0 || r == PL_RETRY_ALONE) {
        ahead->ended |= r == 0 && !over;
        ahead->starved |= r == PL_RETRY_ALONE;
        pl_headway_give(&ahead->stage->pass->headway, room_bytes);
        pthread_cond_broadcast(&ahead->changed);
        pthread_mutex_unlock(&ahead->pulling);
        return;
    }
    bool unplaced = ahead->stage->pass->nondeterministic;
    ahead->n_unplaced += unplaced;
    pl_slot *slot = unplaced ? NULL : give_slot(ahead, room_bytes);
    bool alone = pl_threads_work_alone(ahead->n_working > 1);
    unlock(ahead);
    pthread_mutex_unlock(&ahead->pulling);
    if (r > 0 && ahead->class->finish)
        r = ahead->class->finish(ahead->stage, &begun, &element, &error);
    else
        element = begun;
    (void)pl_threads_work_alone(alone);
    lock(ahead);
    ahead->n_unplaced -= unplaced;
    put(ahead, unplaced ? give_slot(ahead, room_bytes) : slot, r,
        r == PL_RETRY_ALONE ? &begun : &element, &error);
}

/* With mu held, and returns so: tries it again. False: it did not fit this time, either. */
static bool finish_starved(pl_ahead *ahead, pl_slot *slot)
{
    pl_element begun = slot->element, element = {0};
    pl_error error = {0};
    slot->element = (pl_element){0};
    slot->starved = false;
    unlock(ahead);
    int r = ahead->class->finish(ahead->stage, &begun, &element, &error);
    lock(ahead);
    put(ahead, slot, r, r == PL_RETRY_ALONE ? &begun : &element, &error);
    return r != PL_RETRY_ALONE;
}

/* ---- workers ---- */

static void run_job(pl_job *job)
{
    pl_ahead_job *own = (pl_ahead_job *)job;
    pl_ahead *ahead = own->ahead;
    uint64_t room_bytes;
    lock(ahead);
    while (!pl_crew_is_paused(ahead->stage->pass->crew) && ahead->n_working <= ahead->n_parallel &&
           may_begin(ahead, &room_bytes))
        make_one(ahead, room_bytes);
    own->busy = false;
    ahead->n_working--;
    pthread_cond_broadcast(&ahead->changed);
    unlock(ahead);
}

/* With mu held: lets the crew go on, if there is something to do. */
static void call_crew(pl_ahead *ahead)
{
    if (is_over(ahead))
        return;
    int64_t n_free =
        ahead->n_slots - (ahead->tail - ahead->head) - ahead->n_beginning - ahead->n_unplaced;
    for (int i = 0; i < ahead->n_most && ahead->n_working < ahead->n_parallel && n_free > 0; i++) {
        if (ahead->jobs[i].busy)
            continue;
        ahead->jobs[i].busy = true;
        ahead->n_working++;
        n_free--;
        pl_crew_submit(ahead->stage->pass->crew, &ahead->jobs[i].base);
    }
}

/* With mu held: takes back the jobs that nobody has begun. */
static void withdraw(pl_ahead *ahead)
{
    for (int i = 0; i < ahead->n_most; i++)
        if (ahead->jobs[i].busy &&
            pl_crew_withdraw(ahead->stage->pass->crew, &ahead->jobs[i].base)) {
            ahead->jobs[i].busy = false;
            ahead->n_working--;
        }
}

static void begin_to_count(pl_ahead_growth *growth, int64_t head)
{
    growth->head = head;
    growth->since_ns = pl_clock_monotonic_ns();
    growth->short_ns = 0;
}

/* With mu held: half as many workers, or twice as many if there were fewer than there can be. They
 * are judged by the elements behind those that may be there already. */
static void try_others(pl_ahead *ahead, double rate)
{
    pl_ahead_growth *growth = &ahead->growth;
    int n = ahead->n_parallel, n_most = ahead->n_most;
    growth->n_other = n;
    growth->rate = rate;
    growth->head = ahead->head + ahead->n_slots;
    growth->since_ns = 0;
    ahead->n_parallel = n == n_most ? n / 2 : n * 2 < n_most ? n * 2 : n_most;
}

/* With mu held: is the larger of the two numbers worth it? Twice as many can make it twice as fast;
 * a quarter of that must show. */
static void judge(pl_ahead *ahead, double rate)
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
    begin_to_count(growth, ahead->head);
}

/* With mu held, where next() had nothing ready. */
static void grow(pl_ahead *ahead)
{
    pl_ahead_growth *growth = &ahead->growth;
    int64_t n = ahead->head - growth->head;
    if (growth->since_ns == 0 && n >= 0) {
        begin_to_count(growth, ahead->head);
        return;
    }
    if (n < (growth->n_other ? (int64_t)LOOK_BACK * ahead->n_parallel : growth->wait))
        return;
    double took_ns = (double)(pl_clock_monotonic_ns() - growth->since_ns + 1);
    double rate = (double)n / took_ns;
    if (growth->n_other)
        judge(ahead, rate);
    else if (ahead->n_most > 1 && (double)growth->short_ns > took_ns / 10)
        try_others(ahead, rate);
    else
        begin_to_count(growth, ahead->head);
}

/* With mu held: works, or waits for those who do. */
static void work_or_wait(pl_ahead *ahead)
{
    uint64_t room_bytes;
    /* Under a watchdog nobody who is waited for begins what may hang, but the head itself. */
    bool helps = ahead->head == ahead->tail || ahead->stage->pass->watchdog_ns == 0;
    withdraw(ahead);
    if (helps && ahead->n_working < ahead->n_parallel && ahead->n_beginning == 0 &&
        may_begin(ahead, &room_bytes)) {
        ahead->n_working++;
        call_crew(ahead);
        make_one(ahead, room_bytes);
        ahead->n_working--;
        return;
    }
    call_crew(ahead);
    uint64_t begun_ns = pl_clock_monotonic_ns(), until_ns = begun_ns + LOOK_MS * PL_NS_PER_MS;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / PL_NS_PER_SEC),
                                   .tv_nsec = (long)(until_ns % PL_NS_PER_SEC)};
    pthread_cond_clockwait(&ahead->changed, &ahead->mu, CLOCK_MONOTONIC, &until);
    atomic_fetch_add_explicit(&ahead->stage->profile.waiting_ns, pl_clock_monotonic_ns() - begun_ns,
                              memory_order_relaxed);
}

static int take(pl_ahead *ahead, pl_element *ret_element, pl_error *reterr)
{
    pl_slot *slot = &ahead->slots[ahead->head++ % ahead->n_slots];
    pl_headway_give(&ahead->stage->pass->headway, slot->room_bytes);
    if (slot->result < 0) {
        if (slot->error)
            pl_error_move(reterr, slot->error);
        else
            pl_error_set(reterr, -ENOMEM, "out of memory while reporting an error");
        free(slot->error);
    }
    *ret_element = slot->element;
    int r = slot->result;
    *slot = (pl_slot){0};
    ahead->starved = false;
    return r;
}

/* With mu held: 0 if whoever waits for the head is to work or wait; else what next() returns, and
 * `ret_ended` for an end. */
static int look(pl_ahead *ahead, bool *ret_ended, pl_error *reterr)
{
    pl_pass *pass = ahead->stage->pass;
    if (pl_pass_is_over(pass))
        return pl_pass_over(pass, reterr);
    if (ahead->head < ahead->tail) {
        pl_slot *slot = &ahead->slots[ahead->head % ahead->n_slots];
        return slot->starved && !finish_starved(ahead, slot) ? PL_RETRY_ALONE : 0;
    }
    if (ahead->n_beginning > 0 || ahead->n_unplaced > 0)
        return 0;
    *ret_ended = ahead->ended;
    if (ahead->starved && pl_pass_turn(pass) != PL_TURN_ALONE)
        return PL_RETRY_ALONE;
    ahead->starved = false;
    return 0;
}

static bool is_ready(const pl_ahead *ahead)
{
    return ahead->head < ahead->tail && ahead->slots[ahead->head % ahead->n_slots].done;
}

int pl_ahead_next(pl_ahead *ahead, pl_element *ret_element, pl_error *reterr)
{
    int r = 0;
    bool ended = false;
    lock(ahead);
    bool clocks = ahead->grows && !is_ready(ahead);
    uint64_t begun_ns = clocks ? pl_clock_monotonic_ns() : 0;
    while (!is_ready(ahead) && !ended && r == 0) {
        r = look(ahead, &ended, reterr);
        if (r == 0 && !ended && !is_ready(ahead))
            work_or_wait(ahead);
    }
    if (clocks) {
        ahead->growth.short_ns += pl_clock_monotonic_ns() - begun_ns;
        grow(ahead);
    }
    if (r == 0 && !ended) {
        r = take(ahead, ret_element, reterr);
        call_crew(ahead);
    }
    atomic_store_explicit(&ahead->stage->profile.n_ahead, ahead->tail - ahead->head,
                          memory_order_relaxed);
    atomic_store_explicit(&ahead->stage->profile.n_parallel, ahead->n_parallel,
                          memory_order_relaxed);
    unlock(ahead);
    return r;
}

void pl_ahead_done(pl_ahead *ahead)
{
    if (!ahead->slots)
        return;
    lock(ahead);
    ahead->closing = true;
    withdraw(ahead);
    while (ahead->n_working > 0)
        pthread_cond_wait(&ahead->changed, &ahead->mu);
    unlock(ahead);
    for (; ahead->head < ahead->tail; ahead->head++) {
        pl_slot *slot = &ahead->slots[ahead->head % ahead->n_slots];
        pl_headway_give(&ahead->stage->pass->headway, slot->room_bytes);
        pl_element_clear(&slot->element);
        pl_error_done(slot->error);
        free(slot->error);
    }
    free(ahead->slots);
    free(ahead->jobs);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->mu);
    pthread_mutex_destroy(&ahead->pulling);
    *ahead = (pl_ahead){0};
}

/* ---- checkpoints ---- */

static int save_slot(const pl_slot *slot, pl_saver *saver, pl_error *reterr)
{
    static const pl_error untold = {.code = -ENOMEM,
                                    .message = "out of memory while reporting an error"};
    int r = pl_save_int(saver, slot->result, reterr);
    if (r == 0)
        r = pl_save_element(saver, &slot->element, reterr);
    if (r == 0 && slot->result < 0 && !slot->starved)
        r = pl_save_error(saver, slot->error ? slot->error : &untold, reterr);
    return r;
}

int pl_ahead_save(pl_ahead *ahead, pl_saver *saver, pl_error *reterr)
{
    lock(ahead); /* for what those at work have written last */
    int64_t head = ahead->head, tail = ahead->tail;
    unlock(ahead);
    int r = pl_save_int(saver, tail - head, reterr);
    if (r == 0)
        r = pl_save_int(saver, ahead->ended, reterr);
    for (int64_t i = head; r == 0 && i < tail; i++)
        r = save_slot(&ahead->slots[i % ahead->n_slots], saver, reterr);
    return r;
}

static int load_slot(pl_ahead *ahead, pl_slot *slot, pl_loader *loader, pl_error *reterr)
{
    int64_t result = 0;
    pl_error error = {0};
    const pl_dataset *dataset = ahead->stage->dataset;
    int r = pl_load_int(loader, INT32_MIN, 1, &result, reterr);
    bool starved = result == PL_RETRY_ALONE, failed = result < 0 && !starved;
    if (r == 0 && (result == 0 || (starved && !ahead->class->finish)))
        r = pl_load_refuse(reterr, "an element ahead is none");
    if (r == 0)
        r = pl_load_element(loader,
                            starved  ? dataset->inputs[0]
                            : failed ? NULL
                                     : dataset,
                            &slot->element, reterr);
    if (r == 0 && failed)
        r = pl_load_error(loader, &error, reterr);
    if (r < 0) { /* the slot is not among those in use, which are cleared */
        pl_element_clear(&slot->element);
        return r;
    }
    if (failed && (slot->error = calloc(1, sizeof *slot->error)))
        pl_error_move(slot->error, &error);
    slot->result = (int)result;
    slot->starved = starved;
    slot->done = !starved;
    slot->room_bytes = pl_element_bytes(&slot->element) + 1;
    pl_headway_take(&ahead->stage->pass->headway, slot->room_bytes);
    ahead->element_bytes = pl_max_u64(ahead->element_bytes, slot->room_bytes);
    return 0;
}

/* There may have been more slots where it was saved: their number follows from processors. */
static int make_slots(pl_ahead *ahead, int64_t n, pl_error *reterr)
{
    if (n <= ahead->n_slots)
        return 0;
    pl_slot *slots = calloc((size_t)n, sizeof *slots);
    if (!slots)
        return pl_error_set(reterr, -ENOMEM, "no memory for %lld elements ahead", (long long)n);
    free(ahead->slots);
    ahead->slots = slots;
    ahead->n_slots = n;
    return 0;
}

int pl_ahead_restore(pl_ahead *ahead, pl_loader *loader, pl_error *reterr)
{
    int64_t n, ended;
    int r = pl_load_int(loader, 0, SLOTS_MOST, &n, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &ended, reterr);
    if (r == 0)
        r = make_slots(ahead, n, reterr);
    if (r < 0)
        return r;
    ahead->ended = ended;
    for (int64_t i = 0; r == 0 && i < n; i++) {
        r = load_slot(ahead, &ahead->slots[i], loader, reterr);
        ahead->tail += r == 0;
    }
    return r;
}
