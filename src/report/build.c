/* SPDX-License-Identifier: Apache-2.0 */
/* The document, section by section, in the order of docs/report-format.md. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "report/brief.h"
#include "report/cell_table.h"
#include "report/code_place.h"
#include "report/facts.h"
#include "report/hang.h"
#include "report/json.h"
#include "report/report.h"
#include "report/sites.h"

/* The limits that docs/report-format.md promises. */
enum { MAX_LISTED = 64, MAX_TIMELINE = 120, MAX_ADVICE = 4, MAX_LEAK_SITES = 3 };

typedef struct builder {
    pl_json json;
    json_t *report;
    const char *record_directory;
    pl_snapshot snapshot;
    pl_crash_analysis *analysis; /* NULL: nothing crashed */
    json_t *hang;                /* NULL: none was seen */
    pl_facts facts;
    pl_verdict verdict;
    enum pl_sites_moment moment; /* that "sites" describe */
} builder;

static void put(builder *b, const char *key, json_t *value)
{
    pl_json_put(&b->json, b->report, key, value);
}

static double time_s(const builder *b, uint64_t time_ns)
{
    return pl_snapshot_since_start_s(&b->snapshot, time_ns);
}

/* Local time, ISO 8601 with offset: "2026-11-16T03:15:22+01:00". */
static json_t *timestamp(uint64_t realtime_ns)
{
    time_t seconds = (time_t)(realtime_ns / PL_NS_PER_SEC);
    struct tm local;
    char text[64], zone[8] = "";
    if (localtime_r(&seconds, &local) == NULL ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &local) == 0 ||
        strftime(zone, sizeof(zone), "%z", &local) != 5)
        return json_string("");
    return json_sprintf("%s%.3s:%.2s", text, zone, zone + 3);
}

static void put_identity(builder *b)
{
    const pl_snapshot *snapshot = &b->snapshot;
    const char *id = pl_code_place_file_name(b->record_directory);
    json_t *command = json_array();
    for (int i = 0; i < snapshot->n_arguments; i++)
        pl_json_add(&b->json, command, pl_json_text(snapshot->arguments[i]));
    put(b, "schema", json_integer(PL_REPORT_SCHEMA));
    put(b, "run", pl_json_text(id));
    put(b, "record",
        pl_json_text(pl_run_record_is_listed(b->record_directory) ? id : b->record_directory));
    put(b, "command", command);
    put(b, "directory", pl_json_text(snapshot->header.directory));
    put(b, "started", timestamp(snapshot->header.started_realtime_ns));
    if (snapshot->ended)
        put(b, "ended",
            timestamp(
                atomic_load_explicit(&snapshot->header.ended_realtime_ns, memory_order_relaxed)));
    put(b, "duration_s", pl_json_seconds(time_s(b, snapshot->end_ns)));
    put(b, "pid", json_integer(snapshot->command_pid));
}

static void put_exit(builder *b)
{
    int status = b->snapshot.header.wait_status;
    if (!b->snapshot.ended || !(WIFEXITED(status) || WIFSIGNALED(status)))
        return;
    json_t *object = json_object();
    if (WIFSIGNALED(status)) {
        pl_json_put(&b->json, object, "status", json_integer(128 + WTERMSIG(status)));
        pl_json_put(&b->json, object, "signal", json_string(pl_signal_name(WTERMSIG(status))));
    } else {
        pl_json_put(&b->json, object, "status", json_integer(WEXITSTATUS(status)));
    }
    put(b, "exit", object);
}

static void put_verdict(builder *b, const pl_holder *holder)
{
    char advice[MAX_ADVICE][PL_ADVICE_BYTES];
    int n_advice = pl_advice(&b->facts, b->verdict.kind, holder, advice, MAX_ADVICE);
    json_t *evidence = json_array(), *next = json_array();
    for (int i = 0; i < b->verdict.n_evidence; i++)
        pl_json_add(&b->json, evidence, pl_json_text(b->verdict.evidence[i]));
    for (int i = 0; i < n_advice; i++)
        pl_json_add(&b->json, next, pl_json_text(advice[i]));
    put(b, "verdict", json_string(pl_verdict_name(b->verdict.kind)));
    put(b, "summary", pl_json_text(b->verdict.summary));
    put_exit(b);
    put(b, "evidence", evidence);
    put(b, "next", next);
}

static void put_memory(builder *b)
{
    const pl_snapshot *snapshot = &b->snapshot;
    json_t *memory = json_object();
    pl_json_put(&b->json, memory, "limit_bytes", pl_json_u64(snapshot->limit_bytes));
    pl_json_put(&b->json, memory, "reserve_bytes", pl_json_u64(snapshot->header.reserve_bytes));
    pl_json_put(&b->json, memory, "true_limit_bytes",
                pl_json_u64(snapshot->header.true_limit_bytes));
    pl_json_put(&b->json, memory, "true_limit_source", pl_json_text(snapshot->header.limit_source));
    pl_json_put(&b->json, memory, "peak_charged_bytes", pl_json_u64(snapshot->peak_bytes));
    pl_json_put(&b->json, memory, "peak_resident_bytes",
                pl_json_u64(snapshot->peak_resident_bytes));
    pl_json_put(&b->json, memory, "n_refusals", pl_json_u64(snapshot->n_refusals));
    const pl_facts *facts = &b->facts;
    if (facts->observed)
        pl_json_put(&b->json, memory, "observed", json_true());
    if (facts->own_stalls) {
        pl_json_put(&b->json, memory, "stalled_s", pl_json_seconds(facts->stalled_s));
        pl_json_put(&b->json, memory, "stalled_full_s", pl_json_seconds(facts->stalled_full_s));
    }
    if (facts->n_throttles > 0)
        pl_json_put(&b->json, memory, "n_throttles", pl_json_u64(facts->n_throttles));
    put(b, "memory", memory);
}

static json_t *build_frame(builder *b, const pl_python_frame *frame)
{
    return pl_json_python_frame(&b->json, &b->snapshot.places, frame);
}

static json_t *build_refusal(builder *b, const pl_event *event)
{
    json_t *object = json_object();
    const char *kind = event->kind == PL_EVENT_REFUSED  ? "large"
                       : event->kind == PL_EVENT_RAISED ? "raised"
                                                        : "small";
    pl_json_put(&b->json, object, "time_s", pl_json_seconds(time_s(b, event->time_ns)));
    pl_json_put(&b->json, object, "kind", json_string(kind));
    pl_json_put(&b->json, object, "pid", json_integer(event->pid));
    pl_json_put(&b->json, object, "bytes", pl_json_u64(event->bytes));
    pl_json_put(&b->json, object, "charged_bytes", pl_json_u64(event->charged_bytes));
    pl_json_put(&b->json, object, "limit_bytes", pl_json_u64(event->limit_bytes));
    if (pl_json_has_frame(&event->where))
        pl_json_put(&b->json, object, "python", build_frame(b, &event->where));
    return object;
}

static json_t *build_mark(builder *b, const pl_event *event)
{
    json_t *object = json_object();
    pl_json_put(&b->json, object, "time_s", pl_json_seconds(time_s(b, event->time_ns)));
    pl_json_put(&b->json, object, "text", pl_json_text(event->where.function));
    return object;
}

/* A process that was stopped, or that died by a signal. */
static json_t *build_end_of_process(builder *b, const pl_event *event)
{
    char name[PL_FACT_NAME_BYTES];
    pl_snapshot_name(&b->snapshot, event->pid, event, name);
    json_t *object = json_object();
    pl_json_put(&b->json, object, "pid", json_integer(event->pid));
    pl_json_put(&b->json, object, "name", json_string(name));
    if (event->kind == PL_EVENT_STOPPED)
        pl_json_put(&b->json, object, "bytes", pl_json_u64(event->bytes));
    else
        pl_json_put(&b->json, object, "signal",
                    json_string(pl_signal_name((int)(event->detail & 0x7f))));
    pl_json_put(&b->json, object, "time_s", pl_json_seconds(time_s(b, event->time_ns)));
    return object;
}

static json_t *build_line(builder *b, const pl_event *event)
{
    json_t *object = json_object();
    bool by_limit = event->detail == PL_LINE_LIMIT;
    pl_json_put(&b->json, object, "time_s", pl_json_seconds(time_s(b, event->time_ns)));
    pl_json_put(&b->json, object, "cause", json_string(by_limit ? "limit" : "neighbour"));
    pl_json_put(&b->json, object, "bytes", pl_json_u64(event->bytes));
    pl_json_put(&b->json, object, "line_bytes", pl_json_u64(event->limit_bytes));
    pl_json_put_text(&b->json, object, "file", event->where.file);
    if (event->pid > 0) {
        pl_json_put(&b->json, object, "pid", json_integer(event->pid));
        pl_json_put_text(&b->json, object, "name", event->where.function);
    }
    return object;
}

static bool is_line(const pl_event *event)
{
    return event->kind == PL_EVENT_LINE;
}

static bool is_stop(const pl_event *event)
{
    return event->kind == PL_EVENT_STOPPED;
}

static bool is_death(const pl_event *event)
{
    return event->kind == PL_EVENT_DIED;
}

static bool is_mark(const pl_event *event)
{
    return event->kind == PL_EVENT_MARK;
}

/* Lists the newest MAX_LISTED events of one kind, newest last; adds no field when there are
 * none. */
static void put_events(builder *b, const char *key, bool (*is_one)(const pl_event *),
                       json_t *(*build_one)(builder *, const pl_event *))
{
    const pl_event *listed[MAX_LISTED];
    size_t n = 0;
    for (size_t i = b->snapshot.n_events; i > 0 && n < MAX_LISTED; i--)
        if (is_one(&b->snapshot.events[i - 1]))
            listed[n++] = &b->snapshot.events[i - 1];
    if (n == 0)
        return;
    json_t *array = json_array();
    while (n > 0)
        pl_json_add(&b->json, array, build_one(b, listed[--n]));
    put(b, key, array);
}

static void put_crash(builder *b)
{
    const pl_crash *crash = &b->snapshot.crash;
    if (b->analysis == NULL)
        return;
    json_t *object = json_object();
    const char *fault = pl_signal_fault(crash->signal);
    pl_json_put(&b->json, object, "signal", json_string(pl_signal_name(crash->signal)));
    pl_json_put_text(&b->json, object, "kind", fault != NULL ? fault : "");
    pl_json_put(&b->json, object, "pid", json_integer(crash->pid));
    pl_json_put(&b->json, object, "tid", json_integer(crash->tid));
    pl_json_put_text(&b->json, object, "thread", crash->thread_name);
    if (crash->signal != SIGABRT)
        pl_json_put(&b->json, object, "address",
                    json_sprintf("0x%llx", (unsigned long long)crash->address));
    pl_json_put_text(&b->json, object, "reason", b->analysis->reason);
    pl_json_put_text(&b->json, object, "mapping", b->analysis->mapping);
    pl_json_put_text(&b->json, object, "exception", b->analysis->exception);
    put(b, "crash", object);
}

static void put_instruction(builder *b)
{
    if (b->analysis == NULL || !b->analysis->has_instruction)
        return;
    const pl_instruction *instruction = &b->analysis->instruction;
    json_t *object = json_object();
    pl_json_put_text(&b->json, object, "text", instruction->text);
    pl_json_put_text(&b->json, object, "set", instruction->set);
    if (b->analysis->native.n_frames > 0)
        pl_json_put_text(&b->json, object, "module", b->analysis->native.frames[0].module);
    if (instruction->set[0] != '\0')
        pl_json_put(&b->json, object, "cpu_has_set", json_boolean(instruction->cpu_has_set));
    pl_json_put(&b->json, object, "deliberate", json_boolean(instruction->deliberate));
    put(b, "instruction", object);
}

static bool verdict_is_of_crash(const builder *b)
{
    return b->analysis != NULL && ((pl_verdict_has(b->verdict.kind, PL_TRAIT_SIGNAL) &&
                                    pl_verdict_crash_explains_end(&b->facts)) ||
                                   b->facts.crash.cause == PL_CRASH_BAD_ALLOC);
}

/* The stacks of the crash. */
static void put_crash_stacks(builder *b)
{
    const pl_crash *crash = &b->snapshot.crash;
    if (crash->n_python_frames > 0)
        put(b, "python",
            pl_json_python_stack(&b->json, &b->snapshot.places, crash->python,
                                 crash->n_python_frames));
    if (b->analysis->native.n_frames > 0)
        put(b, "native",
            pl_json_native_stack(&b->json, b->analysis->native.frames,
                                 (size_t)b->analysis->native.n_frames));
}

/* The stack that the verdict points at: of its crash, of the last refusal, or of a worker's crash
 * that the command outlived. */
static void put_stacks(builder *b)
{
    if (verdict_is_of_crash(b)) {
        put_crash_stacks(b);
        return;
    }
    for (size_t i = b->snapshot.n_events; i > 0; i--) {
        const pl_event *event = &b->snapshot.events[i - 1];
        if (!pl_event_is_refusal(event))
            continue;
        if (pl_json_has_frame(&event->where))
            put(b, "python", pl_json_python_stack(&b->json, &b->snapshot.places, &event->where, 1));
        return;
    }
    if (b->facts.crash.process.pid != 0 && b->verdict.kind == PL_VERDICT_FINISHED)
        put_crash_stacks(b);
}

/* The stack of the kernel's main thread, as it was when it hung. */
static const json_t *hung_stack(const builder *b)
{
    uint32_t kernel =
        atomic_load_explicit(&b->snapshot.ledger->sum.kernel_pid, memory_order_relaxed);
    const json_t *threads = json_object_get(b->hang, "threads");
    for (size_t i = 0; i < json_array_size(threads); i++) {
        const json_t *thread = json_array_get(threads, i);
        if (json_integer_value(json_object_get(thread, "tid")) == (json_int_t)kernel)
            return json_object_get(thread, "python");
    }
    return NULL;
}

/* Was the last refusal in the cell that ran at the end, not in one before it? */
static bool refused_in_last_cell(const builder *b)
{
    for (size_t i = b->snapshot.n_events; i > 0; i--)
        if (pl_event_is_refusal(&b->snapshot.events[i - 1]))
            return b->snapshot.events[i - 1].cell_number == b->snapshot.cell_number;
    return false;
}

/* The stack of the cell that ran at the end; NULL when there is none. */
static const json_t *last_stack(const builder *b)
{
    if (b->verdict.kind == PL_VERDICT_HANG)
        return hung_stack(b);
    if (verdict_is_of_crash(b) || refused_in_last_cell(b))
        return json_object_get(b->report, "python");
    return NULL;
}

static void put_notebook(builder *b)
{
    pl_site_groups groups = {0};
    if (!b->snapshot.in_notebook)
        return;
    put(b, "notebook", pl_cell_table_notebook(&b->json, &b->snapshot, last_stack(b)));
    if (pl_sites_group(&b->snapshot, b->moment, &groups) < 0)
        b->json.failed = true;
    put(b, "cells", pl_cell_table_build(&b->json, &b->snapshot, &groups));
    pl_sites_groups_done(&groups);
}

static void put_over(builder *b)
{
    const pl_fact_process *over = &b->facts.over;
    if (over->pid == 0)
        return;
    json_t *object = json_object();
    pl_json_put(&b->json, object, "pid", json_integer(over->pid));
    pl_json_put(&b->json, object, "name", pl_json_text(over->name));
    pl_json_put(&b->json, object, "bytes", pl_json_u64(over->bytes));
    put(b, "over", object);
}

static void put_outside(builder *b)
{
    json_t *array = json_array();
    for (int i = 0; i < PL_OUTSIDE_CAUSES; i++) {
        if (b->facts.n_outside[i] == 0)
            continue;
        json_t *object = json_object();
        pl_json_put(&b->json, object, "why",
                    json_string(pl_outside_reason((enum pl_outside_cause)i)));
        pl_json_put(&b->json, object, "n", pl_json_u64(b->facts.n_outside[i]));
        pl_json_add(&b->json, array, object);
    }
    if (json_array_size(array) > 0)
        put(b, "outside", array);
    else
        json_decref(array);
}

static void put_leak(builder *b)
{
    const json_t *sites = json_object_get(b->report, "sites");
    const pl_leak *leak = &b->facts.leak;
    if (!b->verdict.leaked)
        return;
    json_t *object = json_object(), *grown = json_array();
    for (size_t i = 0; i < json_array_size(sites) && i < MAX_LEAK_SITES; i++)
        pl_json_add(&b->json, grown, json_incref(json_array_get(sites, i)));
    pl_json_put(&b->json, object, "bytes_per_s", pl_json_u64((uint64_t)leak->bytes_per_s));
    pl_json_put(&b->json, object, "from_bytes", pl_json_u64(leak->from_bytes));
    pl_json_put(&b->json, object, "to_bytes", pl_json_u64(leak->to_bytes));
    pl_json_put(&b->json, object, "over_s", pl_json_seconds(leak->over_s));
    pl_json_put(&b->json, object, "sites", grown);
    put(b, "leak", object);
}

static void add_point(builder *b, json_t *timeline, const pl_memory_sample *sample)
{
    json_t *point = json_array();
    pl_json_add(&b->json, point, pl_json_seconds(time_s(b, sample->time_ns)));
    pl_json_add(&b->json, point, pl_json_u64(sample->charged_bytes));
    pl_json_add(&b->json, point, pl_json_u64(sample->resident_bytes));
    pl_json_add(&b->json, timeline, point);
}

/* Which of MAX_TIMELINE equal parts of the run's time a sample falls into. Up to MAX_TIMELINE
 * samples have a part each. */
static size_t share_of(const builder *b, size_t i)
{
    const pl_snapshot *snapshot = &b->snapshot;
    double whole_s = time_s(b, snapshot->samples[snapshot->n_samples - 1].time_ns);
    if (snapshot->n_samples <= MAX_TIMELINE || !(whole_s > 0))
        return pl_min_u64(i, MAX_TIMELINE - 1);
    double part = time_s(b, snapshot->samples[i].time_ns) / whole_s;
    return (size_t)pl_min_u64((uint64_t)(part * MAX_TIMELINE), MAX_TIMELINE - 1);
}

/* At most MAX_TIMELINE points: the highest sample of each part of the time, so that no peak is
 * lost. */
static void put_timeline(builder *b)
{
    const pl_memory_sample *samples = b->snapshot.samples;
    size_t n = b->snapshot.n_samples;
    json_t *timeline = json_array();
    for (size_t i = 0, next; i < n; i = next) {
        size_t share = share_of(b, i), highest = i;
        for (next = i + 1; next < n && share_of(b, next) == share; next++)
            if (samples[next].resident_bytes > samples[highest].resident_bytes)
                highest = next;
        add_point(b, timeline, &samples[highest]);
    }
    put(b, "timeline", timeline);
}

static void build_document(builder *b)
{
    pl_holder holder;
    json_t *sites = pl_sites_build(&b->json, &b->snapshot, b->moment, &holder);
    put_identity(b);
    put_verdict(b, &holder);
    put_memory(b);
    put_events(b, "refusals", pl_event_is_refusal, build_refusal);
    put_stacks(b);
    put_notebook(b);
    put(b, "sites_at", json_string(pl_sites_moment_name(b->moment)));
    put(b, "sites_in_use_bytes", pl_json_u64(pl_sites_in_use_bytes(&b->snapshot, b->moment)));
    put(b, "sites", sites);
    put_crash(b);
    put_instruction(b);
    put_leak(b);
    put_over(b);
    put_outside(b);
    if (b->hang != NULL)
        put(b, "hang", json_incref(b->hang));
    put_events(b, "line", is_line, build_line);
    put_events(b, "stopped", is_stop, build_end_of_process);
    put_events(b, "deaths", is_death, build_end_of_process);
    put_events(b, "marks", is_mark, build_mark);
    put_timeline(b);
    if (pl_brief_put(b->report, b->verdict.kind) < 0)
        b->json.failed = true;
}

static int gather(builder *b)
{
    int r = pl_snapshot_take(b->snapshot.ledger, b->record_directory, &b->snapshot);
    if (r < 0)
        return r;
    if (b->snapshot.has_crash) {
        b->analysis = malloc(sizeof(*b->analysis));
        if (b->analysis == NULL)
            return -ENOMEM;
        r = pl_crash_analyse(&b->snapshot.crash, b->record_directory, b->analysis);
        if (r < 0)
            return r;
    }
    r = pl_hang_load(b->record_directory, &b->snapshot.places, &b->hang);
    if (r < 0)
        return r;
    pl_facts_gather(&b->snapshot, b->analysis, pl_hang_has_cycle(b->hang), &b->facts);
    pl_verdict_judge(&b->facts, &b->verdict);
    b->moment = pl_sites_moment_of(&b->snapshot, pl_verdict_has(b->verdict.kind, PL_TRAIT_REFUSAL));
    return 0;
}

int pl_report_build(const pl_ledger *ledger, const char *record_directory, json_t **ret_report,
                    pl_error *reterr)
{
    builder *b = calloc(1, sizeof(*b));
    if (b == NULL)
        return pl_error_set(reterr, -ENOMEM, "cannot make the report: out of memory");
    b->record_directory = record_directory;
    b->snapshot.ledger = ledger;
    int r = gather(b);
    if (r == 0) {
        b->report = json_object();
        build_document(b);
        if (b->json.failed)
            r = -ENOMEM;
    }
    if (r == 0)
        *ret_report = PL_TAKE(b->report);
    else
        pl_error_set(reterr, r, "cannot make the report: %s", pl_error_text(r));
    json_decref(b->report);
    json_decref(b->hang);
    free(b->analysis);
    pl_snapshot_done(&b->snapshot);
    free(b);
    return r;
}
