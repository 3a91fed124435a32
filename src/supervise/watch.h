/* SPDX-License-Identifier: Apache-2.0 */
/* The work that the supervisor does several times a second: sample the tree into the ledger, charge
 * the memory that no guard saw, stop a process when memory is about to run out, and notice a
 * hang. */
#ifndef PL_SUPERVISE_WATCH_H
#define PL_SUPERVISE_WATCH_H

#include "supervise/allowance.h"
#include "supervise/process_tree.h"
#include "supervise/shared_files.h"
#include "supervise/supervise.h"

typedef struct pl_watch {
    pl_ledger *ledger;
    const pl_supervise_options *options;
    pl_owner owner; /* the supervisor's slot: holds the unseen bytes */
    pid_t command;
    pl_allowance allowance;
    uint64_t line_reported_bytes;   /* the line, as of the last event about it */
    uint64_t others_reported_bytes; /* and the bytes that others used then */
    uint64_t line_reported_ns;
    int n_lines_reported;
    uint64_t n_oom_kills;         /* as last read */
    uint64_t n_unexplained_kills; /* of those, whose victim was not found yet */
    pl_cgroup_pressure pressure;
    pl_cgroup_pressure baseline_pressure;
    uint64_t baseline_throttles;
    uint32_t noted_pids[PL_SLOTS]; /* per slot: the pid whose death was looked into already */
    pl_process_tree tree;
    pl_shared_files shared_files;
    uint64_t cgroup_bytes;    /* that we gained in limited groups since the start; 0: none */
    uint64_t available_bytes; /* MemAvailable */
    uint64_t room_bytes;      /* until the system kills: of the group, or of the machine */
    uint64_t used_bytes;      /* by the tree or the group, whichever is more, at the last sample */

    uint64_t sampled_ns;
    bool pressed;       /* near the line */
    uint64_t period_ns; /* until the next sample */
    uint64_t over_ns;   /* since when the hard mark is passed; 0: it is not */
    pid_t stopped_pid;  /* the process stopped last; 0: none */
    uint64_t stopped_ns;
    bool over_reported;   /* PL_EVENT_OVER was sent for this excursion */
    uint64_t moved_ns;    /* when the tree last made progress */
    uint64_t moved_ticks; /* its CPU time then */
    bool hang_reported;
    uint64_t hang_stop_ns; /* when to follow SIGTERM with SIGKILL; 0: not yet */
} pl_watch;

/* Takes the baselines, before the command starts. `watch` must be all zero, as static memory is: it
 * is too large to clear again. */
PL_MUST_CHECK int pl_watch_init(pl_watch *watch, pl_ledger *ledger,
                                const pl_supervise_options *options);
void pl_watch_done(pl_watch *watch);

/* Reaps ended children, and reports orphans that a signal ended. True when the command was among
 * them; *ret_wait_status is then its status. */
bool pl_watch_reap(pl_watch *watch, int *ret_wait_status);

/* Takes one sample, and acts on it. */
void pl_watch_step(pl_watch *watch);

/* The last step, when the command has ended: records its status and the final counters. */
void pl_watch_end(pl_watch *watch, int wait_status);

#endif
