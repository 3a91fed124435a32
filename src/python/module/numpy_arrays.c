/* SPDX-License-Identifier: Apache-2.0 */
/* Room for NumPy's own arrays: an array that does not fit in memory raises MemoryError instead of
 * ending the process. NumPy allocates the data of arrays through a handler, a table of functions
 * that is part of its C API since 1.22 (NEP 49). watch_numpy() puts our functions before those of
 * the default handler:
 *   large    LARGE_BYTES or more: we check for room. Smaller requests are not checked
 *   room     the bytes that the system leaves us now, less the reserve: pl_budget_discover() without a
 *            request. Not the line: an array may exceed it for a moment, until a tensor is made of it;
 *            the array still counts against the line like all memory of the process
 *   known    the room at the last check, less all requests since
 *
 * Idle tensors are moved out before an array is refused. In a guarded run the guard does all this.
 *
 * Any thread may call the functions, with the GIL or without. A forked child has them too, but no
 * runtime of its own: there no tensors are moved. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "python/module/failure.h"
#include "python/module/module.h"

#define LARGE_BYTES (UINT64_C(1) << 20)

/* numpy/ndarraytypes.h; version 1. */
typedef struct handler {
    char name[127];
    uint8_t version;
    void *context;
    void *(*malloc)(void *context, size_t bytes);
    void *(*calloc)(void *context, size_t n, size_t item_bytes);
    void *(*realloc)(void *context, void *data, size_t bytes);
    void (*free)(void *context, void *data, size_t bytes);
} handler;

/* Indices in the table that NumPy exports; the same in all versions from 1.22 on. */
enum { FEATURE_VERSION = 211, GET_HANDLER = 305, FIRST_WITH_HANDLERS = 0xf };

static handler before; /* the default handler's functions */
static _Atomic uint64_t known_bytes;

/* ---- is there room? ---- */

/* Uses the last answer for requests that are far smaller, which most are. */
static bool is_known(uint64_t bytes)
{
    uint64_t known = atomic_load_explicit(&known_bytes, memory_order_relaxed);
    return bytes <= known / 4 &&
           atomic_compare_exchange_strong_explicit(&known_bytes, &known, known - bytes,
                                                   memory_order_relaxed, memory_order_relaxed);
}

/* False: unknown, or less is left than a line needs. */
static bool ask_for_room(uint64_t *ret_bytes)
{
    pl_budget budget;
    pl_error error = {0};
    *ret_bytes = 0;
    int r = pl_budget_discover(NULL, &budget, &error);
    if (r == 0)
        *ret_bytes = budget.line_bytes;
    return r == 0 || r == PL_EBUDGET;
}

static void say_refusal(uint64_t bytes, uint64_t room)
{
    fprintf(stderr,
            "plimsoll: no room for a NumPy array of %.2f GiB: the system lets this process have "
            "%.2f GiB more. Make it smaller or of a smaller dtype, work in pieces, or keep it in a "
            "file (plimsoll.open)\n",
            (double)bytes / (1 << 30), (double)room / (1 << 30));
}

static bool find_room(uint64_t bytes)
{
    uint64_t room;
    if (!ask_for_room(&room))
        return true;
    pl_runtime *runtime = module_runtime_if_any();
    if (bytes > room && runtime) {
        pl_runtime_make_room(runtime, bytes - room);
        (void)!ask_for_room(&room);
    }
    if (bytes > room) {
        say_refusal(bytes, room);
        return false;
    }
    atomic_store_explicit(&known_bytes, room - bytes, memory_order_relaxed);
    return true;
}

/* Moving tensors out may wait for a thread that needs the GIL. */
static bool has_room(uint64_t bytes)
{
    if (bytes < LARGE_BYTES || is_known(bytes))
        return true;
    if (!PyGILState_Check())
        return find_room(bytes);
    bool has;
    Py_BEGIN_ALLOW_THREADS has = find_room(bytes);
    Py_END_ALLOW_THREADS return has;
}

/* ---- the handler ---- */

static void *watched_malloc(void *context, size_t bytes)
{
    return has_room(bytes) ? before.malloc(context, bytes) : NULL;
}

static void *watched_calloc(void *context, size_t n, size_t item_bytes)
{
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)n, (uint64_t)item_bytes, &bytes) || !has_room(bytes))
        return NULL;
    return before.calloc(context, n, item_bytes);
}

/* The block's old size is unknown here. We ask for the whole new size, which moving the block would
 * take. */
static void *watched_realloc(void *context, void *data, size_t bytes)
{
    return has_room(bytes) ? before.realloc(context, data, bytes) : NULL;
}

/* NumPy's table of functions; NULL without NumPy, or before it had handlers. */
static void **api_of(PyObject *numpy_core)
{
    PyObject *capsule = PyObject_GetAttrString(numpy_core, "_ARRAY_API");
    void **api = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    Py_XDECREF(capsule); /* the module has a reference to it */
    PyErr_Clear();
    return api && ((unsigned (*)(void))api[FEATURE_VERSION])() >= FIRST_WITH_HANDLERS ? api : NULL;
}

static PyObject *watch_numpy(PyObject *module, PyObject *numpy_core)
{
    (void)module;
    void **api = api_of(numpy_core);
    PyObject *capsule = api ? ((PyObject * (*)(void)) api[GET_HANDLER])() : NULL;
    handler *now = capsule ? PyCapsule_GetPointer(capsule, "mem_handler") : NULL;
    Py_XDECREF(capsule); /* the default one is never freed: NumPy owns it */
    PyErr_Clear();
    if (!now || now->version != 1 || strcmp(now->name, "default_allocator") != 0)
        Py_RETURN_FALSE;
    if (now->malloc == watched_malloc)
        Py_RETURN_TRUE;
    before = *now;
    now->malloc = watched_malloc;
    now->calloc = watched_calloc;
    now->realloc = watched_realloc;
    Py_RETURN_TRUE;
}

static PyMethodDef functions[] = {
    {"watch_numpy", watch_numpy, METH_O,
     "watch_numpy(numpy_core)\n--\n\nArrays that there is no room for are a MemoryError. False: "
     "this "
     "NumPy has no handlers, or somebody's own."},
    {NULL, NULL, 0, NULL},
};

int module_add_numpy(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
