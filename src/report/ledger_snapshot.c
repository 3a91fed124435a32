/* SPDX-License-Identifier: Apache-2.0 */
/* See ledger_snapshot.h. */
#include "report/ledger_snapshot.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ledger/ledger.h"
#include "report/code_place.h"
#include "report/json.h"

/* The end may lie at most this far behind the last sample. The supervisor samples until the end,
 * with a step that grows with the run. This bound keeps a clock that was set during the run from
 * making the run days long. */
static const uint64_t end_slack_ns = 5 * PL_NS_PER_SEC;

#define END_TEXT(field) ((field)[sizeof(field) - 1] = '\0')

static uint64_t load(const pl_atomic_u64 *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

/* Splits NUL-terminated words, which end in an empty one. */
static int split_words(const char *text, size_t n, const char *words[PL_SNAPSHOT_ARGUMENTS])
{
    int n_words = 0;
    for (size_t i = 0; i < n && text[i] != '\0';) {
        if (n_words == PL_SNAPSHOT_ARGUMENTS) {
            words[PL_SNAPSHOT_ARGUMENTS - 1] = "...";
            break;
        }
        words[n_words++] = text + i;
        i += strlen(text + i) + 1;
    }
    return n_words;
}

static void copy_header(pl_snapshot *snapshot)
{
    pl_ledger_header *header = &snapshot->header;
    /* Written last, so read first: memcpy() promises no order. A run that ended in between has not
     * ended in this snapshot. */
    uint64_t ended_ns = load(&snapshot->ledger->header.ended_realtime_ns);
    memcpy(header, &snapshot->ledger->header, sizeof(*header));
    atomic_init(&header->ended_realtime_ns, ended_ns);
    END_TEXT(header->boot_id);
    END_TEXT(header->limit_source);
    END_TEXT(header->cgroup_path);
    END_TEXT(header->directory);
    END_TEXT(header->command);
    END_TEXT(header->executed);
    END_TEXT(header->kernel);
    END_TEXT(header->notebook);
    END_TEXT(header->previous);
    uint32_t pid = atomic_load_explicit(&header->command_pid, memory_order_relaxed);
    snapshot->command_pid = pid <= INT_MAX ? (pid_t)pid : 0;
    snapshot->ended = ended_ns != 0;
    snapshot->n_arguments =
        split_words(header->command, sizeof(header->command), snapshot->arguments);
}

static void copy_sums(pl_snapshot *snapshot)
{
    const pl_ledger_sum *sum = &snapshot->ledger->sum;
    snapshot->limit_bytes = load(&sum->limit_bytes);
    snapshot->budget_bytes = load(&sum->wanted_bytes);
    snapshot->peak_bytes = load(&sum->peak_bytes);
    snapshot->peak_resident_bytes = load(&sum->peak_resident_bytes);
    snapshot->n_refusals = pl_add_sat_u64(load(&sum->n_refusals), load(&sum->n_raised));
}

static int copy_events(pl_snapshot *snapshot)
{
    snapshot->events = calloc(PL_EVENTS, sizeof(*snapshot->events));
    if (snapshot->events == NULL)
        return -ENOMEM;
    uint64_t next = load(&snapshot->ledger->sum.next_event);
    for (uint64_t number = pl_sub_sat_u64(next, PL_EVENTS); number < next; number++) {
        pl_event *event = &snapshot->events[snapshot->n_events];
        if (!pl_ledger_event_read(snapshot->ledger, number, event) || event->pid < 0)
            continue;
        END_TEXT(event->where.file);
        END_TEXT(event->where.function);
        snapshot->n_events++;
    }
    return 0;
}

/* While we copy, the supervisor may drop every second sample: a time that steps back shows it. */
static int copy_samples(pl_snapshot *snapshot)
{
    snapshot->samples = calloc(PL_SAMPLES, sizeof(*snapshot->samples));
    if (snapshot->samples == NULL)
        return -ENOMEM;
    uint64_t n = pl_min_u64(load(&snapshot->ledger->sum.n_samples), PL_SAMPLES), last_ns = 0;
    for (uint64_t i = 0; i < n; i++) {
        pl_memory_sample sample = snapshot->ledger->samples[i];
        if (sample.time_ns < last_ns || sample.time_ns < snapshot->header.started_monotonic_ns)
            continue;
        last_ns = sample.time_ns;
        snapshot->samples[snapshot->n_samples++] = sample;
    }
    return 0;
}

static void clean_crash(pl_crash *crash)
{
    crash->n_python_frames = (uint32_t)pl_min_u64(crash->n_python_frames, PL_PYTHON_FRAMES);
    crash->n_instruction_bytes =
        (uint32_t)pl_min_u64(crash->n_instruction_bytes, sizeof(crash->instruction));
    END_TEXT(crash->abort_message);
    END_TEXT(crash->exception_type);
    END_TEXT(crash->thread_name);
    for (uint32_t i = 0; i < crash->n_python_frames; i++) {
        END_TEXT(crash->python[i].file);
        END_TEXT(crash->python[i].function);
    }
}

static void copy_crash(pl_snapshot *snapshot)
{
    for (int i = 0; i < PL_CRASHES; i++) {
        const pl_crash *crash = &snapshot->ledger->crashes[i];
        if (atomic_load_explicit(&crash->state, memory_order_acquire) != PL_CRASH_COMPLETE ||
            crash->pid <= 0 || crash->signal <= 0 || crash->signal > 64)
            continue;
        bool own = crash->pid == snapshot->command_pid;
        bool kept_own = snapshot->has_crash && snapshot->crash.pid == snapshot->command_pid;
        if (snapshot->has_crash &&
            (own != kept_own ? kept_own : crash->time_ns < snapshot->crash.time_ns))
            continue;
        pl_crash copy = *crash;
        if (atomic_load_explicit(&crash->state, memory_order_acquire) != PL_CRASH_COMPLETE ||
            crash->time_ns != copy.time_ns)
            continue; /* another process has taken its place meanwhile */
        memcpy(&snapshot->crash, &copy, sizeof(copy));
        snapshot->has_crash = true;
    }
    clean_crash(&snapshot->crash);
}

static uint64_t last_sign_of_life(const pl_snapshot *snapshot)
{
    uint64_t last_ns = snapshot->header.started_monotonic_ns;
    if (snapshot->n_samples > 0)
        last_ns = pl_max_u64(last_ns, snapshot->samples[snapshot->n_samples - 1].time_ns);
    if (snapshot->n_events > 0)
        last_ns = pl_max_u64(last_ns, snapshot->events[snapshot->n_events - 1].time_ns);
    if (snapshot->has_crash)
        last_ns = pl_max_u64(last_ns, snapshot->crash.time_ns);
    return last_ns;
}

static uint64_t find_end(const pl_snapshot *snapshot)
{
    const pl_ledger_header *header = &snapshot->header;
    uint64_t last_ns = last_sign_of_life(snapshot);
    if (snapshot->ended) {
        uint64_t ran_ns =
            pl_sub_sat_u64(load(&header->ended_realtime_ns), header->started_realtime_ns);
        uint64_t end_ns = pl_add_sat_u64(header->started_monotonic_ns, ran_ns);
        uint64_t step_ns = load(&snapshot->ledger->sum.sample_step_ns);
        if (snapshot->n_samples > 0)
            end_ns =
                pl_min_u64(end_ns, pl_add_sat_u64(pl_add_sat_u64(last_ns, step_ns), end_slack_ns));
        return pl_max_u64(end_ns, last_ns);
    }
    bool runs = snapshot->state.supervisor_alive || snapshot->state.command_alive;
    return runs ? pl_max_u64(pl_clock_monotonic_ns(), last_ns) : last_ns;
}

/* A cell that ran when the kernel died still counts as running, which is what a report needs. */
static void copy_cell(pl_snapshot *snapshot)
{
    const pl_ledger_sum *sum = &snapshot->ledger->sum;
    uint32_t cell = atomic_load_explicit(&sum->cell, memory_order_acquire);
    uint32_t number = atomic_load_explicit(&sum->cell_number, memory_order_relaxed);
    snapshot->in_notebook = snapshot->header.kernel[0] != '\0' ||
                            atomic_load_explicit(&sum->kernel_pid, memory_order_relaxed) != 0;
    if (cell >= 1 && cell <= PL_CELLS && number != 0) {
        snapshot->cell = cell;
        snapshot->cell_number = number;
    }
}

int pl_snapshot_take(const struct pl_ledger *ledger, const char *record_directory,
                     pl_snapshot *ret_snapshot)
{
    *ret_snapshot = (pl_snapshot){.ledger = ledger};
    copy_header(ret_snapshot);
    pl_run_record_state_read(ledger, &ret_snapshot->state);
    copy_sums(ret_snapshot);
    int r = copy_events(ret_snapshot);
    if (r == 0)
        r = copy_samples(ret_snapshot);
    if (r == 0)
        r = pl_cell_sources_load(ledger, record_directory, &ret_snapshot->cells);
    if (r < 0) {
        pl_snapshot_done(ret_snapshot);
        return r;
    }
    ret_snapshot->places = (pl_place_context){.directory = ret_snapshot->header.directory,
                                              .cells = ret_snapshot->cells};
    copy_crash(ret_snapshot);
    copy_cell(ret_snapshot);
    ret_snapshot->end_ns = find_end(ret_snapshot);
    return 0;
}

void pl_snapshot_done(pl_snapshot *snapshot)
{
    free(PL_TAKE(snapshot->events));
    free(PL_TAKE(snapshot->samples));
    pl_cell_sources_free(PL_TAKE(snapshot->cells));
}

static double seconds_between(uint64_t from_ns, uint64_t to_ns)
{
    return (double)pl_sub_sat_u64(to_ns, from_ns) / (double)PL_NS_PER_SEC;
}

double pl_snapshot_since_start_s(const pl_snapshot *snapshot, uint64_t time_ns)
{
    return seconds_between(snapshot->header.started_monotonic_ns, time_ns);
}

double pl_snapshot_before_end_s(const pl_snapshot *snapshot, uint64_t time_ns)
{
    return seconds_between(time_ns, snapshot->end_ns);
}

bool pl_snapshot_runs(const pl_snapshot *snapshot)
{
    return !snapshot->ended && (snapshot->state.supervisor_alive || snapshot->state.command_alive);
}

/* Returns the script for "python3 -u train.py", the module for "python -m train", else the
 * program. */
static const char *name_of(const char *const *arguments, int n)
{
    if (n == 0)
        return "?";
    const char *program = pl_code_place_file_name(arguments[0]);
    if (strncmp(program, "python", 6) != 0)
        return program;
    for (int i = 1; i < n; i++) {
        const char *argument = arguments[i];
        bool has_value = strcmp(argument, "-W") == 0 || strcmp(argument, "-X") == 0;
        if (strcmp(argument, "-c") == 0)
            return program;
        if (strcmp(argument, "-m") == 0)
            return i + 1 < n ? arguments[i + 1] : program;
        if (argument[0] != '-')
            return pl_code_place_file_name(argument);
        i += has_value;
    }
    return program;
}

/* Did the command exec another program? The interpreter of a script (#!) has the script's name
 * among its arguments, and does not count. */
static bool became_another(const pl_snapshot *snapshot, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (snapshot->n_arguments == 0 || strcmp(words[i], snapshot->arguments[0]) == 0)
            return false;
    return n > 0;
}

static const char *command_name(const pl_snapshot *snapshot)
{
    const char *words[PL_SNAPSHOT_ARGUMENTS];
    const pl_ledger_header *header = &snapshot->header;
    int n = split_words(header->executed, sizeof(header->executed), words);
    if (became_another(snapshot, words, n))
        return name_of(words, n);
    return name_of(snapshot->arguments, snapshot->n_arguments);
}

static const pl_ledger_slot *find_slot(const pl_snapshot *snapshot, pid_t pid)
{
    for (int i = 0; i < pl_ledger_n_slots(snapshot->ledger); i++) {
        const pl_ledger_slot *slot = &snapshot->ledger->slots[i];
        if (atomic_load_explicit(&slot->pid, memory_order_relaxed) == (uint32_t)pid)
            return slot;
    }
    return NULL;
}

void pl_snapshot_name(const pl_snapshot *snapshot, pid_t pid, const pl_event *event,
                      char name[PL_FACT_NAME_BYTES])
{
    const pl_ledger_slot *slot = pid > 0 ? find_slot(snapshot, pid) : NULL;
    name[0] = '\0';
    if (pid == snapshot->command_pid)
        pl_json_clean(command_name(snapshot), PL_FACT_NAME_BYTES, name, PL_FACT_NAME_BYTES);
    else if (event != NULL)
        pl_json_clean(event->where.function, sizeof(event->where.function), name,
                      PL_FACT_NAME_BYTES);
    if (name[0] == '\0' && slot != NULL)
        pl_json_clean(slot->name, sizeof(slot->name), name, PL_FACT_NAME_BYTES);
}
