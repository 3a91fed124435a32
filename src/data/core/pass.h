/* SPDX-License-Identifier: Apache-2.0 */
/* A pass: the state that all stages of one iterator share.
 *   pool    threads that run stages ahead: worker_pool.h
 *   budget  the bytes that stages may make ahead: prefetch_budget.h
 *   told    said of an error whose message is complete: stages return it unchanged
 *   later   said of an element that did not fit beside those made ahead: see pl_pass_later()
 *   fatal   an error of the pass, not of one element: no policy skips it, and the pass ends
 *
 * Codes between stages: pl_stage_next() returns PL_REPORTED for an error below, with the true code
 * in reterr->code; a class's next() returns that unchanged. For an error of its own it returns the
 * error's code, or, after pl_pass_fail(), PL_REPORTED. PL_RETRY_ALONE is also returned unchanged.
 * Nothing is lost: the next pull continues. Inside a pass `reterr` is never NULL. */
#ifndef PL_DATA_CORE_PASS_H
#define PL_DATA_CORE_PASS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "data/core/policy.h"
#include "data/core/prefetch_budget.h"
#include "data/core/worker_pool.h"
#include "plimsoll/dataset.h"
#include "tensor/runtime.h"
#include "util/fork.h"

/* Below all codes that callers of the library see. */
#define PL_REPORTED    (-9001)
#define PL_RETRY_ALONE (-9002)

typedef enum pl_pass_mode {
    PL_PASS_SHARED,   /* workers make elements ahead */
    PL_PASS_DRAINING, /* workers finish what they have begun */
    PL_PASS_ALONE,    /* only the consumer works, on the element that it waits for */
} pl_pass_mode;

typedef struct pl_pass {
    pl_runtime *runtime;
    pl_worker_pool *pool;
    pl_prefetch_budget prefetch_budget;
    bool nondeterministic; /* constant, like all above */
    uint64_t watchdog_ns;
    uint32_t generation;     /* of the process that began it; constant, like watchdog_ns */
    int over;                /* cancelled or failed; read and written atomically, also by session
                                runs, which then end */
    pthread_mutex_t mu;      /* leaf lock */
    pl_error failed;         /* mu; the error that ended it; code 0: it goes on */
    struct pl_seeds *seeds;  /* mu; of its shuffles: see seeds.h */
    uint64_t number;         /* mu; the number of earlier passes over the outermost dataset */
    bool opened;             /* set once the initial stages are open; then constant */
    struct pl_stage *stages; /* mu; all open ones, the latest first: see stage.h */
    _Atomic int mode;        /* pl_pass_mode; changed by the consumer only. Relaxed: the pool is
                                paused before anybody is alone */
} pl_pass;

PL_MUST_CHECK int pl_pass_init(pl_pass *pass, pl_dataset *dataset, pl_error *reterr);
void pl_pass_done(pl_pass *pass); /* all stages are closed */
void pl_seeds_free(struct pl_seeds *seeds);

/* Returns whether it was cancelled or has failed, so that nothing more is made. */
static inline bool pl_pass_is_over(const pl_pass *pass)
{
    return __atomic_load_n(&pass->over, __ATOMIC_RELAXED) != 0;
}

static inline pl_pass_mode pl_pass_get_mode(const pl_pass *pass)
{
    return (pl_pass_mode)atomic_load_explicit(&pass->mode, memory_order_relaxed);
}

static inline void pl_pass_set_mode(pl_pass *pass, pl_pass_mode mode)
{
    atomic_store_explicit(&pass->mode, (int)mode, memory_order_relaxed);
}

/* Returns whether this is a forked child, without the pass's threads. */
static inline bool pl_pass_is_lost(const pl_pass *pass)
{
    return pass->pool && (pl_worker_pool_is_lost(pass->pool) ||
                          (pass->watchdog_ns > 0 && pass->generation != pl_fork_generation()));
}

/* Returns true if work that failed with `code` should return PL_RETRY_ALONE and be repeated by the
 * next pull, because it did not fit beside other elements. It is tried again when its element is
 * the consumer's next, and no other thread works; if it fails then, that is an error. */
static inline bool pl_pass_later(const pl_pass *pass, int code)
{
    return code == PL_EBUDGET && pl_pass_get_mode(pass) != PL_PASS_ALONE;
}

/* Reports the error that it ended with. Returns PL_REPORTED. */
PL_MUST_CHECK int pl_pass_over(pl_pass *pass, pl_error *reterr);

/* Ends the pass with an error that no policy skips. Only the first one counts. Returns
 * PL_REPORTED. */
int pl_pass_fail(pl_pass *pass, int code, pl_error *reterr, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* pl_pass_fail() with a complete error. */
int pl_pass_end(pl_pass *pass, const pl_error *error);

#endif
