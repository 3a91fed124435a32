/* SPDX-License-Identifier: Apache-2.0 */
#include "python/module/streams.h"

#define FIRST (UINT64_C(1) << 40)

static uint64_t next = FIRST;

uint64_t streams_take(uint64_t n)
{
    uint64_t first = next;
    next += n;
    return first;
}

/* ---- for Python ---- */

const char streams_next_doc[] =
    "next_streams(n=1) -> int\n\n"
    "The first of the next n streams of random numbers: no op that draws has had them.";

PyObject *streams_next(PyObject *module, PyObject *args)
{
    unsigned long long n = 1;
    (void)module;
    if (!PyArg_ParseTuple(args, "|K:next_streams", &n))
        return NULL;
    return PyLong_FromLongLong((int64_t)streams_take(n));
}

const char streams_set_doc[] = "set_streams(n) -> None\n\nWhat is drawn from here on is what was "
                               "drawn after the last set_streams(n).";

PyObject *streams_set(PyObject *module, PyObject *value)
{
    (void)module;
    uint64_t at = PyLong_AsUnsignedLongLongMask(value);
    if (PyErr_Occurred())
        return NULL;
    next = FIRST + at;
    Py_RETURN_NONE;
}
