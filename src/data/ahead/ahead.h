/* SPDX-License-Identifier: Apache-2.0 */
/* The engine that makes a stage's elements ahead of time.
 *   step      makes one element ahead, or finds that there is nothing to do; the stage supplies it
 *   worker    a job of the pass's pool that repeats the step
 *   consumer  the thread in the stage's next(): makes the element that it needs, unless a worker is
 *             making it
 *   slot      a result (an element or an error) from when it is begun until it is taken
 *   room      bytes of the pass's prefetch budget that a slot uses meanwhile
 *
 *   n_working <= n_parallel + 1, n_parallel <= n_most
 *   the budget's ahead >= sum of room_bytes of all slots
 *
 * An element is assumed to become as large as the largest so far. So until the first one is made no
 * other is begun; the first takes no room, because the consumer waits for it.
 *
 * next() belongs to one thread at a time. `mu` is a leaf lock; the step is called with it held,
 * returns with it held, and releases it while it pulls or computes. */
#ifndef PL_DATA_AHEAD_AHEAD_H
#define PL_DATA_AHEAD_AHEAD_H

#include <pthread.h>

#include "data/core/stage.h"
#include "data/core/worker_pool.h"

/* ---- slots ---- */

typedef struct pl_ahead_slot {
    bool done;
    bool starved; /* did not fit; `element` is its input */
    int result;   /* 1, or a negative code */
    pl_element element;
    pl_error *error;     /* of a negative result; NULL: out of memory */
    uint64_t room_bytes; /* released with the slot */
} pl_ahead_slot;

/* Moves element and error into the slot. If `result` is negative, the element only holds its
 * origin; with PL_RETRY_ALONE it is the input that did not fit. */
void pl_ahead_slot_fill(pl_ahead_slot *slot, int result, pl_element *element, pl_error *error);

/* Moves them out, and returns the result. The slot is then empty. All zero is empty, too. */
int pl_ahead_slot_take(pl_ahead_slot *slot, pl_prefetch_budget *budget, pl_element *ret_element,
                       pl_error *reterr);
void pl_ahead_slot_clear(pl_ahead_slot *slot, pl_prefetch_budget *budget);

PL_MUST_CHECK int pl_ahead_slot_save(const pl_ahead_slot *slot, pl_saver *saver, pl_error *reterr);

/* `input`: the dataset of starved elements; NULL: it has none. */
PL_MUST_CHECK int pl_ahead_slot_load(pl_ahead_slot *slot, pl_stage *stage, const pl_dataset *input,
                                     pl_loader *loader, pl_error *reterr);

/* ---- the engine ---- */

/* Returns true to be called again; false if there is nothing to do until pl_ahead_call(). */
typedef bool pl_ahead_step(pl_stage *stage);

typedef struct pl_ahead_worker {
    pl_pool_job base;
    struct pl_ahead *ahead;
    bool busy; /* mu; submitted, or running */
} pl_ahead_worker;

/* Adapts the number of workers: see adapt() in ahead.c. Counts the elements since `head`. */
typedef struct pl_ahead_growth {
    int64_t n_taken, head;
    uint64_t since_ns, short_ns; /* when that was; how long next() had nothing ready since */
    int n_other;                 /* workers before the trial; 0: no trial */
    double rate;                 /* elements per nanosecond with these */
    int64_t wait;                /* elements until the next trial */
} pl_ahead_growth;

typedef struct pl_ahead {
    pl_stage *stage; /* constant, like all down to workers */
    pl_ahead_step *step;
    int n_most; /* workers; 0: the consumer does everything */
    bool grows; /* n_parallel follows measurements */
    pl_ahead_worker *workers;
    int64_t n_ahead_most; /* the stage's: slots that may be done at once */
    pthread_mutex_t mu;
    pthread_cond_t changed; /* mu, like all that follows */
    int n_parallel, n_working;
    pl_ahead_growth growth;
    uint64_t element_bytes; /* of the largest so far, plus 1; 0: none yet */
    bool closing;
} pl_ahead;

/* At most `n_parallel` workers: a number, 0, or PL_AUTO. Fails with -ENOMEM. */
PL_MUST_CHECK int pl_ahead_init(pl_ahead *ahead, pl_stage *stage, pl_ahead_step *step,
                                int n_parallel, pl_error *reterr);

/* Stops the workers: call before the stage frees anything that its step needs. */
void pl_ahead_stop(pl_ahead *ahead);
void pl_ahead_done(pl_ahead *ahead); /* stopped, or all zero */

static inline void pl_ahead_lock(pl_ahead *ahead)
{
    pthread_mutex_lock(&ahead->mu);
}

static inline void pl_ahead_unlock(pl_ahead *ahead)
{
    pthread_mutex_unlock(&ahead->mu);
}

/* ---- with mu held ---- */

static inline bool pl_ahead_is_over(const pl_ahead *ahead)
{
    return ahead->closing || pl_pass_is_over(ahead->stage->pass);
}

/* Takes room for an element that nobody waits for yet. False: not now. */
PL_MUST_CHECK bool pl_ahead_take_room(pl_ahead *ahead, uint64_t *ret_room_bytes);

/* Fills a slot, and wakes the threads that wait for it. */
void pl_ahead_fill(pl_ahead *ahead, pl_ahead_slot *slot, int result, pl_element *element,
                   pl_error *error);

/* Notes a slot loaded from a checkpoint: how large elements become. */
static inline void pl_ahead_loaded(pl_ahead *ahead, const pl_ahead_slot *slot)
{
    ahead->element_bytes = pl_max_u64(ahead->element_bytes, slot->room_bytes);
}

static inline void pl_ahead_changed(pl_ahead *ahead)
{
    pthread_cond_broadcast(&ahead->changed);
}

/* Starts up to `n` more workers. */
void pl_ahead_call(pl_ahead *ahead, int64_t n);

/* Withdraws the workers that have not begun, because their results are not needed. */
void pl_ahead_withdraw(pl_ahead *ahead);

/* Waits until something changes, or for a moment, so that the caller can check whether the pass was
 * cancelled. */
void pl_ahead_wait(pl_ahead *ahead);

/* Encloses all that next() does to get an element that is not ready; the time it takes determines
 * the number of workers. */
uint64_t pl_ahead_short_begin(const pl_ahead *ahead);
void pl_ahead_short_end(pl_ahead *ahead, uint64_t begun_ns);

#endif
