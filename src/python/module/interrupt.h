/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C, and the end of the interpreter, while the library computes or waits.
 *   wait      a call of the library's without the GIL, that can be ended from outside
 *   cancel    what ends it: called from another thread, without the GIL, perhaps more than once
 *
 * Python's own handler of SIGINT only takes a note, which is read when the main thread is back in
 * Python. Ours stands before it and wakes a thread, which cancels what the main thread waits for;
 * failure_raise() then finds the note, and raises KeyboardInterrupt. If the note was read before
 * the thread was awake, what the main thread waits for by then has nothing to do with it: signals
 * are counted, and cancel only the waits that they came in. Whoever installs another handler
 * afterwards finds ours before it at the next wait.
 *
 * Another handler than Python's own may raise nothing. What it has cancelled is then begun again,
 * or it was final: such a wait is left alone until a second signal comes, so that a program which
 * only takes a note of the first one, as asyncio does, gets its element.
 *
 * At exit all waits of all threads are cancelled, and waited for, before Python takes itself apart.
 *
 *     interrupt wait;
 *     if (interrupt_begin(&wait, false, cancel, context) < 0)
 *         return NULL;
 *     Py_BEGIN_ALLOW_THREADS
 *     ...
 *     Py_END_ALLOW_THREADS
 *     interrupt_end(&wait);
 *
 * Waits of one thread end in the reverse order of their beginnings. */
#ifndef PL_PYTHON_MODULE_INTERRUPT_H
#define PL_PYTHON_MODULE_INTERRUPT_H

#include "python/module/module.h"

typedef struct interrupt {
    void (*cancel)(void *context);
    void *context;
    bool is_final; /* what was cancelled cannot be begun again */
    bool is_main;  /* the main thread waits: SIGINT is meant for it */
    unsigned
        n_before; /* signals that came before: they are raised by now, or were at its beginning */
    struct interrupt *before, *after;
} interrupt;

/* -1 with an exception if a signal is pending already, or Python is at its end; else
 * interrupt_end() is to be called. */
int interrupt_begin(interrupt *self, bool is_final, void (*cancel)(void *context), void *context);

/* With the GIL or without. When it returns, cancel() is not being called, and will not be. */
void interrupt_end(interrupt *self);

/* When a wait was cancelled because Python is at its end: a thread of Python's own, which is a
 * daemon then, stays here, for it could only tell of it. Others go on. */
void interrupt_stay_away(void);

/* Part of module_add_runs(). */
int interrupt_add(void);

#endif
