/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that pulls for the consumer, so that next() can return while something hangs.
 *   pull    makes the next element, or hangs
 *   close   frees everything that pull() needs
 *   lost    the pass is over, but the pull did not end within a moment, and is abandoned
 *
 * The thread calls close() when it is done, however late if it hangs. Until then everything that it
 * needs stays allocated. Belongs to the consumer. */
#ifndef PL_DATA_ITERATOR_WATCHDOG_THREAD_H
#define PL_DATA_ITERATOR_WATCHDOG_THREAD_H

#include "data/core/element.h"
#include "data/core/pass.h"

typedef struct pl_watchdog_thread pl_watchdog_thread;

typedef struct pl_watched_pull {
    int (*pull)(void *context, pl_element *ret_element, pl_error *reterr);
    void (*close)(void *context);
    void *context; /* owns the pass */
} pl_watched_pull;

/* -ENOMEM; -EAGAIN if no thread can be started. */
PL_MUST_CHECK int pl_watchdog_thread_new(const pl_watched_pull *how, pl_pass *pass,
                                         pl_watchdog_thread **ret_watchdog, pl_error *reterr);

/* Like pull(); fails with PL_REPORTED and -ETIMEDOUT if the pass makes no progress for
 * watchdog_ns. */
PL_MUST_CHECK int pl_watchdog_thread_next(pl_watchdog_thread *watchdog, pl_element *ret_element,
                                          pl_error *reterr);

/* Call when the pass is over. The thread calls close(); waits for that, but only for a limited
 * time. */
void pl_watchdog_thread_free(pl_watchdog_thread *watchdog);

#endif
