/* SPDX-License-Identifier: Apache-2.0 */
#include "python/module/streams.h"

#include <string.h>

#define FIRST (UINT64_C(1) << 40)

static uint64_t next = FIRST;

uint64_t streams_take(uint64_t n)
{
    uint64_t first = next;
    next += n;
    return first;
}

attributes *streams_put(int op, const attributes *attrs, uint64_t stream)
{
    enum { ATTRS_MOST = 32 };
    pl_attr others[ATTRS_MOST];
    int n = 0;
    for (int i = 0; attrs && i < attrs->n_attrs && n < ATTRS_MOST - 1; i++)
        if (strcmp(attrs->attrs[i].name, "stream") != 0)
            others[n++] = attrs->attrs[i];
    others[n++] = pl_attr_int("stream", (int64_t)stream);
    return attributes_of(op, others, n);
}

/* A call has none of its own: it has those of any op that draws. */
int streams_give(tensor *call_node, uint64_t stream)
{
    attributes *made = streams_put(pl_op_find("random_uniform"), NULL, stream);
    if (!made)
        return -1;
    attributes_unref(call_node->attrs);
    call_node->attrs = made;
    return 0;
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
