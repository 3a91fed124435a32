/* SPDX-License-Identifier: Apache-2.0 */
/* Joining the run: at the program's start, and again in every forked child. Whatever fails here,
 * the program runs as without us: there is nobody to tell. */
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

static void set_crash_path(void)
{
    snprintf(pl_guard_state.crash_path, sizeof pl_guard_state.crash_path, "%s/crash.%d",
             pl_guard_state.directory, (int)getpid());
}

/* The record's folder is where the ledger lies. The variable may change later; this does not. */
static void set_directory(const char *ledger_path)
{
    const char *slash = strrchr(ledger_path, '/');
    size_t n = slash ? (size_t)(slash - ledger_path) : 0;
    if (n < sizeof pl_guard_state.directory)
        memcpy(pl_guard_state.directory, ledger_path, n);
}

/* A short name for reports: what /proc calls the process. */
static void describe_slot(pl_slot *slot, uint32_t flags)
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

/* The flags are set at once: the supervisor takes a slot for ours when PL_SLOT_GUARDED is there. */
static bool join(pl_ledger *ledger, uint32_t flags)
{
    pl_owner owner;
    if (pl_ledger_join(ledger, 1, &owner) < 0)
        return false;
    pl_slot *slot = &ledger->slots[owner];
    pl_guard_state.owner = owner;
    pl_guard_state.pid = getpid();
    set_crash_path();
    describe_slot(slot, flags);
    bool observes = ledger->header.flags & PL_RUN_OBSERVE;
    pl_guard_state.refuses = !observes;
    pl_guard_state.sparse =
        observes || ledger->header.flags & PL_RUN_SPARSE || named_sparse(ledger, slot->name);
    atomic_store(&pl_guard_state.trim_epoch, atomic_load(&ledger->sum.trim_epoch));
    return true;
}

/* The first thread to come here joins; a second one passes through meanwhile. */
void pl_guard_start(void)
{
    static _Atomic int started;
    int not_yet = 0;
    if (pl_guard_state.ledger || pl_thread.inside ||
        !atomic_compare_exchange_strong(&started, &not_yet, 1))
        return;
    pl_thread.inside = true;
    int saved = errno;
    const char *path = getenv(PL_LEDGER_VARIABLE);
    pl_ledger *ledger = NULL;
    if (path && pl_ledger_open(path, 1, &ledger, NULL) == 0) {
        set_directory(path);
        if (readlink("/proc/self/exe", pl_guard_state.program, sizeof pl_guard_state.program - 1) <
            0)
            pl_guard_state.program[0] = '\0';
        if (join(ledger, 0))
            pl_guard_state.ledger = ledger;
        else
            pl_ledger_close(ledger);
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

/* The child shares its parent's pages until one of them writes: they stay the parent's. */
void pl_guard_after_fork(void)
{
    pl_ledger *ledger = pl_guard_state.ledger;
    if (atomic_exchange(pl_same_process, 1) && pl_guard_state.pid == getpid())
        return; /* noticed already */
    if (!ledger)
        return;
    int saved = errno;
    pl_thread.inside = true;
    pl_guard_state.ledger = NULL;
    pl_guard_state.pid = getpid();
    pl_guard_state.generation++;
    pl_proc_memory memory = {0};
    if (pl_proc_memory_read(0, &memory) == 0)
        pl_guard_state.fork_bytes = memory.private_bytes;
    if (join(ledger, PL_SLOT_FORKED))
        pl_guard_state.ledger = ledger;
    pl_thread.inside = false;
    errno = saved;
}

__attribute__((constructor)) static void start(void)
{
    pl_interpreter_find();
    pl_guard_start();
    if (!pl_guard_state.ledger)
        return;
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
