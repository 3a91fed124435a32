/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor: starts the command, watches its tree, passes signals and status through.
 *   command   the process that was asked for; its end is the run's end
 *   tree      the command and all its descendants, orphans included: we are their subreaper
 *   unseen    bytes that the tree uses and no guard has charged (static programs, first touches,
 *             copied pages, shared memory); charged to the supervisor's own slot
 *
 * One thread, no allocation after the start, one poll(). It never writes to the terminal: its
 * findings go into the ledger, and the report is made from that. */
#ifndef PL_SUPERVISE_SUPERVISE_H
#define PL_SUPERVISE_SUPERVISE_H

#include <signal.h>
#include <sys/types.h>

#include "base/base.h"
#include "ledger/ledger.h"
#include "supervise/inspect.h"
#include "sys/cgroup.h"

typedef struct pl_supervise_options {
    char *const *command;    /* argv, ending in NULL */
    const char *guard_path;  /* of libplimsoll-guard.so */
    const char *ledger_path; /* of the mapped ledger, for the environment of the tree */
    uint64_t hang_after_ns;  /* 0: hangs are not looked for */
    bool hang_stop;          /* after the report, stop what hangs */
    pid_t parent;            /* ours: when it ends, the command is asked to. 0: never */

    /* Called once per hang, with every process of the tree looked at. */
    void (*on_hang)(void *context, const pl_inspect_process *processes, int n, double idle_s);
    void *context;
} pl_supervise_options;

/* Runs the command to its end. *ret_wait_status is as waitpid() gives it. Fails only before the
 * command has begun: -ENOENT when it cannot be found, another -errno when it cannot be executed.
 *
 * On success the signals below stay blocked. The signal that ends the command often reaches the
 * supervisor a moment later (systemd sends SIGTERM to the rest of a service in which the OOM killer
 * ended a process), and it must not end the report. */
PL_MUST_CHECK int pl_supervise(pl_ledger *ledger, const pl_supervise_options *options,
                               int *ret_wait_status, pl_error *reterr);

/* Gives SIGCHLD, and the signals that are passed on to the command. */
void pl_supervise_signals(sigset_t *ret_signals);

#endif
