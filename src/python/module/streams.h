/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of random numbers: one for each op that draws, and for each time it does.
 *
 * Streams without a seed of their own are counted over the process: two draws with one seed never
 * share one, and a program that sets the counter back draws the same again. The count begins far
 * above the numbers that Python code counts by itself. With the GIL. */
#ifndef PL_PYTHON_MODULE_STREAMS_H
#define PL_PYTHON_MODULE_STREAMS_H

#include "python/module/module.h"

/* Takes `n` streams; returns the first. */
uint64_t streams_take(uint64_t n);

/* Adds these methods to the module. */
PyObject *streams_next(PyObject *module, PyObject *args);
PyObject *streams_set(PyObject *module, PyObject *value);

extern const char streams_next_doc[], streams_set_doc[];

#endif
