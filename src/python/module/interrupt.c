/* SPDX-License-Identifier: Apache-2.0 */
/* See interrupt.h. The handler of SIGINT only posts a semaphore; a thread does the rest, because it
 * may take locks. */
#include "python/module/interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "python/module/gil.h"

/* A wait that hangs longer is left behind: the process must end. */
enum { EXIT_WAIT_MS = 2000, EXIT_LOOK_MS = 5 };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* leaf lock: cancel() takes none of ours */
static interrupt *waits;                               /* mu; all waits under way */
static bool watching;                                  /* mu; the thread exists */
static atomic_bool ending;                             /* the interpreter is ending */
static sem_t arrived;                                  /* posted by the handler */
static atomic_uint n_arrived;                          /* counted by the thread */
static struct sigaction beneath;                       /* the handler that ours calls. The GIL */
static atomic_bool always_raises = true;               /* `beneath` is Python's own handler */

/* 0: unknown; 1: this is the main thread; -1: it is another. */
static _Thread_local int is_main_thread;

static bool in_main_thread(void)
{
    if (is_main_thread == 0)
        is_main_thread = syscall(SYS_gettid) == getpid() ? 1 : -1;
    return is_main_thread > 0;
}

/* ---- the handler, and the thread that it wakes ---- */

/* Any thread may get the signal: Python's note must be set before the main thread can wake. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    int error = errno;
    if (beneath.sa_flags & SA_SIGINFO)
        beneath.sa_sigaction(number, info, context);
    else if (beneath.sa_handler != SIG_DFL && beneath.sa_handler != SIG_IGN)
        beneath.sa_handler(number);
    atomic_fetch_add(&n_arrived, 1);
    sem_post(&arrived);
    errno = error;
}

/* With the lock held. */
static bool is_meant(const interrupt *wait)
{
    unsigned n = atomic_load(&n_arrived) - wait->n_before;
    return wait->is_main && n > (wait->is_final && !atomic_load(&always_raises) ? 1u : 0u);
}

static void cancel_waits(bool all)
{
    pthread_mutex_lock(&mu);
    for (interrupt *wait = waits; wait; wait = wait->after)
        if (all || is_meant(wait))
            wait->cancel(wait->context);
    pthread_mutex_unlock(&mu);
}

static void *watch(void *unused)
{
    (void)unused;
    for (;;)
        if (sem_wait(&arrived) == 0)
            cancel_waits(false);
    return NULL;
}

/* With the lock held. If the thread cannot start, Ctrl-C only comes late: that is not an error. */
static void start_watching(void)
{
    pthread_t thread;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    watching = pthread_create(&thread, NULL, watch, NULL) == 0;
    if (watching)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* A thread that waits a thousand times between two ticks of the clock does not install handlers in
 * between: a system call for each wait would be a third of the time of a dataset's element. */
static bool is_worth_a_look(void)
{
    enum { LOOKS_PER_TICK = 32 };
    static struct timespec tick; /* the main thread's, like the next two */
    static int n_looks;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_nsec != tick.tv_nsec || now.tv_sec != tick.tv_sec)
        n_looks = 0;
    tick = now;
    return n_looks < LOOKS_PER_TICK && ++n_looks;
}

static bool is_pythons_own(void)
{
    PyObject *module = PyImport_ImportModule("_signal");
    PyObject *now = module ? PyObject_CallMethod(module, "getsignal", "i", SIGINT) : NULL;
    PyObject *own = now ? PyObject_GetAttrString(module, "default_int_handler") : NULL;
    bool is = own && own == now;
    Py_XDECREF(own);
    Py_XDECREF(now);
    Py_XDECREF(module);
    PyErr_Clear();
    return is;
}

/* Puts a handler that was installed since beneath ours. A process that ignores the signal, or dies
 * of it, still does. */
static void stand_before(void)
{
    struct sigaction now;
    if (!is_worth_a_look() || sigaction(SIGINT, NULL, &now) < 0)
        return;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal)
        return;
    if (!(now.sa_flags & SA_SIGINFO) && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN))
        return;
    struct sigaction ours = {
        .sa_sigaction = on_signal, .sa_mask = now.sa_mask, .sa_flags = now.sa_flags | SA_SIGINFO};
    beneath = now;
    atomic_store(&always_raises, is_pythons_own());
    (void)sigaction(SIGINT, &ours, NULL);
}

/* ---- waits ---- */

static void add_wait(interrupt *self)
{
    pthread_mutex_lock(&mu);
    if (self->is_main && !watching)
        start_watching();
    self->before = NULL;
    self->after = waits;
    if (waits)
        waits->before = self;
    waits = self;
    pthread_mutex_unlock(&mu);
}

int interrupt_begin(interrupt *self, bool is_final, void (*cancel)(void *context), void *context)
{
    *self = (interrupt){
        .cancel = cancel, .context = context, .is_final = is_final, .is_main = in_main_thread()};
    if (atomic_load(&ending)) {
        PyErr_SetString(PyExc_RuntimeError, "the interpreter is at its end: nothing is run");
        return -1;
    }
    if (!self->is_main) {
        add_wait(self);
        return 0;
    }
    stand_before();
    self->n_before = atomic_load(&n_arrived); /* before it looks for earlier signals */
    add_wait(self);
    /* A signal that came before the handler or the wait existed left Python's note set. */
    if (PyErr_CheckSignals() == 0)
        return 0;
    interrupt_end(self);
    return -1;
}

void interrupt_end(interrupt *self)
{
    pthread_mutex_lock(&mu);
    if (self->before)
        self->before->after = self->after;
    else
        waits = self->after;
    if (self->after)
        self->after->before = self->before;
    pthread_mutex_unlock(&mu);
}

/* ---- at exit ---- */

void interrupt_stay_away(void)
{
    if (!atomic_load(&ending) || in_main_thread() || gil_is_foreign())
        return;
    Py_BEGIN_ALLOW_THREADS;
    for (;;)
        pause();
    Py_END_ALLOW_THREADS;
}

static bool any_waits(void)
{
    pthread_mutex_lock(&mu);
    bool any = waits != NULL;
    pthread_mutex_unlock(&mu);
    return any;
}

static PyObject *at_exit(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    atomic_store(&ending, true);
    gil_end();
    Py_BEGIN_ALLOW_THREADS;
    for (int ms = 0; ms < EXIT_WAIT_MS && any_waits(); ms += EXIT_LOOK_MS) {
        cancel_waits(true);
        nanosleep(&(struct timespec){.tv_nsec = EXIT_LOOK_MS * 1000000L}, NULL);
    }
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* ---- forks ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&mu);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&mu);
}

/* Only the thread that forked exists in the child, and it is now the main thread. */
static void after_fork_in_child(void)
{
    waits = NULL;
    watching = false;
    is_main_thread = 0;
    sem_init(&arrived, 0, 0);
    pthread_mutex_unlock(&mu);
}

int interrupt_add(void)
{
    static PyMethodDef exit_method = {"_at_exit", at_exit, METH_NOARGS, NULL};
    static bool prepared;
    if (!prepared &&
        (sem_init(&arrived, 0, 0) < 0 ||
         pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    prepared = true;
    PyObject *function = PyCFunction_NewEx(&exit_method, NULL, NULL);
    PyObject *atexit = function ? PyImport_ImportModule("atexit") : NULL;
    PyObject *done = atexit ? PyObject_CallMethod(atexit, "register", "O", function) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(atexit);
    Py_XDECREF(function);
    return done ? 0 : -1;
}
