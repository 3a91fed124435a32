/* SPDX-License-Identifier: Apache-2.0 */
/* A pass: what all stages of one iterator share.
 *   crew    threads that run stages ahead: worker_pool.h
 *   headway bytes that stages may be ahead: prefetch_budget.h
 *   reported     an error that is complete: stages hand it on as it is
 *   retry alone  an element that found no room beside what runs ahead: see pl_pass_later()
 *   fatal        an error that is not of one element: no policy skips it, and the pass ends with it
 *
 * Codes between stages: pl_stage_next() returns PL_REPORTED for what went wrong below, with the true
 * code in reterr->code; a class's next() hands that on. For an error of its own it returns the
 * error's code, or, after pl_pass_fail(), PL_REPORTED. PL_RETRY_ALONE is handed on as PL_REPORTED is, with
 * nothing lost: whoever is pulled again then goes on. Errors are never NULL inside of a pass. */
#ifndef PL_DATA_CORE_PASS_H
#define PL_DATA_CORE_PASS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "data/ahead/prefetch_budget.h"
#include "data/ahead/worker_pool.h"
#include "data/core/policy.h"
#include "plimsoll/dataset.h"
#include "tensor/runtime.h"
#include "util/fork.h"

/* Below all codes that callers see. */
#define PL_REPORTED    (-9001)
#define PL_RETRY_ALONE (-9002)

typedef enum pl_turn_of {
    PL_TURN_ALL,    /* whoever likes makes elements ahead */
    PL_TURN_ENDING, /* nobody begins another that nobody waits for */
    PL_TURN_ALONE,  /* the consumer makes the one that it waits for; nobody else is at work */
} pl_turn_of;

typedef struct pl_pass {
    pl_runtime *runtime;
    pl_crew *crew;
    pl_headway headway;
    bool nondeterministic; /* constant, as all above */
    uint64_t watchdog_ns;
    uint32_t generation;     /* of the process that it was begun in; constant, as is watchdog_ns */
    int over;                /* cancelled or failed; read and written atomically, also by session
                                runs, which then end */
    pthread_mutex_t mu;      /* leaf lock */
    pl_error failed;         /* mu; with what it ended; code 0: it goes on */
    struct pl_seeds *seeds;  /* mu; of its shuffles: see seeds.h */
    uint64_t number;         /* mu; of passes over the outermost dataset before this one */
    bool opened;             /* all that it begins with is; then constant */
    struct pl_stage *stages; /* mu; all that are open, the last one first: see stage.h */
    _Atomic int turn;        /* pl_turn_of; changed by the consumer only. Relaxed: the crew is
                                paused before anybody is alone */
} pl_pass;

PL_MUST_CHECK int pl_pass_init(pl_pass *pass, pl_dataset *dataset, pl_error *reterr);
void pl_pass_done(pl_pass *pass); /* all stages are closed */
void pl_seeds_free(struct pl_seeds *seeds);

/* Nothing more is to be made. */
static inline bool pl_pass_is_over(const pl_pass *pass)
{
    return __atomic_load_n(&pass->over, __ATOMIC_RELAXED) != 0;
}

static inline pl_turn_of pl_pass_turn(const pl_pass *pass)
{
    return (pl_turn_of)atomic_load_explicit(&pass->turn, memory_order_relaxed);
}

static inline void pl_pass_set_turn(pl_pass *pass, pl_turn_of turn)
{
    atomic_store_explicit(&pass->turn, (int)turn, memory_order_relaxed);
}

/* In the child of a fork: its threads are not here. */
static inline bool pl_pass_is_lost(const pl_pass *pass)
{
    return pass->crew && (pl_crew_is_lost(pass->crew) ||
                          (pass->watchdog_ns > 0 && pass->generation != pl_fork_generation()));
}

/* For what failed with `code`: true if it is to return PL_RETRY_ALONE, and to do the same again when it
 * is pulled next. It did not fit beside what others have, and is tried again when it is the next
 * that the consumer gets, with nobody else at work: what fails then is an error. */
static inline bool pl_pass_later(const pl_pass *pass, int code)
{
    return code == PL_EBUDGET && pl_pass_turn(pass) != PL_TURN_ALONE;
}

/* What it ended with. Returns PL_REPORTED. */
PL_MUST_CHECK int pl_pass_over(pl_pass *pass, pl_error *reterr);

/* Ends the pass with an error that no policy skips. The first one counts. Returns PL_REPORTED. */
int pl_pass_fail(pl_pass *pass, int code, pl_error *reterr, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same with an error that is complete. */
int pl_pass_end(pl_pass *pass, const pl_error *error);

#endif
