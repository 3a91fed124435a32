/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of random numbers: one for each op that draws, and each time it does.
 *
 * Those that nobody says are counted, over the process: two draws with one seed never share one,
 * and a program that sets the counter back draws the same again. The count begins far above what
 * Python code counts by itself. With the GIL. */
#ifndef PL_PYTHON_MODULE_STREAMS_H
#define PL_PYTHON_MODULE_STREAMS_H

#include "python/tensor/tensor.h"

/* The first of the next `n`. */
uint64_t streams_take(uint64_t n);

/* Far from any other, for each number: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom
 * number generators, 2014). */
static inline uint64_t streams_mix(uint64_t number)
{
    uint64_t z = (number + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The attributes with another `stream`; `op` is whose they are. `attrs` may be NULL: there were
 * none. NULL with an exception. */
attributes *streams_put(int op, const attributes *attrs, uint64_t stream);

/* Gives the node of a call that draws one of its own. -1 with an exception. */
int streams_give(tensor *call_node, uint64_t stream);

/* Methods of the module. */
PyObject *streams_next(PyObject *module, PyObject *args);
PyObject *streams_set(PyObject *module, PyObject *value);

extern const char streams_next_doc[], streams_set_doc[];

#endif
