/* SPDX-License-Identifier: Apache-2.0 */
/* A notebook kernel's own work, told from that of its cells. Small objects are refused by an
 * exception wherever the code happens to be. In a cell that is what the user wants to see; in the
 * kernel's own code, which receives requests and sends output, it would lose a message: the
 * notebook would wait for ever, or never show what was printed. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard/guard.h"

static pl_guard *const guard = &pl_guard_state;

/* Those that were there before the first cell: they receive and send. */
enum { OWN_THREADS = 64 };
static pid_t own_threads[OWN_THREADS];
static _Atomic int n_own_threads;

static _Atomic bool code_runs;      /* of a cell, in the main thread */
static pl_atomic_u64 between_bytes; /* asked for by the main thread since, over the line */

static bool is_main(pid_t thread)
{
    return thread == guard->pid;
}

void pl_kernel_note_threads(void)
{
    DIR *tasks = n_own_threads == 0 ? opendir("/proc/self/task") : NULL;
    int n = 0;
    for (const struct dirent *entry; tasks && n < OWN_THREADS && (entry = readdir(tasks));) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        if (thread > 0 && !is_main(thread))
            own_threads[n++] = thread;
    }
    if (tasks)
        closedir(tasks);
    atomic_store(&n_own_threads, n);
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

/* A task that a cell has left behind runs between cells as well: not without bounds. */
bool pl_kernel_is_at_work(uint64_t bytes)
{
    if (atomic_load(&guard->ledger->sum.kernel_pid) != (uint32_t)guard->pid)
        return false;
    pid_t thread = (pid_t)syscall(SYS_gettid);
    if (!is_main(thread))
        return is_own_thread(thread);
    return !atomic_load(&code_runs) && atomic_fetch_add(&between_bytes, bytes) + bytes <=
                                           pl_ledger_reserve_bytes(guard->ledger) / 4;
}
