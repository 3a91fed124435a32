/* SPDX-License-Identifier: Apache-2.0 */
/* Taking the GIL in callbacks from the library.
 *   foreign   a thread that Python did not start: one of the library's
 *
 * A foreign thread gets a thread state when it first calls Python, and keeps it until it ends: one
 * for each call would map and unmap a stack each time, and lose thread-local data. So a thread that
 * waits for a thread of the library to end must not hold the GIL.
 *
 * After gil_end(), foreign threads no longer get the GIL: the interpreter is about to end. */
#ifndef PL_PYTHON_MODULE_GIL_H
#define PL_PYTHON_MODULE_GIL_H

#include "python/module/module.h"

/* Takes the GIL, from any thread, with the GIL or without. False: Python is ending, do not touch
 * its objects. Else call gil_give() with the same state. */
bool gil_take(PyGILState_STATE *ret_state);
void gil_give(PyGILState_STATE state);

/* The number of threads between gil_take() and gil_give(): user code that is running, and may
 * hang. */
int gil_n_calls(void);

/* With the GIL. Is this a foreign thread? */
bool gil_is_foreign(void);

/* Call it with the GIL, at exit. */
void gil_end(void);

/* Was gil_end() called? From any thread. */
bool gil_has_ended(void);

/* Drops a reference from any thread; when Python is ending, it leaks the object. */
void gil_decref(void *object);

#endif
