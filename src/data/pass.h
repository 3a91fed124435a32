/* SPDX-License-Identifier: Apache-2.0 */
/* A pass: what all stages of one iterator share.
 *   crew    threads that run stages ahead: crew.h
 *   headway bytes that stages may be ahead: headway.h
 *   told    an error whose message is complete: stages hand it on as it is
 *   fatal   an error that is not of one element: no policy skips it, and the pass ends with it
 *
 * Codes between stages: pl_stage_next() returns PL_TOLD for what went wrong below, with the true
 * code in reterr->code; a class's next() hands that on. For an error of its own it returns the
 * error's code, or, after pl_pass_fail(), PL_TOLD. Errors are never NULL inside of a pass. */
#ifndef PL_DATA_PASS_H
#define PL_DATA_PASS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "data/crew.h"
#include "data/headway.h"
#include "data/policy.h"
#include "plimsoll/dataset.h"
#include "tensor/runtime.h"

/* Below all codes that callers see. */
#define PL_TOLD (-9001)

typedef struct pl_pass {
    pl_runtime *runtime;
    pl_crew *crew;
    pl_headway headway;
    bool nondeterministic; /* constant, as all above */
    uint64_t watchdog_ns;
    int over;                 /* cancelled or failed; read and written atomically, also by session
                                 runs, which then end */
    pthread_mutex_t mu;       /* leaf lock */
    pl_error failed;          /* mu; with what it ended; code 0: it goes on */
    struct pl_seeds *seeds;   /* mu; of its shuffles: see seeds.h */
    uint64_t number;          /* mu; of passes over the outermost dataset before this one */
    bool opened;              /* all that it begins with is; then constant */
    _Atomic uint64_t n_steps; /* elements that any stage made: what the watchdog looks at */
} pl_pass;

PL_MUST_CHECK int pl_pass_init(pl_pass *pass, pl_dataset *dataset, pl_error *reterr);
void pl_pass_done(pl_pass *pass); /* all stages are closed */
void pl_seeds_free(struct pl_seeds *seeds);

/* Nothing more is to be made. */
static inline bool pl_pass_is_over(const pl_pass *pass)
{
    return __atomic_load_n(&pass->over, __ATOMIC_RELAXED) != 0;
}

/* What it ended with. Returns PL_TOLD. */
PL_MUST_CHECK int pl_pass_over(pl_pass *pass, pl_error *reterr);

/* Ends the pass with an error that no policy skips. The first one counts. Returns PL_TOLD. */
int pl_pass_fail(pl_pass *pass, int code, pl_error *reterr, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same with an error that is complete. */
int pl_pass_end(pl_pass *pass, const pl_error *error);

#endif
