/* SPDX-License-Identifier: Apache-2.0 */
#include "data/ahead/ahead_stage.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "data/persist/state.h"
#include "util/threads.h"

enum {
    /* More ready elements than a few beyond those in progress would only wait. */
    SLOTS_PER_WORKER = 2,
    AUTO_SLOTS = 16,
    SLOTS_MOST = 65536,
};

static pl_ahead_slot *slot_at(const pl_ahead_stage *own, int64_t at)
{
    return &own->slots[at % own->n_slots];
}

/* ---- making one ---- */

static int64_t n_free(const pl_ahead_stage *own)
{
    return own->n_slots - (own->tail - own->head) - own->n_beginning - own->n_unplaced;
}

static bool is_over(const pl_ahead_stage *own)
{
    return own->ended || pl_ahead_is_over(&own->ahead);
}

/* Returns whether another element may be begun, and with how much room. The one that the consumer
 * waits for needs none. Call with mu held. */
static bool may_begin(pl_ahead_stage *own, uint64_t *ret_room_bytes)
{
    *ret_room_bytes = 0;
    if (is_over(own) || own->starved || n_free(own) <= 0)
        return false;
    return n_free(own) == own->n_slots || pl_ahead_take_room(&own->ahead, ret_room_bytes);
}

/* Call with mu held. */
static pl_ahead_slot *next_slot(pl_ahead_stage *own, uint64_t room_bytes)
{
    pl_ahead_slot *slot = slot_at(own, own->tail++);
    *slot = (pl_ahead_slot){.room_bytes = room_bytes};
    return slot;
}

static int finish(pl_ahead_stage *own, pl_element *begun, pl_element *ret_element, pl_error *reterr)
{
    if (own->function)
        return pl_bound_function_map(own->function, &own->base, begun, ret_element, reterr);
    *ret_element = *begun;
    return 1;
}

/* Call with mu held, which it releases meanwhile. A function has all threads to itself only while
 * no other element is being made. */
static void make_one(pl_ahead_stage *own, uint64_t room_bytes)
{
    pl_stage *stage = &own->base;
    pl_element begun = {0}, element = {0};
    pl_error error = {0};
    own->n_beginning++;
    pl_ahead_unlock(&own->ahead);
    pthread_mutex_lock(&own->pulling);
    pl_ahead_lock(&own->ahead);
    bool over = is_over(own); /* an earlier element was the end */
    pl_ahead_unlock(&own->ahead);
    int r = over ? 0 : pl_stage_next(stage->inputs[0], &begun, &error);
    if (r > 0 && own->function)
        begun.draw = pl_bound_function_draw(stage);
    pl_ahead_lock(&own->ahead);
    own->n_beginning--;
    if (r == 0 || r == PL_RETRY_ALONE) {
        own->ended |= r == 0 && !over;
        own->starved |= r == PL_RETRY_ALONE;
        pl_prefetch_budget_give(&stage->pass->prefetch_budget, room_bytes);
        pl_ahead_changed(&own->ahead);
        pthread_mutex_unlock(&own->pulling);
        pl_error_done(&error);
        return;
    }
    bool unplaced = stage->pass->nondeterministic;
    own->n_unplaced += unplaced;
    pl_ahead_slot *slot = unplaced ? NULL : next_slot(own, room_bytes);
    bool alone = pl_threads_work_alone(own->ahead.n_working > 1);
    pl_ahead_unlock(&own->ahead);
    pthread_mutex_unlock(&own->pulling);
    if (r > 0)
        r = finish(own, &begun, &element, &error);
    else
        element = begun;
    (void)pl_threads_work_alone(alone);
    pl_ahead_lock(&own->ahead);
    own->n_unplaced -= unplaced;
    pl_ahead_fill(&own->ahead, unplaced ? next_slot(own, room_bytes) : slot, r,
                  r == PL_RETRY_ALONE ? &begun : &element, &error);
}

/* Call with mu held. */
static void call_workers(pl_ahead_stage *own)
{
    if (!own->ended)
        pl_ahead_call(&own->ahead, n_free(own));
}

static bool step(pl_stage *stage)
{
    pl_ahead_stage *own = (pl_ahead_stage *)stage;
    uint64_t room_bytes;
    if (!may_begin(own, &room_bytes))
        return false;
    make_one(own, room_bytes);
    return true;
}

/* Tries it again. Returns false if it did not fit this time, either. Call with mu held, which it
 * releases meanwhile. */
static bool finish_starved(pl_ahead_stage *own, pl_ahead_slot *slot)
{
    pl_element begun = slot->element, element = {0};
    pl_error error = {0};
    slot->element = (pl_element){0};
    slot->starved = false;
    pl_ahead_unlock(&own->ahead);
    int r = finish(own, &begun, &element, &error);
    pl_ahead_lock(&own->ahead);
    pl_ahead_fill(&own->ahead, slot, r, r == PL_RETRY_ALONE ? &begun : &element, &error);
    return r != PL_RETRY_ALONE;
}

/* ---- next ---- */

static bool is_ready(const pl_ahead_stage *own)
{
    return own->head < own->tail && slot_at(own, own->head)->done;
}

/* Makes an element, or waits for those who do. Under a watchdog the consumer begins nothing that
 * may hang but the head itself, because its caller waits for it. Call with mu held. */
static void make_or_wait(pl_ahead_stage *own)
{
    uint64_t room_bytes;
    pl_ahead *ahead = &own->ahead;
    bool helps = own->head == own->tail || own->base.pass->watchdog_ns == 0;
    pl_ahead_withdraw(ahead);
    if (helps && ahead->n_working < ahead->n_parallel && own->n_beginning == 0 &&
        may_begin(own, &room_bytes)) {
        ahead->n_working++;
        call_workers(own);
        make_one(own, room_bytes);
        ahead->n_working--;
        return;
    }
    call_workers(own);
    pl_ahead_wait(ahead);
}

/* Returns 0 if the consumer must make one or wait; else next()'s result, with `ret_ended` at the
 * end. Call with mu held. */
static int look(pl_ahead_stage *own, bool *ret_ended, pl_error *reterr)
{
    pl_pass *pass = own->base.pass;
    if (pl_pass_is_over(pass))
        return pl_pass_over(pass, reterr);
    if (own->head < own->tail) {
        pl_ahead_slot *slot = slot_at(own, own->head);
        return slot->starved && !finish_starved(own, slot) ? PL_RETRY_ALONE : 0;
    }
    if (own->n_beginning > 0 || own->n_unplaced > 0)
        return 0;
    *ret_ended = own->ended;
    if (own->starved && pl_pass_get_mode(pass) != PL_PASS_ALONE)
        return PL_RETRY_ALONE;
    own->starved = false;
    return 0;
}

/* Waits until the head is ready. Returns 1, or else what next() returns. Call with mu held, which
 * it releases meanwhile. */
static int await_head(pl_ahead_stage *own, pl_error *reterr)
{
    int r = 0;
    bool ended = false;
    uint64_t begun_ns = pl_ahead_short_begin(&own->ahead);
    while (!is_ready(own) && !ended && r == 0) {
        r = look(own, &ended, reterr);
        if (r == 0 && !ended && !is_ready(own))
            make_or_wait(own);
    }
    pl_ahead_short_end(&own->ahead, begun_ns);
    return r < 0 ? r : !ended;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    pl_ahead_stage *own = (pl_ahead_stage *)stage;
    pl_ahead_lock(&own->ahead);
    int r = is_ready(own) ? 1 : await_head(own, reterr);
    if (r > 0) {
        r = pl_ahead_slot_take(slot_at(own, own->head++), &stage->pass->prefetch_budget,
                               ret_element, reterr);
        own->ahead.growth.n_taken++;
        own->starved = false;
        call_workers(own);
    }
    atomic_store_explicit(&stage->profile.n_ahead, own->tail - own->head, memory_order_relaxed);
    atomic_store_explicit(&stage->profile.n_parallel, own->ahead.n_parallel, memory_order_relaxed);
    pl_ahead_unlock(&own->ahead);
    return r;
}

/* ---- begin and close ---- */

/* Replaces the slots, which are empty. */
static int make_slots(pl_ahead_stage *own, int64_t n, pl_error *reterr)
{
    pl_ahead_slot *slots = calloc((size_t)n, sizeof *slots);
    if (!slots)
        return pl_error_set(reterr, -ENOMEM, "out of memory for %lld elements ahead", (long long)n);
    free(own->slots);
    own->slots = slots;
    own->n_slots = own->ahead.n_ahead_most = n;
    return 0;
}

int pl_ahead_stage_begin(pl_stage *stage, pl_bound_function *function, int64_t n_slots,
                         int n_parallel, pl_error *reterr)
{
    pl_ahead_stage *own = (pl_ahead_stage *)stage;
    int r = pl_ahead_init(&own->ahead, stage, step, n_parallel, reterr);
    if (r < 0)
        return r;
    if (n_slots == PL_AUTO)
        n_slots = function ? (int64_t)own->ahead.n_most * SLOTS_PER_WORKER : AUTO_SLOTS;
    r = make_slots(own, n_slots < SLOTS_MOST ? n_slots : SLOTS_MOST, reterr);
    if (r < 0) {
        pl_ahead_done(&own->ahead);
        return r;
    }
    own->function = function;
    pthread_mutex_init(&own->pulling, NULL);
    stage->next = next;
    return 0;
}

void pl_ahead_stage_close(pl_stage *stage)
{
    pl_ahead_stage *own = (pl_ahead_stage *)stage;
    if (!own->slots)
        return;
    pl_ahead_stop(&own->ahead);
    for (; own->head < own->tail; own->head++)
        pl_ahead_slot_clear(slot_at(own, own->head), &stage->pass->prefetch_budget);
    free(own->slots);
    pthread_mutex_destroy(&own->pulling);
    pl_ahead_done(&own->ahead);
}

/* ---- checkpoints ---- */

int pl_ahead_stage_save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    pl_ahead_stage *own = (pl_ahead_stage *)stage;
    if (!own->slots)
        return 0;
    pl_ahead_lock(&own->ahead); /* to see what the workers wrote last */
    int64_t head = own->head, tail = own->tail;
    pl_ahead_unlock(&own->ahead);
    int r = pl_save_int(saver, tail - head, reterr);
    if (r == 0)
        r = pl_save_int(saver, own->ended, reterr);
    for (int64_t i = head; r == 0 && i < tail; i++)
        r = pl_ahead_slot_save(slot_at(own, i), saver, reterr);
    return r;
}

int pl_ahead_stage_restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    pl_ahead_stage *own = (pl_ahead_stage *)stage;
    const pl_dataset *input = own->function ? stage->dataset->inputs[0] : NULL;
    int64_t n, ended;
    if (!own->slots)
        return 0;
    int r = pl_load_int(loader, 0, SLOTS_MOST, &n, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &ended, reterr);
    if (r == 0 && n > own->n_slots) /* the number depends on the number of processors */
        r = make_slots(own, n, reterr);
    if (r < 0)
        return r;
    own->ended = ended;
    while (r == 0 && own->tail < n) {
        r = pl_ahead_slot_load(slot_at(own, own->tail), stage, input, loader, reterr);
        if (r == 0)
            pl_ahead_loaded(&own->ahead, slot_at(own, own->tail++));
    }
    return r;
}
