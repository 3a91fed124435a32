/* SPDX-License-Identifier: Apache-2.0 */
/* Distinguishes a notebook kernel's own work from that of its cells. Small objects are refused by
 * an exception wherever the code happens to be. In a cell, the user should see it; in the kernel's
 * own code, which receives requests and sends output, it would lose a message: the notebook would
 * hang, or never show the output. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard/guard.h"

static pl_guard *const guard = &pl_guard_state;

/* The threads that existed before the first cell: they receive and send. */
enum { OWN_THREADS = 64 };
static pid_t own_threads[OWN_THREADS];
static _Atomic int n_own_threads;

static _Atomic bool code_runs;      /* of a cell, in the main thread */
static pl_atomic_u64 between_bytes; /* bytes requested outside the cell since then, over the line */

static bool is_main(pid_t thread)
{
    return thread == guard->pid;
}

/* 0 for "." and "..". */
static pid_t parse_thread(const char *name)
{
    pid_t thread = 0;
    for (; *name >= '0' && *name <= '9'; name++)
        thread = 10 * thread + (*name - '0');
    return thread;
}

static int list_threads(int folder)
{
    char buffer[4096] __attribute__((aligned(_Alignof(struct dirent64))));
    int n = 0;
    long got;
    while ((got = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < got && n < OWN_THREADS;) {
            const struct dirent64 *entry = (const struct dirent64 *)(buffer + at);
            pid_t thread = parse_thread(entry->d_name);
            at += entry->d_reclen;
            if (thread > 0 && !is_main(thread))
                own_threads[n++] = thread;
        }
    }
    return n;
}

void pl_kernel_note_threads(void)
{
    static bool noted; /* by the main thread alone */
    int folder = noted ? -1 : open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    noted = true;
    if (folder < 0)
        return;
    atomic_store(&n_own_threads, list_threads(folder));
    close(folder);
}

void pl_kernel_code_runs(bool runs)
{
    atomic_store(&code_runs, runs);
    atomic_store(&between_bytes, 0);
}

static bool is_own_thread(pid_t thread)
{
    int n = atomic_load(&n_own_threads);
    for (int i = 0; i < n; i++)
        if (own_threads[i] == thread)
            return true;
    return false;
}

/* In the main thread, a cell's printed output is copied before the cell goes on (by StringIO, from
 * Python 3.12 on), which is the kernel's work.
 *
 * Later threads are the user's, or a library's: pyzmq starts one for its first large message, and
 * an exception in it would keep that message, and all that follow, from being sent. */
static bool is_users(pid_t thread)
{
    if (is_main(thread))
        return atomic_load(&code_runs) && !pl_callsite_is_output();
    return pl_callsite_is_users();
}

bool pl_kernel_is_at_work(uint64_t bytes)
{
    if (atomic_load(&guard->ledger->sum.kernel_pid) != (uint32_t)guard->pid)
        return false;
    pid_t thread = (pid_t)syscall(SYS_gettid);
    if (is_own_thread(thread))
        return true;
    if (is_users(thread))
        return false;
    /* A task that a cell has left behind runs here as well: not without bounds. */
    return atomic_fetch_add(&between_bytes, bytes) + bytes <=
           pl_ledger_reserve_bytes(guard->ledger) / 4;
}
