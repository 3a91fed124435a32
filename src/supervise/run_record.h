/* SPDX-License-Identifier: Apache-2.0 */
/* The records of runs: one folder per run, that outlives the run.
 *   state    $PLIMSOLL_STATE, else $XDG_STATE_HOME/plimsoll, else ~/.local/state/plimsoll
 *   listed   a run under <state>/runs, in a folder named for its id
 *   id       local time and the supervisor's pid: 20261116-031522-4121
 * A record chosen with --record DIR is not listed: it is named by its path. Folders are made for
 * their owner alone (0700): a record holds command lines and stacks. */
#ifndef PL_SUPERVISE_RUN_RECORD_H
#define PL_SUPERVISE_RUN_RECORD_H

#include <limits.h>
#include <sys/types.h>

#include "base/base.h"
#include "plimsoll/ledger.h"

/* The files of a record; beside them, crash.PID for each process that crashed. */
#define PL_RECORD_LEDGER "ledger"
#define PL_RECORD_REPORT "report.json"
#define PL_RECORD_HANG   "hang.json"
#define PL_RECORD_CELLS  "cells.jsonl"

enum { PL_RECORD_KEEP = 100, PL_RECORD_ID_BYTES = 64 };

typedef struct pl_run_record {
    char id[PL_RECORD_ID_BYTES]; /* the folder's own name, cut to fit */
    char directory[PATH_MAX];    /* absolute */
    uint64_t started_ns;         /* CLOCK_REALTIME; set by pl_run_record_list() only */
} pl_run_record;

/* Makes the folder of a new run: a listed one, or exactly `directory`, which may exist if it holds
 * no ledger yet. The message says which folder could not be written, and what to do. */
PL_MUST_CHECK int pl_run_record_create(const char *directory, pl_run_record *ret_record,
                                       pl_error *reterr);

/* Finds a record by id, the pid of its command or of another of its processes, an unambiguous
 * prefix of an id, "last", or a path. -ENOENT with a message when there is none. */
PL_MUST_CHECK int pl_run_record_open(const char *name, pl_run_record *ret_record, pl_error *reterr);

/* Lists the listed runs, newest first. The caller frees *ret_records. Without a state folder the
 * list is empty. */
PL_MUST_CHECK int pl_run_record_list(pl_run_record **ret_records, size_t *ret_n, pl_error *reterr);

/* Removes all but the newest `n_keep` listed runs, never one that still runs. Returns how many it
 * removed; a folder that cannot be removed is left for the next time. */
PL_MUST_CHECK int pl_run_record_prune(size_t n_keep, pl_error *reterr);

/* Finds the id of the newest listed run of this kernel (header.kernel, see ledger/layout.h) that
 * has ended: its supervisor is gone. -ENOENT when there is none. Reads one header per listed run:
 * about 10 us each. */
PL_MUST_CHECK int pl_run_record_of_kernel(const char *kernel, char ret_id[PL_RECORD_ID_BYTES],
                                          pl_error *reterr);

/* Writes the path of a file of the record; -ENAMETOOLONG when it does not fit. */
PL_MUST_CHECK int pl_run_record_path(const char *directory, const char *file, char path[PATH_MAX]);

/* Is this folder one that pl_run_record_open() finds by its id? */
bool pl_run_record_is_listed(const char *directory);

/* The state that the system can still show of a run whose record does not contain the end. */
typedef struct pl_run_record_state {
    bool cut_short; /* a mapped file was truncated: a part of the record reads as zeros */
    bool rebooted;  /* the machine restarted since: nothing below is alive, no counter compares */
    bool supervisor_alive;
    bool command_alive;
    bool had_group;          /* the run was in a memory cgroup that its record names */
    bool oom_counted;        /* that group is still there, and its counter could be read */
    uint64_t n_oom_kills;    /* of the cgroup, since the run's baseline */
    bool vm_counted;         /* the machine's counter could be read */
    uint64_t n_vm_oom_kills; /* of the machine, since the run's baseline */
} pl_run_record_state;

/* Reads the resident memory of a process of this run now. False when it has ended, or is in another
 * pid namespace. */
bool pl_run_record_resident_bytes(const pl_ledger *ledger, pid_t pid, uint64_t start_ticks,
                                  uint64_t *ret_bytes);

void pl_run_record_state_read(const pl_ledger *ledger, pl_run_record_state *ret_state);

#endif
