/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a run at this moment: its memory, its processes, its cells, and the bytes that each
 * place holds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger.h"
#include "report/cell_table.h"
#include "report/code_place.h"
#include "report/json.h"
#include "report/report.h"
#include "report/sites.h"

typedef struct top {
    pl_json json;
    json_t *document;
    pl_snapshot snapshot;
    pl_site_groups groups;
} top;

/* A copy of a slot's numbers: the slot itself may change while they are sorted. */
typedef struct process {
    const pl_ledger_slot *slot;
    pid_t pid;
    uint32_t flags;
    uint64_t claimed_bytes;
    uint64_t measured_bytes;
    uint64_t charged_bytes;
} process;

static uint64_t load(const pl_atomic_u64 *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void put(top *t, const char *key, json_t *value)
{
    pl_json_put(&t->json, t->document, key, value);
}

static void put_identity(top *t, const char *record_directory)
{
    const char *id = pl_code_place_file_name(record_directory);
    put(t, "schema", json_integer(PL_REPORT_SCHEMA));
    put(t, "run", pl_json_text(id));
    put(t, "record",
        pl_json_text(pl_run_record_is_listed(record_directory) ? id : record_directory));
    put(t, "running", json_boolean(pl_snapshot_runs(&t->snapshot)));
    put(t, "pid", json_integer(t->snapshot.command_pid));
    if (t->snapshot.in_notebook)
        put(t, "notebook", pl_cell_table_notebook(&t->json, &t->snapshot, NULL));
}

/* Returns the last sample; before the first one, the processes' own readings. */
static uint64_t resident_bytes(const pl_snapshot *snapshot)
{
    if (snapshot->n_samples > 0)
        return snapshot->samples[snapshot->n_samples - 1].resident_bytes;
    uint64_t sum = 0;
    for (int i = 0; i < pl_ledger_n_slots(snapshot->ledger); i++)
        if (atomic_load_explicit(&snapshot->ledger->slots[i].pid, memory_order_relaxed) != 0)
            sum = pl_add_sat_u64(sum, load(&snapshot->ledger->slots[i].resident_bytes));
    return sum;
}

static void put_memory(top *t)
{
    const pl_snapshot *snapshot = &t->snapshot;
    json_t *memory = json_object();
    pl_json_put(&t->json, memory, "line_bytes", pl_json_u64(snapshot->limit_bytes));
    uint64_t charged = load(&snapshot->ledger->sum.charged_bytes);
    pl_json_put(&t->json, memory, "charged_bytes", pl_json_u64(charged));
    /* It may have risen since the snapshot was begun. */
    pl_json_put(&t->json, memory, "peak_bytes",
                pl_json_u64(pl_max_u64(snapshot->peak_bytes, charged)));
    pl_json_put(&t->json, memory, "reserve_bytes", pl_json_u64(snapshot->header.reserve_bytes));
    pl_json_put(&t->json, memory, "true_limit_bytes",
                pl_json_u64(snapshot->header.true_limit_bytes));
    pl_json_put(&t->json, memory, "true_limit_source", pl_json_text(snapshot->header.limit_source));
    pl_json_put(&t->json, memory, "resident_bytes", pl_json_u64(resident_bytes(snapshot)));
    pl_json_put(&t->json, memory, "n_refusals", pl_json_u64(snapshot->n_refusals));
    put(t, "memory", memory);
}

static int compare_largest_first(const void *left, const void *right)
{
    const process *a = left, *b = right;
    if (a->charged_bytes != b->charged_bytes)
        return a->charged_bytes < b->charged_bytes ? 1 : -1;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

/* The supervisor's own slot holds the memory that no process claimed; it is listed unless that is
 * zero. */
static size_t collect_processes(const struct pl_ledger *ledger, int n_slots, process *processes)
{
    size_t n = 0;
    for (int i = 0; i < n_slots; i++) {
        const pl_ledger_slot *slot = &ledger->slots[i];
        uint32_t pid = atomic_load_explicit(&slot->pid, memory_order_acquire);
        process found = {
            .slot = slot,
            .pid = (pid_t)pid,
            .flags = atomic_load_explicit(&slot->flags, memory_order_relaxed),
            .claimed_bytes = load(&slot->claimed_bytes),
            .measured_bytes = load(&slot->measured_bytes),
        };
        found.charged_bytes = pl_add_sat_u64(found.claimed_bytes, found.measured_bytes);
        if (pid == 0 || pid > INT_MAX ||
            (found.flags & PL_SLOT_OBSERVER && found.charged_bytes == 0))
            continue;
        processes[n++] = found;
    }
    qsort(processes, n, sizeof(processes[0]), compare_largest_first);
    return n;
}

/* A guard reads the resident memory only when its program allocates, which may be long ago. */
static uint64_t resident_now(const top *t, const process *from)
{
    uint64_t bytes;
    if (pl_run_record_resident_bytes(t->snapshot.ledger, from->pid, load(&from->slot->start_ticks),
                                     &bytes))
        return bytes;
    return load(&from->slot->resident_bytes);
}

static json_t *build_process(top *t, const process *from)
{
    const pl_ledger_slot *slot = from->slot;
    char name[PL_FACT_NAME_BYTES];
    json_t *object = json_object();
    if (from->flags & PL_SLOT_OBSERVER)
        snprintf(name, sizeof(name),
                 "unseen"); /* not the supervisor's own: see docs/supervisor.md */
    else
        pl_snapshot_name(&t->snapshot, from->pid, NULL, name);
    pl_json_put(&t->json, object, "pid", json_integer(from->pid));
    pl_json_put(&t->json, object, "name", json_string(name));
    pl_json_put(&t->json, object, "python", json_boolean(from->flags & PL_SLOT_PYTHON));
    pl_json_put(&t->json, object, "charged_bytes", pl_json_u64(from->charged_bytes));
    pl_json_put(&t->json, object, "claimed_bytes", pl_json_u64(from->claimed_bytes));
    pl_json_put(&t->json, object, "measured_bytes", pl_json_u64(from->measured_bytes));
    pl_json_put(&t->json, object, "resident_bytes", pl_json_u64(resident_now(t, from)));
    pl_json_put(&t->json, object, "peak_bytes", pl_json_u64(load(&slot->peak_bytes)));
    pl_json_put(&t->json, object, "n_refusals",
                json_integer(atomic_load_explicit(&slot->n_refusals, memory_order_relaxed)));
    return object;
}

static void put_processes(top *t)
{
    int n_slots = pl_ledger_n_slots(t->snapshot.ledger);
    process *processes = calloc((size_t)n_slots + 1, sizeof *processes);
    if (!processes) {
        t->json.failed = true;
        return;
    }
    size_t n = collect_processes(t->snapshot.ledger, n_slots, processes);
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        pl_json_add(&t->json, array, build_process(t, &processes[i]));
    put(t, "processes", array);
    free(processes);
}

static void put_sites(top *t)
{
    json_t *array = json_array();
    for (size_t i = 0; i < t->groups.n && i < PL_REPORT_SITES; i++) {
        const pl_site_group *group = &t->groups.groups[i];
        uint32_t number = pl_sites_cell_number(&t->snapshot, group->cell);
        json_t *object = json_object();
        pl_json_put(&t->json, object, "place", pl_json_text(group->place));
        pl_json_put(&t->json, object, "bytes", pl_json_u64(group->bytes));
        pl_json_put(&t->json, object, "count", pl_json_u64(group->count));
        if (number != 0)
            pl_json_put(&t->json, object, "cell", json_integer(number));
        pl_json_add(&t->json, array, object);
    }
    put(t, "sites", array);
}

static int build(top *t, const pl_ledger *ledger, const char *record_directory)
{
    int r = pl_snapshot_take(ledger, record_directory, &t->snapshot);
    if (r == 0)
        r = pl_sites_group(&t->snapshot, PL_SITES_NOW, &t->groups);
    if (r < 0)
        return r;
    t->document = json_object();
    put_identity(t, record_directory);
    put_memory(t);
    put_processes(t);
    put(t, "cells", pl_cell_table_build(&t->json, &t->snapshot, &t->groups));
    put_sites(t);
    return t->json.failed ? -ENOMEM : 0;
}

int pl_report_top(const pl_run_record *record, json_t **ret_top, pl_error *reterr)
{
    char path[PATH_MAX];
    pl_ledger *ledger = NULL;
    int r = pl_run_record_path(record->directory, PL_RECORD_LEDGER, path);
    if (r < 0)
        return pl_error_set(reterr, r, "the record's path is too long");
    r = pl_ledger_open(path, 0, &ledger, reterr);
    if (r < 0)
        return r;
    top *t = calloc(1, sizeof(*t));
    r = t != NULL ? build(t, ledger, record->directory) : -ENOMEM;
    if (r == 0)
        *ret_top = PL_TAKE(t->document);
    else
        pl_error_set(reterr, r, "cannot describe the run: out of memory");
    if (t != NULL) {
        json_decref(t->document);
        pl_sites_groups_done(&t->groups);
        pl_snapshot_done(&t->snapshot);
    }
    free(t);
    pl_ledger_close(ledger);
    return r;
}

/* Is a supervisor or a command of this record alive? A record that cannot be read does not run. */
static bool record_runs(const pl_run_record *record)
{
    char path[PATH_MAX];
    pl_ledger *ledger = NULL;
    if (pl_run_record_path(record->directory, PL_RECORD_LEDGER, path) < 0 ||
        pl_ledger_open(path, 0, &ledger, NULL) < 0)
        return false;
    pl_run_record_state state;
    pl_run_record_state_read(ledger, &state);
    bool ended = load(&ledger->header.ended_realtime_ns) != 0;
    pl_ledger_close(ledger);
    return !ended && (state.supervisor_alive || state.command_alive);
}

static int find_newest(pl_run_record *ret_record, pl_error *reterr)
{
    pl_run_record *records = NULL;
    size_t n = 0, i = 0;
    int r = pl_run_record_list(&records, &n, reterr);
    if (r < 0)
        return r;
    while (i < n && !record_runs(&records[i]))
        i++;
    if (i < n)
        *ret_record = records[i];
    else
        r = pl_error_set(
            reterr, -ENOENT,
            "nothing runs under plimsoll: start a command with 'plimsoll run', or name a run "
            "that 'plimsoll runs' lists");
    free(records);
    return r;
}

int pl_report_top_find(pl_run_record *ret_record, pl_error *reterr)
{
    const char *ledger = getenv(PL_LEDGER_VARIABLE);
    const char *slash = ledger != NULL ? strrchr(ledger, '/') : NULL;
    if (slash == NULL)
        return find_newest(ret_record, reterr);
    char folder[PATH_MAX];
    size_t n = (size_t)(slash - ledger) + 1;
    if (n >= sizeof(folder))
        return pl_error_set(reterr, -ENAMETOOLONG,
                            "the path in " PL_LEDGER_VARIABLE " is too long");
    memcpy(folder, ledger, n);
    folder[n] = '\0';
    return pl_run_record_open(folder, ret_record, reterr);
}
