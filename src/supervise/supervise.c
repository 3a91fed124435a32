/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's loop: signals in, samples out. */
#include "supervise/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "supervise/spawn.h"
#include "supervise/watch.h"
#include "sys/proc.h"

/* How a signal that the supervisor gets reaches the command. Both are in one process group, so that
 * the terminal's job control works as usual: the terminal signals both. */
typedef enum pass_on {
    PASS_ALWAYS,      /* a container runtime signals the supervisor alone */
    PASS_IF_FOLLOWER, /* a signal to a group leader is meant for its group */
} pass_on;

static const struct {
    int signal;
    pass_on rule;
} passed_signals[] = {
    {SIGTERM, PASS_ALWAYS},      {SIGHUP, PASS_ALWAYS},       {SIGINT, PASS_IF_FOLLOWER},
    {SIGQUIT, PASS_IF_FOLLOWER}, {SIGUSR1, PASS_IF_FOLLOWER}, {SIGUSR2, PASS_IF_FOLLOWER},
};

void pl_supervise_signals(sigset_t *ret_signals)
{
    sigemptyset(ret_signals);
    sigaddset(ret_signals, SIGCHLD);
    for (size_t i = 0; i < PL_COUNT_OF(passed_signals); i++)
        sigaddset(ret_signals, passed_signals[i].signal);
}

static int open_signals(sigset_t *ret_before)
{
    sigset_t ours;
    pl_supervise_signals(&ours);
    if (sigprocmask(SIG_BLOCK, &ours, ret_before) < 0)
        return -errno;
    int fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

static void pass_signal(pl_watch *watch, const struct signalfd_siginfo *info)
{
    int signal = (int)info->ssi_signo;
    for (size_t i = 0; i < PL_COUNT_OF(passed_signals); i++) {
        if (passed_signals[i].signal != signal)
            continue;
        watch->ledger->header.stop_signal = (uint32_t)signal;
        bool from_process =
            info->ssi_code == SI_USER || info->ssi_code == SI_QUEUE || info->ssi_code == SI_TKILL;
        bool from_outside = info->ssi_pid == 0; /* of our pid namespace: a container runtime */
        bool leads = getpgrp() == getpid();
        if (from_process && (passed_signals[i].rule == PASS_ALWAYS || from_outside || !leads))
            kill(watch->command, signal);
    }
}

/* Returns an rlimit of the command; 0 when it is unlimited. */
static uint64_t read_limit(pid_t pid, int resource)
{
    struct rlimit limit;
    bool limited = prlimit(pid, resource, NULL, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return limited ? limit.rlim_cur : 0;
}

/* Reads the command's state while it is a zombie: a process that seccomp killed cannot report it,
 * and a shell or the program itself may have set limits (ulimit) since the start. */
static void note_dead(pl_watch *watch)
{
    pl_ledger_header *header = &watch->ledger->header;
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)watch->command, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid != watch->command)
        return;
    if (pl_proc_seccomp_read(watch->command, &header->seccomp_mode) < 0)
        header->seccomp_mode = 0;
    header->address_limit_bytes = read_limit(watch->command, RLIMIT_AS);
    header->data_limit_bytes = read_limit(watch->command, RLIMIT_DATA);
}

/* True when the command itself has ended. */
static bool reap(pl_watch *watch, int *ret_wait_status)
{
    note_dead(watch);
    return pl_watch_reap(watch, ret_wait_status);
}

static void read_signals(pl_watch *watch, int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD)
            pass_signal(watch, &info);
}

/* A command that is to end with its parent cannot see that by itself: the supervisor is its
 * parent. */
static pid_t follow_parent(pl_watch *watch, pid_t parent)
{
    if (parent == 0 || getppid() == parent)
        return parent;
    watch->ledger->header.stop_signal = SIGTERM;
    kill(watch->command, SIGTERM);
    return 0;
}

static int wait_for_end(pl_watch *watch, int signals)
{
    int status = 0;
    pid_t parent = watch->options->parent;
    struct pollfd wake = {.fd = signals, .events = POLLIN};
    while (!reap(watch, &status)) {
        uint64_t now = pl_clock_monotonic_ns();
        uint64_t next = watch->sampled_ns + watch->period_ns;
        if (now >= next) {
            pl_watch_step(watch);
            parent = follow_parent(watch, parent);
            continue;
        }
        uint64_t left_ms = (next - now + PL_NS_PER_MS - 1) / PL_NS_PER_MS;
        if (poll(&wake, 1, (int)left_ms) > 0)
            read_signals(watch, signals);
    }
    return status;
}

/* A dead process has no start time to read: it is read while the command is certainly ours. */
static void note_command(pl_watch *watch, pid_t pid)
{
    pl_proc_stat stat;
    pl_ledger_header *header = &watch->ledger->header;
    watch->command = pid;
    if (pl_proc_stat_read(pid, &stat) == 0)
        header->command_start_ticks = stat.start_ticks;
    atomic_store(&header->command_pid, (uint32_t)pid);
}

/* Records the RLIMIT_DATA that the command started with. Only a command without the guard is given
 * ours. */
static void note_limits(pl_ledger *ledger, pid_t pid, uint64_t our_data_limit)
{
    pl_ledger_header *header = &ledger->header;
    header->data_limit_bytes = read_limit(pid, RLIMIT_DATA);
    if (header->data_limit_bytes > 0 && header->data_limit_bytes == our_data_limit)
        header->flags |= PL_RUN_OWN_DATA_LIMIT;
}

static int supervise(pl_ledger *ledger, const pl_supervise_options *options, int signals,
                     const sigset_t *mask, int *ret_wait_status, pl_error *reterr)
{
    static pl_watch watch; /* large, and there is one supervisor */
    int r = pl_watch_init(&watch, ledger, options);
    if (r < 0)
        return pl_error_set(reterr, r, "cannot join the ledger: %s%s", pl_error_text(r),
                            pl_spawn_cure(r));
    pl_spawn_options spawn = {
        .command = options->command,
        .guard_path = options->guard_path,
        .ledger_path = options->ledger_path,
        .mask = *mask,
        .data_limit_bytes = ledger->header.flags & PL_RUN_OBSERVE
                                ? 0
                                : pl_ledger_limit_bytes(ledger) + ledger->header.reserve_bytes,
    };
    pid_t pid;
    r = pl_spawn(&spawn, &pid, reterr);
    if (r == 0) {
        note_command(&watch, pid);
        note_limits(ledger, pid, spawn.data_limit_bytes);
        *ret_wait_status = wait_for_end(&watch, signals);
        pl_watch_end(&watch, *ret_wait_status);
    }
    pl_watch_done(&watch);
    return r;
}

int pl_supervise(pl_ledger *ledger, const pl_supervise_options *options, int *ret_wait_status,
                 pl_error *reterr)
{
    sigset_t before;
    int signals = open_signals(&before);
    if (signals < 0)
        return pl_error_set(reterr, signals, "cannot receive signals: %s%s", pl_error_text(signals),
                            pl_spawn_cure(signals));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int r = supervise(ledger, options, signals, &before, ret_wait_status, reterr);
    close(signals);
    if (r < 0)
        sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}
