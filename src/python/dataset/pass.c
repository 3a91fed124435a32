/* SPDX-License-Identifier: Apache-2.0 */
#include "python/dataset/pass.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "python/module/failure.h"
#include "python/module/gil.h"

/* A pass that hangs longer than this, at exit or after Ctrl-C, is left behind. Ctrl-C must be
 * answered within 200 ms. */
enum { EXIT_WAIT_MS = 2000, INTERRUPT_WAIT_MS = 100 };

static pass *all;    /* the GIL, like the next one */
static bool exiting; /* waits for a pass no longer return */

static pthread_mutex_t ending_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static int n_ending; /* ending_mu; passes that are ended by a thread of their own */

/* A pass that such a thread ends. */
typedef struct ending {
    pl_iterator *iterator;
    bool done; /* ending_mu, like the next one */
    bool left; /* nobody waits for it: the thread frees this */
} ending;

/* ---- using a pass ---- */

/* Waits for a while only, so that Ctrl-C ends the wait for another thread. */
static int lock_or_time_out(pthread_mutex_t *mutex)
{
    enum { LOOK_NS = 50000000 };
    struct timespec until;
    int r;
    Py_BEGIN_ALLOW_THREADS;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    r = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
    Py_END_ALLOW_THREADS;
    return r;
}

int pass_enter(pass *self)
{
    int r = pthread_mutex_trylock(&self->mu);
    while (r == EBUSY || r == ETIMEDOUT) {
        if (PyErr_CheckSignals() < 0)
            return -1;
        r = lock_or_time_out(&self->mu);
    }
    if (r == EDEADLK) {
        PyErr_SetString(PyExc_ValueError, "the iterator is asked for an element by a function that "
                                          "it calls to make one");
        return -1;
    }
    if (self->iterator)
        return 0;
    pthread_mutex_unlock(&self->mu);
    PyErr_SetString(PyExc_RuntimeError, "the pass was ended: Python is ending");
    return -1;
}

void pass_leave(pass *self)
{
    pthread_mutex_unlock(&self->mu);
}

static void cancel(void *iterator)
{
    pl_iterator_cancel(iterator);
}

/* A Python thread waits here for the end of the process. A worker of the library does not, because
 * its own pass is ended too, and waits for it. */
static void stay_away_at_exit(void)
{
    if (!exiting || gil_is_foreign())
        return;
    Py_BEGIN_ALLOW_THREADS;
    for (;;)
        pause();
    Py_END_ALLOW_THREADS;
}

static int call_and_wait(pass *self, pass_call *call, void *context)
{
    interrupt wait;
    pl_error error;
    pl_error_init(&error);
    if (interrupt_begin(&wait, true, cancel, self->iterator) < 0)
        return -1;
    int r;
    Py_BEGIN_ALLOW_THREADS;
    r = call(self->iterator, context, &error);
    Py_END_ALLOW_THREADS;
    interrupt_end(&wait);
    if (r >= 0)
        return r;
    /* A function's -ERANGE is not the end of the dataset: programs would take OutOfRangeError for
     * that, and ignore the remaining elements. */
    if (error.code == -ERANGE)
        error.code = -EINVAL;
    failure_raise(&error);
    return -1;
}

int pass_wait(pass *self, pass_call *call, void *context)
{
    int r = call_and_wait(self, call, context);
    if (r < 0 && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        self->interrupted = true;
    return r;
}

static int next(pl_iterator *iterator, void *context, pl_error *reterr)
{
    return pl_iterator_next(iterator, context, reterr);
}

int pass_pull(pass *self, pl_value *ret_values)
{
    int r = pass_enter(self);
    if (r == 0) {
        r = pass_wait(self, next, ret_values);
        pass_leave(self);
    }
    if (r < 0)
        stay_away_at_exit();
    return r;
}

void pass_cancel(pass *self)
{
    if (self->iterator)
        pl_iterator_cancel(self->iterator);
}

/* ---- beginning and ending ---- */

static void init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(mutex, &kind);
    pthread_mutexattr_destroy(&kind);
}

int pass_begin(pass *self, pl_dataset *over)
{
    pl_error error = {0};
    pl_iterator *iterator = NULL;
    int r;
    Py_BEGIN_ALLOW_THREADS;
    r = pl_iterator_new(over, &iterator, &error);
    Py_END_ALLOW_THREADS;
    if (r < 0) {
        failure_raise(&error);
        return -1;
    }
    *self = (pass){.iterator = iterator,
                   .thread = PyThread_get_thread_ident(),
                   .process = getpid(),
                   .after = all};
    init_mutex(&self->mu);
    if (all)
        all->before = self;
    all = self;
    return 0;
}

static void *end_aside(void *context)
{
    ending *self = context;
    pl_iterator_free(self->iterator);
    pthread_mutex_lock(&ending_mu);
    n_ending--;
    self->done = true;
    bool left = self->left;
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&ending_mu);
    if (left)
        free(self);
    return NULL;
}

static struct timespec from_now(int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (ms % 1000) * 1000000L;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

/* Waits for this long, and then while no user function is being called: the rest is the library's
 * code, and ends soon. True: it has ended. */
static bool wait_for_end(ending *self, int ms)
{
    struct timespec until = from_now(ms);
    pthread_mutex_lock(&ending_mu);
    while (!self->done)
        if (pthread_cond_timedwait(&ended, &ending_mu, &until) == ETIMEDOUT) {
            if (ms == 0 || gil_n_calls() > 0)
                break;
            until = from_now(ms);
        }
    bool done = self->done;
    self->left = !done;
    pthread_mutex_unlock(&ending_mu);
    return done;
}

/* Ends the pass in a thread of its own, and waits for that up to `ms`. */
static void end_in_a_thread(pl_iterator *iterator, int ms)
{
    pthread_t thread;
    ending *self = calloc(1, sizeof *self);
    if (!self) {
        pl_iterator_cancel(iterator); /* left behind, with all it holds */
        return;
    }
    self->iterator = iterator;
    pthread_mutex_lock(&ending_mu);
    n_ending++;
    pthread_mutex_unlock(&ending_mu);
    if (pthread_create(&thread, NULL, end_aside, self) != 0) {
        pl_iterator_cancel(iterator);
        free(self);
        return;
    }
    pthread_detach(thread);
    if (wait_for_end(self, ms))
        free(self);
}

/* A library thread that began the pass is not one of its workers. Sets aside a pending exception,
 * because functions that are called meanwhile may look at it. */
static void end(pass *self)
{
    pl_iterator *iterator = self->iterator;
    self->iterator = NULL;
    *(self->before ? &self->before->after : &all) = self->after;
    if (self->after)
        self->after->before = self->before;
    if (gil_is_foreign() && self->thread != PyThread_get_thread_ident()) {
        end_in_a_thread(iterator, 0);
        return;
    }
    PyObject *class, *value, *trace;
    bool interrupted = self->interrupted;
    PyErr_Fetch(&class, &value, &trace);
    Py_BEGIN_ALLOW_THREADS;
    if (interrupted)
        end_in_a_thread(iterator, INTERRUPT_WAIT_MS);
    else
        pl_iterator_free(iterator);
    Py_END_ALLOW_THREADS;
    PyErr_Restore(class, value, trace);
}

void pass_end(pass *self)
{
    if (self->iterator)
        end(self);
}

/* ---- at exit ---- */

/* The first pass from there on that this process began: in others, a lock's owner may not exist. */
static pass *own_from(pass *one)
{
    while (one && one->process != getpid())
        one = one->after;
    return one;
}

/* Finds a pass that nobody uses, and enters it; NULL: there is none. */
static pass *enter_any(void)
{
    pass *one = own_from(all);
    while (one && pthread_mutex_trylock(&one->mu) != 0)
        one = own_from(one->after);
    return one;
}

static bool all_ended(void)
{
    pthread_mutex_lock(&ending_mu);
    bool done = !own_from(all) && n_ending == 0;
    pthread_mutex_unlock(&ending_mu);
    return done;
}

static PyObject *end_all(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    exiting = true;
    for (pass *one = own_from(all); one; one = own_from(one->after))
        pl_iterator_cancel(one->iterator);
    for (int ms = 0; ms < EXIT_WAIT_MS && !all_ended();) {
        pass *one = enter_any();
        if (one) {
            end(one);
            pass_leave(one);
            continue;
        }
        Py_BEGIN_ALLOW_THREADS;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        Py_END_ALLOW_THREADS;
        ms++;
    }
    Py_RETURN_NONE;
}

int pass_add_exit(void)
{
    static PyMethodDef definition = {"_end_passes", end_all, METH_NOARGS, NULL};
    PyObject *function = PyCFunction_New(&definition, NULL);
    PyObject *atexit = function ? PyImport_ImportModule("atexit") : NULL;
    PyObject *done = atexit ? PyObject_CallMethod(atexit, "register", "O", function) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(atexit);
    Py_XDECREF(function);
    return done ? 0 : -1;
}
