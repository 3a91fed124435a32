/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C, and the end of the interpreter, while the library computes or waits.
 *   wait      a call of the library without the GIL that another thread can end
 *   cancel    the function that ends it: called from another thread, without the GIL, perhaps more than
 *             once
 *
 * Python's own handler of SIGINT only sets a note, which Python reads when the main thread is back
 * in it. Ours stands before it and wakes a thread, which cancels the main thread's wait;
 * failure_raise() then finds the note, and raises KeyboardInterrupt. If Python read the note before
 * our thread woke, the main thread's current wait has nothing to do with the signal: signals are
 * counted, and cancel only the waits that they came in. If a program installs another handler
 * afterwards, the next wait puts ours before it.
 *
 * A handler other than Python's own may not raise. The cancelled call is then begun again, unless
 * it was final: such a wait is not cancelled until a second signal comes, so that a program which
 * only notes the first one, as asyncio does, gets its element.
 *
 * At exit all waits of all threads are cancelled, and waited for, before Python shuts down.
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
    bool is_final;     /* the cancelled call cannot be begun again */
    bool is_main;      /* the main thread waits: SIGINT cancels it */
    unsigned n_before; /* signals before the wait: they do not cancel it */
    struct interrupt *before, *after;
} interrupt;

/* -1 with an exception if a signal is pending already, or Python is ending; else call
 * interrupt_end(). */
int interrupt_begin(interrupt *self, bool is_final, void (*cancel)(void *context), void *context);

/* With the GIL or without. After it returns, cancel() is not running, and will not be called. */
void interrupt_end(interrupt *self);

/* Call it after a wait was cancelled because Python is ending: a thread of Python, which is a
 * daemon then, blocks here, because it could only report the cancellation. Other threads return. */
void interrupt_stay_away(void);

/* Called by module_add_runs(). */
int interrupt_add(void);

#endif
