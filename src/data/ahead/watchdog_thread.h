/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that pulls for the consumer, so that next() can return while something hangs.
 *   pull    makes the next element, or hangs
 *   close   lets go of everything that pull() needs
 *   lost    the pass is over, and the pull did not end within a moment: nobody waits for it
 *
 * The thread closes what it pulled from. One that hangs does so when it no longer hangs, however
 * late; until then all that it needs stays. Belongs to the consumer. */
#ifndef PL_DATA_AHEAD_WATCHDOG_THREAD_H
#define PL_DATA_AHEAD_WATCHDOG_THREAD_H

#include "data/core/element.h"
#include "data/core/pass.h"

typedef struct pl_puller pl_puller;

typedef struct pl_pull {
    int (*pull)(void *context, pl_element *ret_element, pl_error *reterr);
    void (*close)(void *context);
    void *context; /* has the pass */
} pl_pull;

/* -ENOMEM, -EAGAIN if there is no thread to be had. */
PL_MUST_CHECK int pl_puller_new(const pl_pull *how, pl_pass *pass, pl_puller **ret_puller,
                                pl_error *reterr);

/* As pull(); -ETIMEDOUT, as PL_REPORTED, when the pass makes no progress for its watchdog's time. */
PL_MUST_CHECK int pl_puller_next(pl_puller *puller, pl_element *ret_element, pl_error *reterr);

/* The pass is over. Lets the thread close(), and waits for that, but not for ever. */
void pl_puller_free(pl_puller *puller);

#endif
