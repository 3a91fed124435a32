/* SPDX-License-Identifier: Apache-2.0 */
/* Inspects the threads of a live process: what each waits for, and its native and Python stacks.
 *
 * The threads are stopped with PTRACE_SEIZE and PTRACE_INTERRUPT, not by libdw: it would send
 * SIGSTOP, and its waitpid() would swallow the exit status of a process that dies just then. The
 * wait here takes stops only, so that an exit is left for the supervisor. The tracer is a separate
 * thread, because its end detaches every tracee, including one that did not stop in time (in
 * uninterruptible sleep) and would otherwise stop later, permanently. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "probe/python.h"
#include "supervise/inspect_private.h"
#include "sys/proc.h"

enum { STOP_ATTEMPTS = 250 }; /* of 2 ms; a thread that can stop does so within one */

static const struct timespec stop_pause = {.tv_nsec = 2 * (long)PL_NS_PER_MS};

typedef struct tracee {
    bool seized;
    bool stopped;
    int signal;            /* was about to be delivered when it stopped; given back at the end */
    uint64_t pthread_self; /* 0: unknown */
    pl_unwound unwound;
} tracee;

typedef struct session {
    pl_inspect_process *process;
    tracee *tracees; /* one per thread of the process */
    pl_python python;
} session;

/* --- stopping --- */

static void seize(const pl_inspect_thread *thread, tracee *self)
{
    self->seized = ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL) == 0 &&
                   ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) == 0;
}

static void read_pthread_self(const pl_inspect_thread *thread, tracee *self)
{
#if defined(__x86_64__)
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &registers) == 0)
        self->pthread_self = registers.fs_base; /* glibc: pthread_self() is the thread pointer */
#else
    /* glibc: the thread pointer stands behind what pthread_self() points to, here as there. */
    uint64_t pointer;
    struct iovec to = {&pointer, sizeof pointer};
    if (ptrace(PTRACE_GETREGSET, thread->tid, (void *)NT_ARM_TLS, &to) == 0)
        self->pthread_self = pointer - ((uint64_t)__builtin_thread_pointer() - pthread_self());
#endif
}

/* A status beyond a signal's number is a ptrace event: ours. */
static void await_stop(const pl_inspect_thread *thread, tracee *self, int *attempts_left)
{
    for (; *attempts_left > 0; (*attempts_left)--) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)thread->tid, &info, WSTOPPED | WNOHANG | __WALL) != 0)
            return; /* it ended */
        if (info.si_pid == thread->tid) {
            self->stopped = true;
            self->signal = info.si_status < NSIG ? info.si_status : 0;
            read_pthread_self(thread, self);
            return;
        }
        nanosleep(&stop_pause, NULL);
    }
}

static void stop_all(session *self)
{
    int attempts_left = STOP_ATTEMPTS;
    for (int i = 0; i < self->process->n_threads; i++)
        seize(&self->process->threads[i], &self->tracees[i]);
    for (int i = 0; i < self->process->n_threads; i++)
        if (self->tracees[i].seized)
            await_stop(&self->process->threads[i], &self->tracees[i], &attempts_left);
}

static void release_all(session *self)
{
    for (int i = 0; i < self->process->n_threads; i++)
        if (self->tracees[i].stopped)
            ptrace(PTRACE_DETACH, self->process->threads[i].tid, NULL,
                   (void *)(intptr_t)self->tracees[i].signal);
}

/* --- reading --- */

static bool any_stopped(const session *self)
{
    for (int i = 0; i < self->process->n_threads; i++)
        if (self->tracees[i].stopped)
            return true;
    return false;
}

/* Leaves *ret_dwfl NULL where there is nothing to unwind. */
static void unwind_all(session *self, Dwfl **ret_dwfl)
{
    pid_t pid = self->process->pid;
    PL_CLEANUP(pl_symbols_endp) Dwfl *dwfl = any_stopped(self) ? pl_symbols_begin() : NULL;
    if (!dwfl || dwfl_linux_proc_report(dwfl, pid) != 0 || dwfl_report_end(dwfl, NULL, NULL) != 0 ||
        dwfl_linux_proc_attach(dwfl, pid, true) != 0)
        return;
    for (int i = 0; i < self->process->n_threads; i++)
        if (self->tracees[i].stopped)
            pl_unwind_thread(dwfl, self->process->threads[i].tid, false, &self->tracees[i].unwound);
    *ret_dwfl = PL_TAKE(dwfl);
}

static void name_all(session *self, Dwfl *dwfl)
{
    for (int i = 0; dwfl && i < self->process->n_threads; i++)
        pl_unwound_name(dwfl, &self->tracees[i].unwound, &self->process->threads[i].native);
}

/* Finds it by tid where Python keeps it (3.11 on), else by pthread_self(). */
static pl_inspect_thread *find_python_thread(session *self, const pl_python_thread *python)
{
    for (int i = 0; i < self->process->n_threads; i++) {
        pl_inspect_thread *thread = &self->process->threads[i];
        if (python->tid ? python->tid == thread->tid
                        : python->thread_ident != 0 &&
                              python->thread_ident == self->tracees[i].pthread_self)
            return thread;
    }
    return NULL;
}

static void read_python(session *self)
{
    if (self->python.runtime == 0)
        return;
    pl_python_thread states[PL_INSPECT_THREADS];
    int n = pl_python_threads(&self->python, states, PL_INSPECT_THREADS);
    for (int i = 0; i < n; i++) {
        pl_inspect_thread *thread = find_python_thread(self, &states[i]);
        if (!thread)
            continue;
        int n_frames =
            pl_python_stack(&self->python, states[i].state, thread->python, PL_PYTHON_FRAMES);
        thread->n_python_frames = n_frames > 0 ? n_frames : 0;
    }
}

/* Names come last: debug information of libc alone takes 40 ms to unpack, and by then the threads
 * run again. */
static void *trace(void *argument)
{
    session *self = argument;
    PL_CLEANUP(pl_symbols_endp) Dwfl *dwfl = NULL;
    stop_all(self);
    unwind_all(self, &dwfl);
    read_python(self);
    release_all(self);
    name_all(self, dwfl);
    return NULL;
}

/* --- threads --- */

static void read_name(pid_t pid, pl_inspect_thread *thread)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, thread->tid);
    if (pl_proc_read_file(path, thread->name, sizeof thread->name) < 0)
        thread->name[0] = '\0';
    thread->name[strcspn(thread->name, "\n")] = '\0';
}

static int list_threads(pid_t pid, pid_t tids[PL_INSPECT_THREADS])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    if (!folder)
        return -errno;
    int n = 0;
    const struct dirent *entry;
    while (n < PL_INSPECT_THREADS && (entry = readdir(folder))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0)
            tids[n++] = tid;
    }
    closedir(folder);
    return n > 0 ? n : -ESRCH;
}

static int read_threads(pid_t pid, pl_inspect_process *process)
{
    pid_t tids[PL_INSPECT_THREADS];
    int n = list_threads(pid, tids);
    if (n < 0)
        return n;
    process->threads = calloc((size_t)n, sizeof *process->threads);
    if (!process->threads)
        return -ENOMEM;
    process->pid = pid;
    process->n_threads = n;
    for (int i = 0; i < n; i++) {
        process->threads[i].tid = tids[i];
        read_name(pid, &process->threads[i]);
    }
    return 0;
}

/* When memory or threads run out, we keep what is known already. */
static void read_stacks(pl_inspect_process *process, uint32_t python_version,
                        uint64_t python_runtime)
{
    pl_reader reader = pl_reader_process(process->pid);
    session self = {
        .process = process,
        .tracees = calloc((size_t)process->n_threads, sizeof *self.tracees),
        .python = {.reader = &reader, .version = python_version, .runtime = python_runtime},
    };
    pthread_t tracer;
    if (self.tracees && pthread_create(&tracer, NULL, trace, &self) == 0)
        pthread_join(tracer, NULL);
    free(self.tracees);
}

int pl_inspect_live(pid_t pid, uint32_t python_version, uint64_t python_runtime,
                    pl_inspect_process *ret_process, pl_error *reterr)
{
    pl_inspect_process process = {0};
    int r = read_threads(pid, &process);
    if (r < 0)
        return pl_error_set(reterr, r, "cannot list the threads of process %d: %s", pid,
                            pl_error_text(r));
    pl_locks_read(&process);
    read_stacks(&process, python_version, python_runtime);
    *ret_process = process;
    return 0;
}

void pl_inspect_process_done(pl_inspect_process *process)
{
    free(process->threads);
    *process = (pl_inspect_process){0};
}
