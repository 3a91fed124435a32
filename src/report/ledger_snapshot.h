/* SPDX-License-Identifier: Apache-2.0 */
/* A ledger, copied and checked. The ledger may still be written to, and may be corrupt: from here
 * on, every text ends in a NUL, every count fits its array, and times do not run backwards. */
#ifndef PL_REPORT_LEDGER_SNAPSHOT_H
#define PL_REPORT_LEDGER_SNAPSHOT_H

#include "base/base.h"
#include "ledger/layout.h"
#include "ledger/refusal.h"
#include "report/cell_sources.h"
#include "report/verdict.h"
#include "supervise/run_record.h"

enum { PL_SNAPSHOT_ARGUMENTS = 256 };

typedef struct pl_snapshot {
    const struct pl_ledger *ledger; /* the caller's; for parts not copied: slots, sites */
    pl_ledger_header header;
    pl_run_record_state state;
    bool ended;
    uint64_t end_ns; /* CLOCK_MONOTONIC: of the end, else now, else of the last sign of life */

    pid_t command_pid;
    int n_arguments;
    const char *arguments[PL_SNAPSHOT_ARGUMENTS]; /* into header.command */

    uint64_t limit_bytes;
    uint64_t budget_bytes; /* where the line would be if cgroups left more */
    uint64_t peak_bytes;
    uint64_t peak_resident_bytes;
    uint64_t n_refusals; /* requests refused plus exceptions raised */

    size_t n_events;
    pl_event *events; /* oldest first */
    size_t n_samples;
    pl_memory_sample *samples;

    bool has_crash;
    pl_crash crash; /* of the command, else the last one */

    bool in_notebook;     /* a kernel's run, or one with cells */
    uint32_t cell;        /* 1 + the place in the ledger of the cell that ran last, at the end; 0 */
    uint32_t cell_number; /* In [cell_number]; 0: none ran */
    pl_cell_sources *cells;
    pl_place_context places; /* into header and cells */
} pl_snapshot;

/* 0 or -ENOMEM. The snapshot must not be moved: it points into itself. */
PL_MUST_CHECK int pl_snapshot_take(const struct pl_ledger *ledger, const char *record_directory,
                                   pl_snapshot *ret_snapshot);
void pl_snapshot_done(pl_snapshot *snapshot);

/* Return the seconds from the run's start to a moment; from a moment to the run's end. Never
 * negative. */
double pl_snapshot_since_start_s(const pl_snapshot *snapshot, uint64_t time_ns);
double pl_snapshot_before_end_s(const pl_snapshot *snapshot, uint64_t time_ns);

/* Is the run still going on, as far as can be seen? */
bool pl_snapshot_runs(const pl_snapshot *snapshot);

/* Writes the name of a process, from its event, its slot or the command line. Valid UTF-8; "" when
 * unknown. */
void pl_snapshot_name(const pl_snapshot *snapshot, pid_t pid, const pl_event *event,
                      char name[PL_FACT_NAME_BYTES]);

#endif
