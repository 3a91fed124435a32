/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that a stage makes before they are asked for, in order, unless the pass has them in any.
 *   begin    the part of making one that goes in order, by one thread at a time: pulling the input
 *   finish   the part that any number of threads do at once: calling the function
 *   slot     a place of the ring, given to an element when it is begun
 *   head     the next one that will be asked for
 *   worker   a thread that begins and finishes elements: one of the crew's, or whoever waits
 *
 *   head <= tail <= head + n_slots - n_beginning - n_unplaced
 *   slots [head, tail) are being made, or made
 *   at most n_parallel workers at once
 *
 * Whoever waits for the head makes others meanwhile, if there is room for them, so that a thread
 * that pulls is not lost for work. The error of an element lies in its slot, and is given out when
 * it is its turn. How far it runs ahead follows from bytes as well: see prefetch_budget.h; an element is
 * taken to become as large as the largest one so far. One that does not fit after all stays in its
 * slot as it was begun, until it is the head: see pl_pass_later().
 *
 * next() belongs to one thread at a time. Locks: `pulling` is held while the input is pulled, so
 * those of stages below are taken within it; `mu` is a leaf. */
#ifndef PL_DATA_AHEAD_AHEAD_H
#define PL_DATA_AHEAD_AHEAD_H

#include <pthread.h>

#include "data/core/stage.h"

typedef struct pl_ahead_class {
    /* 1 and an element; 0: there are no more; negative: as a class's next(). */
    int (*begin)(pl_stage *stage, pl_element *ret_element, pl_error *reterr);
    /* The same of what begin() gave; NULL: that is it. Clears `begun`, but for PL_RETRY_ALONE. */
    int (*finish)(pl_stage *stage, pl_element *begun, pl_element *ret_element, pl_error *reterr);
} pl_ahead_class;

typedef struct pl_slot {
    bool done;
    bool starved; /* did not fit; `element` is what begin() gave */
    int result;   /* 1, or a code */
    pl_element element;
    pl_error *error;     /* of a negative result */
    uint64_t room_bytes; /* taken for it */
} pl_slot;

typedef struct pl_ahead_job {
    pl_job base;
    struct pl_ahead *ahead;
    bool busy; /* mu; submitted, or at work */
} pl_ahead_job;

/* How many workers are of use: it begins with all, and now and then, while whoever pulls is kept
 * waiting, half of them are tried for a while, or twice as many where there are fewer. Looks back
 * on the elements since `head`. */
typedef struct pl_ahead_growth {
    int64_t head;
    uint64_t since_ns, short_ns; /* when that was; how long next() had nothing ready since */
    int n_other;                 /* workers, before others were tried; 0: none are */
    double rate;                 /* elements a nanosecond with these */
    int64_t wait;                /* elements until others are tried again */
} pl_ahead_growth;

typedef struct pl_ahead {
    pl_stage *stage; /* constant, as is all down to jobs */
    const pl_ahead_class *class;
    int64_t n_slots;
    int n_most; /* workers, at most */
    pl_slot *slots;
    pl_ahead_job *jobs; /* n_most */
    pthread_mutex_t pulling;
    pthread_mutex_t mu;
    pthread_cond_t changed; /* mu, as is all that follows */
    int64_t head, tail;
    int n_parallel; /* workers, now */
    int n_working;
    int n_beginning; /* of them in begin() */
    int n_unplaced;  /* of them in finish(), in any order: those get a slot when they are done */
    bool grows;      /* and shrinks, as it makes it faster: see pl_ahead_growth */
    pl_ahead_growth growth;
    bool starved; /* what would be begun next did not fit; until an element is taken */
    bool ended, closing;
    uint64_t element_bytes; /* of the largest so far, and 1; 0: none was made yet */
} pl_ahead;

/* `n_slots` elements and `n_parallel` workers at most; PL_AUTO for either. -ENOMEM. */
PL_MUST_CHECK int pl_ahead_init(pl_ahead *ahead, pl_stage *stage, const pl_ahead_class *class,
                                int64_t n_slots, int n_parallel, pl_error *reterr);

/* Waits for those at work. One that is all zero is left alone. */
void pl_ahead_done(pl_ahead *ahead);

/* What is ready, errors included; nobody is at work, see pl_crew_pause(). */
PL_MUST_CHECK int pl_ahead_save(pl_ahead *ahead, pl_saver *saver, pl_error *reterr);
PL_MUST_CHECK int pl_ahead_restore(pl_ahead *ahead, pl_loader *loader, pl_error *reterr);

/* As a class's next(). */
PL_MUST_CHECK int pl_ahead_next(pl_ahead *ahead, pl_element *ret_element, pl_error *reterr);

#endif
