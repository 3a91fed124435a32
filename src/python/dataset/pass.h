/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over a dataset, as Python's threads share it: iterators have one, and what goes through a
 * dataset at once.
 *
 * Several threads may use it: each waits for the one before. Whatever waits for the pass does so
 * without the GIL, because its workers may need it: pass_pull(), and also the end, wherever the
 * collector or the last reference has it happen. A pass that would have to wait for the very thread
 * that drops it is ended by a thread of its own; so is one that Ctrl-C interrupted, for a function
 * of the user's that hangs, in a worker, is not to hold up KeyboardInterrupt.
 *
 * At exit all passes are cancelled and ended, while Python can still be called. Threads of Python's
 * that wait for one then do not come back: they would only tell of it. Passes of a process that was
 * forked are its parent's: they are not waited for. */
#ifndef PL_PYTHON_DATASET_PASS_H
#define PL_PYTHON_DATASET_PASS_H

#include <pthread.h>
#include <sys/types.h>

#include "python/module/interrupt.h"

typedef struct pass {
    pl_iterator *iterator; /* NULL: not begun, or ended */
    unsigned long thread;  /* that began it, in process */
    pid_t process;
    bool interrupted;   /* by Ctrl-C: its end is not waited for, if it takes long */
    pthread_mutex_t mu; /* who uses the iterator. Nobody waits for it with the GIL; its owner may
                           wait for the GIL */
    struct pass *before, *after;
} pass;

/* -1 with an exception; then there is nothing to end. */
int pass_begin(pass *self, pl_dataset *over);
void pass_end(pass *self);

/* Nobody else uses it from here to there. -1 with an exception. */
int pass_enter(pass *self);
void pass_leave(pass *self);

/* As pl_iterator_next(), with an exception for what is negative. */
int pass_pull(pass *self, pl_value *ret_values);

/* The same of another call that waits, in an entered pass: 0, or -1 with an exception. */
typedef int pass_call(pl_iterator *iterator, void *context, pl_error *reterr);
int pass_wait(pass *self, pass_call *call, void *context);

/* From any thread, also while another is in pass_pull(). */
void pass_cancel(pass *self);

/* What ends them at exit. 0, or -1 with an exception. */
int pass_add_exit(void);

#endif
