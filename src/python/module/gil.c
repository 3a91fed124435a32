/* SPDX-License-Identifier: Apache-2.0 */
#include "python/module/gil.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic bool ended;
static atomic_int n_calls;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t adopted; /* the state of a foreign thread */

/* The thread is ending. Python may have cleared its own key by now, so that PyGILState_Ensure()
 * would make another state. */
static void forget_thread(void *state)
{
    if (atomic_load(&ended))
        return;
    PyEval_RestoreThread(state);
    PyThreadState_Clear(state);
    PyThreadState_DeleteCurrent();
}

static void make_key(void)
{
    if (pthread_key_create(&adopted, forget_thread) != 0)
        Py_FatalError("no key for the threads of the library");
}

/* Keeps the thread state that Ensure() made: this call of it is never released. */
static void adopt_thread(void)
{
    pthread_once(&once, make_key);
    PyGILState_Ensure();
    pthread_setspecific(adopted, PyThreadState_Get());
}

static bool take(PyGILState_STATE *ret_state)
{
    if (PyGILState_GetThisThreadState()) {
        if (atomic_load(&ended) && !PyGILState_Check())
            return false;
        *ret_state = PyGILState_Ensure();
        return true;
    }
    if (atomic_load(&ended))
        return false;
    adopt_thread();
    PyGILState_Ensure();
    *ret_state = PyGILState_UNLOCKED;
    return true;
}

bool gil_take(PyGILState_STATE *ret_state)
{
    if (!take(ret_state))
        return false;
    atomic_fetch_add(&n_calls, 1);
    return true;
}

void gil_give(PyGILState_STATE state)
{
    atomic_fetch_sub(&n_calls, 1);
    PyGILState_Release(state);
}

int gil_n_calls(void)
{
    return atomic_load(&n_calls);
}

bool gil_is_foreign(void)
{
    pthread_once(&once, make_key);
    return pthread_getspecific(adopted) != NULL;
}

void gil_end(void)
{
    atomic_store(&ended, true);
}

bool gil_has_ended(void)
{
    return atomic_load(&ended);
}

void gil_decref(void *object)
{
    PyGILState_STATE state;
    if (!gil_take(&state))
        return;
    Py_DECREF((PyObject *)object);
    gil_give(state);
}
