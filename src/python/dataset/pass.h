/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over a dataset that Python's threads share: of an iterator, or of a call that runs a whole
 * dataset.
 *
 * Several threads may use it, one after the other. All waits for the pass happen without the GIL,
 * because its workers may need it: pass_pull(), and also the end, which the collector or the last
 * reference may cause. Some passes are ended by a thread of their own: one that would have to wait
 * for the very thread that drops it, and one that Ctrl-C interrupted, because a user's function
 * that hangs in a worker must not delay KeyboardInterrupt.
 *
 * At exit all passes are cancelled and ended, while Python can still be called. Python threads that
 * wait for one do not return then: they could only report the cancellation. A forked child does not
 * wait for its parent's passes. */
#ifndef PL_PYTHON_DATASET_PASS_H
#define PL_PYTHON_DATASET_PASS_H

#include <pthread.h>
#include <sys/types.h>

#include "python/module/interrupt.h"

typedef struct pass {
    pl_iterator *iterator; /* NULL: not begun, or ended */
    unsigned long thread;  /* began it, in `process` */
    pid_t process;
    bool interrupted;   /* by Ctrl-C: nobody waits for its end for long */
    pthread_mutex_t mu; /* the user's. Do not wait for it with the GIL: its owner may need that */
    struct pass *before, *after;
} pass;

/* -1 with an exception; then there is nothing to end. */
int pass_begin(pass *self, pl_dataset *over);
void pass_end(pass *self);

/* The thread is the only user between these two. -1 with an exception. */
int pass_enter(pass *self);
void pass_leave(pass *self);

/* Like pl_iterator_next(), with an exception for negative codes. */
int pass_pull(pass *self, pl_value *ret_values);

/* Like pass_pull() for another blocking call, in an entered pass: 0, or -1 with an exception. */
typedef int pass_call(pl_iterator *iterator, void *context, pl_error *reterr);
int pass_wait(pass *self, pass_call *call, void *context);

/* Cancels it from any thread, also while another is in pass_pull(). */
void pass_cancel(pass *self);

/* Ends all passes at exit. 0, or -1 with an exception. */
int pass_add_exit(void);

#endif
