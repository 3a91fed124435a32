/* SPDX-License-Identifier: Apache-2.0 */
#include "python/module/progress.h"

#include <stdatomic.h>
#include <time.h>

#include "python/module/gil.h"

#define FIRST_NS INT64_C(2000000000)
#define EACH_NS  INT64_C(100000000)

static PyObject *wanted; /* the GIL; NULL: no callback */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* With the GIL. The callback's exceptions do not fail the run. */
static void call_back(double fraction, const char *name)
{
    PyObject *callable = Py_XNewRef(wanted);
    if (!callable)
        return;
    PyObject *done = PyObject_CallFunction(callable, "ds", fraction, name);
    if (!done)
        PyErr_WriteUnraisable(callable);
    Py_XDECREF(done);
    Py_DECREF(callable);
}

/* No GIL; never called by two threads at once. */
static void tell(void *context, double fraction, const char *name)
{
    progress *self = context;
    int64_t now = now_ns();
    bool last = fraction >= 1;
    self->fraction = fraction;
    if (self->told_ns == 0 ? last || now - self->begun_ns < FIRST_NS
                           : !last && now - self->told_ns < EACH_NS)
        return;
    PyGILState_STATE gil;
    if (!gil_take(&gil))
        return;
    self->told_ns = now;
    self->ended = last;
    call_back(fraction, name);
    gil_give(gil);
}

void progress_begin(progress *self, pl_run_options *options)
{
    *self = (progress){0};
    if (!wanted)
        return;
    self->begun_ns = now_ns();
    options->progress = tell;
    options->progress_context = self;
}

void progress_end(progress *self, bool well)
{
    if (self->told_ns == 0 || self->ended)
        return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    call_back(well ? 1 : self->fraction, "");
    PyErr_Restore(type, value, trace);
}

const char progress_set_doc[] =
    "set_progress(callable) -> None\n\n"
    "callable(fraction, node_name) is called while a run goes on that takes longer than two\n"
    "seconds, at most ten times a second, from any thread, and once when it is over: with 1, or,\n"
    "if it failed, with '' for a name. None: nobody wants to know.";

PyObject *progress_set(PyObject *module, PyObject *callable)
{
    (void)module;
    if (callable != Py_None && !PyCallable_Check(callable)) {
        PyErr_SetString(PyExc_TypeError, "a callable, or None, is expected");
        return NULL;
    }
    Py_XSETREF(wanted, callable == Py_None ? NULL : Py_NewRef(callable));
    Py_RETURN_NONE;
}
