/* SPDX-License-Identifier: Apache-2.0 */
/* The GIL, for what the library calls.
 *   foreign   a thread that Python did not start: one of the library's
 *
 * A foreign thread is given a thread state when it first calls Python, and keeps it until it ends:
 * one for each call would cost a stack that is mapped and unmapped again, and lose what is local to
 * the thread. So whoever waits for a thread of the library to end must not hold the GIL.
 *
 * Once gil_end() was called, foreign threads get no more of it: the interpreter is about to go. */
#ifndef PL_PYTHON_MODULE_GIL_H
#define PL_PYTHON_MODULE_GIL_H

#include "python/module/module.h"

/* From any thread, with the GIL or without. False: Python is ending, nothing of it may be touched.
 * Else gil_give() with the same. */
bool gil_take(PyGILState_STATE *ret_state);
void gil_give(PyGILState_STATE state);

/* How many are between the two: what the library calls is under way, and may hang. */
int gil_n_calls(void);

/* With the GIL. Is this a foreign thread? */
bool gil_is_foreign(void);

/* With the GIL, by what runs at exit. */
void gil_end(void);

/* Was gil_end() called? From any thread. */
bool gil_has_ended(void);

/* Drops a reference from any thread; at the end of Python it is forgotten. */
void gil_decref(void *object);

#endif
