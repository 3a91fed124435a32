/* SPDX-License-Identifier: Apache-2.0 */
/* Joining the run: at the program's start, and again in every forked child. If anything fails here,
 * the program runs as without the guard, as an outsider: see guard.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/version_note.h"
#include "guard/guard.h"
#include "sys/proc.h"

PL_VERSION_NOTE;

pl_guard pl_guard_state;

static pl_atomic_u32 always = 1; /* until there is a page that is wiped */
pl_atomic_u32 *pl_same_process = &always;

static bool named_sparse(const pl_ledger *ledger, const char *name)
{
    for (int i = 0; i < PL_SPARSE_PROGRAMS; i++)
        if (strncmp(ledger->header.sparse_programs[i], name, 15) == 0 && *name)
            return true;
    const char *setting = getenv("PLIMSOLL_SPARSE");
    return setting && strcmp(setting, "1") == 0;
}

/* The record's folder is the ledger's. It is kept, because the variable may change later. */
static void set_directory(const char *ledger_path)
{
    const char *slash = strrchr(ledger_path, '/');
    size_t n = slash ? (size_t)(slash - ledger_path) : 0;
    if (n < sizeof pl_guard_state.directory)
        memcpy(pl_guard_state.directory, ledger_path, n);
}

/* A short name for reports: what /proc calls the process. */
static void describe_slot(pl_ledger_slot *slot, uint32_t flags)
{
    pl_proc_stat stat;
    if (pl_proc_stat_read(getpid(), &stat) == 0)
        memcpy(slot->name, stat.name, sizeof slot->name);
    flags |= PL_SLOT_GUARDED;
    if (pl_interpreter_runtime()) {
        flags |= PL_SLOT_PYTHON;
        slot->python_version = pl_interpreter_version();
        slot->python_runtime = pl_interpreter_runtime();
    }
    atomic_fetch_or(&slot->flags, flags);
}

static enum pl_outside_cause cause_of(int error)
{
    switch (error) {
    case -EMFILE:
    case -ENFILE:
        return PL_OUTSIDE_DESCRIPTORS;
    case -ENOENT:
        return PL_OUTSIDE_NO_PROC;
    case -EXDEV:
        return PL_OUTSIDE_NAMESPACE;
    case PL_EFULL:
        return PL_OUTSIDE_FULL;
    default:
        return PL_OUTSIDE_OTHER;
    }
}

/* Why this process is an outsider; PL_OUTSIDE_CAUSES: it is not one. */
static pl_atomic_u32 outside = PL_OUTSIDE_CAUSES;

/* Resets the state of an excursion over the line, which a child inherits from its parent. */
static void stay_outside(pl_ledger *run, int error)
{
    enum pl_outside_cause cause = cause_of(error);
    atomic_store(&pl_guard_state.trim_due, false);
    atomic_fetch_add(&run->sum.n_outsiders[cause], 1);
    atomic_store(&outside, cause);
}

/* Sets the flags together: the supervisor takes a slot as guarded once PL_SLOT_GUARDED is set. */
static int join(pl_ledger *ledger, uint32_t flags)
{
    pl_owner owner;
    int r = pl_ledger_join(ledger, 1, &owner);
    if (r < 0)
        return r;
    pl_ledger_slot *slot = &ledger->slots[owner];
    pl_guard_state.owner = owner;
    pl_guard_state.pid = getpid();
    describe_slot(slot, flags);
    bool observes = ledger->header.flags & PL_RUN_OBSERVE;
    pl_guard_state.refuses = !observes;
    pl_guard_state.sparse =
        observes || ledger->header.flags & PL_RUN_SPARSE || named_sparse(ledger, slot->name);
    atomic_store(&pl_guard_state.call, atomic_load(&ledger->sum.call));
    pl_guard_state.ledger = ledger;
    return 0;
}

/* Only a cause that can go away is worth another try. The thread that takes the cause tries; other
 * threads pass through meanwhile. */
static void join_again(void)
{
    uint32_t cause = PL_OUTSIDE_DESCRIPTORS;
    if (atomic_load(&outside) != cause ||
        !atomic_compare_exchange_strong(&outside, &cause, PL_OUTSIDE_CAUSES))
        return;
    pl_thread.inside = true;
    int saved = errno;
    if (join(pl_guard_state.run, pl_guard_state.generation ? PL_SLOT_FORKED : 0) == 0)
        atomic_fetch_sub(&pl_guard_state.run->sum.n_outsiders[PL_OUTSIDE_DESCRIPTORS], 1);
    else
        atomic_store(&outside, PL_OUTSIDE_DESCRIPTORS);
    errno = saved;
    pl_thread.inside = false;
}

/* The supervisor stores the command's pid once it knows that the command has started. Until then it
 * has no other child. */
static bool is_command(const pl_ledger_header *header)
{
    uint32_t pid = atomic_load(&header->command_pid);
    return pid == (uint32_t)getpid() || (pid == 0 && header->supervisor_pid == getppid());
}

/* For `sh -c 'exec prog'` and `env prog`: a report names the program that ran last. */
static void record_executed(pl_ledger_header *header)
{
    char words[sizeof header->executed - 1];
    if (!is_command(header))
        return;
    int n = pl_proc_read_file("/proc/self/cmdline", words, sizeof words);
    memset(header->executed, 0, sizeof header->executed);
    if (n > 0)
        memcpy(header->executed, words, (size_t)n);
}

/* The first thread to come here joins; other threads pass through meanwhile. */
void pl_guard_start(void)
{
    static _Atomic int started;
    int not_yet = 0;
    if (pl_guard_state.ledger || pl_thread.inside)
        return;
    if (!atomic_compare_exchange_strong(&started, &not_yet, 1)) {
        join_again();
        return;
    }
    pl_thread.inside = true;
    int saved = errno;
    const char *path = getenv(PL_LEDGER_VARIABLE);
    pl_ledger *ledger = NULL;
    if (path && pl_ledger_open(path, 1, &ledger, NULL) == 0) {
        set_directory(path);
        if (readlink("/proc/self/exe", pl_guard_state.program, sizeof pl_guard_state.program - 1) <
            0)
            pl_guard_state.program[0] = '\0';
        pl_guard_state.run = ledger;
        pl_guard_state.pid = getpid();
        int r = join(ledger, 0);
        if (r < 0)
            stay_outside(ledger, r);
        else
            record_executed(&ledger->header);
    }
    errno = saved;
    pl_thread.inside = false;
}

static void mark_process(void)
{
    enum { PAGE = 4096 };
    void *page =
        pl_real.mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, PAGE, MADV_WIPEONFORK) != 0) {
        pl_real.munmap(page, PAGE); /* before Linux 4.14: only fork() is noticed */
        return;
    }
    atomic_store((pl_atomic_u32 *)page, 1);
    pl_same_process = page;
}

/* The child shares its parent's pages until one of them writes: these pages count for the
 * parent. */
void pl_guard_after_fork(void)
{
    pl_ledger *run = pl_guard_state.run;
    if (atomic_exchange(pl_same_process, 1) && pl_guard_state.pid == getpid())
        return; /* noticed already */
    if (!run)
        return;
    int saved = errno;
    pl_thread.inside = true;
    pl_guard_state.ledger = NULL;
    pl_guard_state.pid = getpid();
    pl_guard_state.generation++;
    atomic_store(&pl_guard_state.n_gives_ended, atomic_load(&pl_guard_state.n_gives_begun));
    pl_proc_memory memory = {0};
    if (pl_proc_memory_read(0, &memory) == 0)
        pl_guard_state.fork_bytes = memory.private_bytes;
    atomic_store(&outside, PL_OUTSIDE_CAUSES);
    int r = join(run, PL_SLOT_FORKED);
    if (r < 0)
        stay_outside(run, r);
    pl_thread.inside = false;
    errno = saved;
}

__attribute__((constructor)) static void start(void)
{
    pl_interpreter_find();
    pl_guard_start();
    if (!pl_guard_state.run)
        return;
    if (pl_guard_state.ledger)
        describe_slot(&pl_guard_state.ledger->slots[pl_guard_state.owner], 0);
    mark_process();
    pthread_atfork(NULL, NULL, pl_guard_after_fork);
    pl_crash_install();
}

/* Not from a vfork()ed child, which has its parent's memory and another pid. */
void pl_guard_exit(void)
{
    if (pl_guard_state.ledger && pl_guard_state.pid == getpid())
        atomic_fetch_or(&pl_guard_state.ledger->slots[pl_guard_state.owner].flags, PL_SLOT_EXITED);
}

__attribute__((destructor)) static void finish(void)
{
    pl_guard_exit();
}
