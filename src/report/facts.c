/* SPDX-License-Identifier: Apache-2.0 */
/* See facts.h. */
#include "report/facts.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "report/code_place.h"
#include "report/json.h"

/* A hanging tree may still use this share of the processor, for timers and polls. If it used more,
 * it has gone on. */
static const double idle_share = 0.02;

static bool is_kernel(const pl_snapshot *snapshot, pid_t pid)
{
    const pl_ledger_sum *sum = &snapshot->ledger->sum;
    bool marks_cells =
        (uint32_t)pid == atomic_load_explicit(&sum->kernel_pid, memory_order_relaxed);
    return snapshot->header.kernel[0] != '\0' && pid > 0 &&
           (pid == snapshot->command_pid || marks_cells);
}

static void fill_process(const pl_snapshot *snapshot, const pl_event *event, bool has_name,
                         pl_fact_process *process)
{
    process->pid = event->pid;
    process->bytes = event->bytes;
    process->is_kernel = is_kernel(snapshot, event->pid);
    process->before_end_s = pl_snapshot_before_end_s(snapshot, event->time_ns);
    pl_snapshot_name(snapshot, event->pid, has_name ? event : NULL, process->name);
}

static void fill_refusal(const pl_snapshot *snapshot, const pl_event *event,
                         pl_fact_refusal *refusal)
{
    *refusal = (pl_fact_refusal){
        .charged_bytes = event->charged_bytes,
        .limit_bytes = event->limit_bytes,
        .in_python = event->kind != PL_EVENT_REFUSED || event->where.line != 0,
    };
    fill_process(snapshot, event, false, &refusal->process);
    refusal->process.bytes = pl_refusal_asked_bytes(event);
    if (pl_json_has_frame(&event->where))
        pl_code_place_python(&event->where, &snapshot->places, refusal->place);
}

static void gather_line(const pl_snapshot *snapshot, const pl_event *event, pl_facts *facts)
{
    bool by_limit = event->detail == PL_LINE_LIMIT;
    pl_fact_line *line = by_limit ? &facts->moved_limit : &facts->neighbours;
    if (!by_limit && (event->detail != PL_LINE_NEIGHBOUR || event->bytes == 0))
        return; /* a neighbour that gave back its memory of the start did no harm */
    if (line->n++ > 0 && !by_limit && event->limit_bytes > line->line_bytes)
        return;
    fill_process(snapshot, event, true, &line->process);
    line->line_bytes = event->limit_bytes;
    line->since_start_s = pl_snapshot_since_start_s(snapshot, event->time_ns);
    pl_json_clean(event->where.file, sizeof(event->where.file), line->file, sizeof(line->file));
}

static void gather_denied(const pl_snapshot *snapshot, const pl_event *event, pl_facts *facts)
{
    fill_process(snapshot, event, false, &facts->denied);
    facts->denied_limits = event->detail;
    facts->denied_place[0] = '\0';
    if (pl_json_has_frame(&event->where))
        pl_code_place_python(&event->where, &snapshot->places, facts->denied_place);
}

static void gather_inner(const pl_event *event, pl_facts *facts)
{
    if (event->detail < 1 || event->detail > PL_VERDICTS)
        return;
    facts->has_inner = true;
    facts->inner_verdict = (enum pl_verdict_kind)(event->detail - 1);
    pl_json_clean(event->where.file, sizeof(event->where.file), facts->inner_run,
                  sizeof(facts->inner_run));
}

static void gather_events(const pl_snapshot *snapshot, pl_facts *facts)
{
    for (size_t i = 0; i < snapshot->n_events; i++) {
        const pl_event *event = &snapshot->events[i];
        if (pl_event_is_refusal(event)) {
            fill_refusal(snapshot, event, &facts->refusal);
        } else if (event->kind == PL_EVENT_LINE) {
            gather_line(snapshot, event, facts);
        } else if (event->kind == PL_EVENT_DENIED) {
            gather_denied(snapshot, event, facts);
        } else if (event->kind == PL_EVENT_INNER) {
            gather_inner(event, facts);
        } else if (event->kind == PL_EVENT_OVER) {
            fill_process(snapshot, event, true, &facts->over);
        } else if (event->kind == PL_EVENT_STOPPED) {
            facts->n_stopped++;
            if (facts->stopped.pid == 0 || facts->stopped.pid != facts->command.pid)
                fill_process(snapshot, event, true, &facts->stopped);
        }
    }
}

static bool was_stopped(const pl_snapshot *snapshot, pid_t pid)
{
    for (size_t i = 0; i < snapshot->n_events; i++)
        if (snapshot->events[i].kind == PL_EVENT_STOPPED && snapshot->events[i].pid == pid)
            return true;
    return false;
}

static void gather_killed_worker(const pl_snapshot *snapshot, pl_facts *facts)
{
    for (size_t i = 0; i < snapshot->n_events; i++) {
        const pl_event *event = &snapshot->events[i];
        if (event->kind == PL_EVENT_DIED && event->detail == SIGKILL &&
            event->pid != snapshot->command_pid && !was_stopped(snapshot, event->pid))
            fill_process(snapshot, event, true, &facts->killed_worker);
    }
}

static void gather_hang(const pl_snapshot *snapshot, pl_facts *facts)
{
    const pl_event *hang = NULL;
    for (size_t i = 0; i < snapshot->n_events; i++)
        if (snapshot->events[i].kind == PL_EVENT_HANG)
            hang = &snapshot->events[i];
    if (hang == NULL)
        return;

    uint64_t cpu_then_ns = 0, cpu_now_ns = 0;
    for (size_t i = 0; i < snapshot->n_samples; i++) {
        cpu_now_ns = snapshot->samples[i].cpu_ns;
        if (snapshot->samples[i].time_ns <= hang->time_ns)
            cpu_then_ns = cpu_now_ns;
    }
    double since_s = pl_snapshot_before_end_s(snapshot, hang->time_ns);
    double used_s = (double)pl_sub_sat_u64(cpu_now_ns, cpu_then_ns) / (double)PL_NS_PER_SEC;
    facts->hangs = used_s <= idle_share * since_s + 0.5; /* allows half a second for ending it */
    facts->idle_s = (double)hang->bytes / (double)PL_NS_PER_SEC + since_s;
}

static double refused_before(const pl_snapshot *snapshot, const pl_crash *crash)
{
    double before_s = -1;
    for (size_t i = 0; i < snapshot->n_events; i++) {
        const pl_event *event = &snapshot->events[i];
        if (pl_event_is_refusal(event) && event->pid == crash->pid &&
            event->time_ns <= crash->time_ns)
            before_s = (double)(crash->time_ns - event->time_ns) / (double)PL_NS_PER_SEC;
    }
    return before_s;
}

static void gather_place(const pl_snapshot *snapshot, const pl_crash_analysis *analysis,
                         pl_fact_crash *fact)
{
    const pl_crash *crash = &snapshot->crash;
    int python = pl_code_place_pick_python(crash->python, (int)crash->n_python_frames);
    int native = pl_code_place_pick_native(analysis->native.frames, analysis->native.n_frames);
    if (python >= 0)
        pl_code_place_python(&crash->python[python], &snapshot->places, fact->place);
    else if (native >= 0)
        pl_code_place_native(&analysis->native.frames[native], fact->place);
    fact->has_line =
        python >= 0 || (native >= 0 && analysis->native.frames[native].source[0] != '\0');
    /* An illegal instruction is its own module's; another fault is its caller's, not libc's. */
    int culprit = crash->signal == SIGILL ? 0 : native;
    if (culprit < 0 || culprit >= analysis->native.n_frames)
        return;
    const char *module = analysis->native.frames[culprit].module;
    snprintf(fact->module, sizeof(fact->module), "%.60s", pl_code_place_file_name(module));
    fact->in_interpreter = pl_code_place_is_interpreter(module);
    fact->in_program = strcmp(fact->module, fact->process.name) == 0;
}

static void gather_crash(const pl_snapshot *snapshot, const pl_crash_analysis *analysis,
                         pl_fact_crash *fact)
{
    const pl_crash *crash = &snapshot->crash;
    fact->process.pid = crash->pid;
    fact->process.is_kernel = is_kernel(snapshot, crash->pid);
    fact->process.before_end_s = pl_snapshot_before_end_s(snapshot, crash->time_ns);
    pl_snapshot_name(snapshot, crash->pid, NULL, fact->process.name);
    fact->signal = crash->signal;
    fact->sender_pid = pl_crash_sender(crash);
    fact->refused_before_s = refused_before(snapshot, crash);
    fact->cause = analysis->cause;
    snprintf(fact->reason, sizeof(fact->reason), "%s", analysis->reason);
    snprintf(fact->mapping, sizeof(fact->mapping), "%s", analysis->mapping);
    if (analysis->has_instruction && !analysis->instruction.deliberate &&
        !analysis->instruction.cpu_has_set)
        snprintf(fact->missing_set, sizeof(fact->missing_set), "%s", analysis->instruction.set);
    gather_place(snapshot, analysis, fact);
}

static bool has_charge(const pl_event *event)
{
    return pl_event_is_refusal(event) || event->kind == PL_EVENT_STOPPED ||
           event->kind == PL_EVENT_OVER || event->kind == PL_EVENT_ROSE;
}

/* Collects the charged bytes over time. Events are points as well as samples: the guards record
 * each rise and each refusal, even when a busy machine keeps the supervisor from sampling. */
static size_t collect_points(const pl_snapshot *snapshot, pl_leak_point *points)
{
    size_t n = 0, i_event = 0;
    for (size_t i = 0; i <= snapshot->n_samples; i++) {
        const pl_memory_sample *sample = i < snapshot->n_samples ? &snapshot->samples[i] : NULL;
        for (; i_event < snapshot->n_events; i_event++) {
            const pl_event *event = &snapshot->events[i_event];
            if (sample != NULL && event->time_ns > sample->time_ns)
                break;
            if (has_charge(event))
                points[n++] =
                    (pl_leak_point){.time_s = pl_snapshot_since_start_s(snapshot, event->time_ns),
                                    .bytes = event->charged_bytes};
        }
        if (sample != NULL)
            points[n++] =
                (pl_leak_point){.time_s = pl_snapshot_since_start_s(snapshot, sample->time_ns),
                                .bytes = sample->charged_bytes};
    }
    return n;
}

static void gather_leak(const pl_snapshot *snapshot, pl_facts *facts)
{
    uint64_t limit_bytes = snapshot->limit_bytes;
    if (facts->true_limit_bytes > 0)
        limit_bytes = pl_min_u64(limit_bytes, facts->true_limit_bytes);
    pl_leak_point points[PL_SAMPLES + PL_EVENTS];
    facts->leak = pl_leak_find(points, collect_points(snapshot, points), limit_bytes);
}

static void gather_outside(const pl_snapshot *snapshot, pl_facts *facts)
{
    for (int i = 0; i < PL_OUTSIDE_CAUSES; i++)
        facts->n_outside[i] =
            atomic_load_explicit(&snapshot->ledger->sum.n_outsiders[i], memory_order_relaxed);
}

static void gather_memory(const pl_snapshot *snapshot, pl_facts *facts)
{
    facts->limit_bytes = snapshot->limit_bytes;
    facts->budget_bytes = snapshot->budget_bytes;
    facts->reserve_bytes = snapshot->header.reserve_bytes;
    facts->true_limit_bytes = snapshot->header.true_limit_bytes;
    facts->line_is_cells =
        atomic_load_explicit(&snapshot->ledger->sum.cell_limit_bytes, memory_order_relaxed) != 0;
    facts->peak_bytes = snapshot->peak_resident_bytes;
    facts->n_refusals = snapshot->n_refusals;
    facts->sampled = snapshot->n_samples > 0;
    if (facts->sampled) {
        const pl_memory_sample *last = &snapshot->samples[snapshot->n_samples - 1];
        facts->last_resident_bytes = pl_max_u64(last->resident_bytes, last->cgroup_bytes);
        facts->last_available_bytes = last->available_bytes;
    }
    const pl_ledger_header *header = &snapshot->header;
    facts->lasted_s = pl_snapshot_since_start_s(snapshot, snapshot->end_ns);
    facts->stalled_s = (double)header->stalled_some_us / 1e6;
    facts->stalled_full_s = (double)header->stalled_full_us / 1e6;
    facts->own_stalls = header->flags & PL_RUN_OWN_PRESSURE;
    facts->n_throttles = header->n_throttles;
    facts->address_limit_bytes = header->address_limit_bytes;
    facts->data_limit_bytes = header->data_limit_bytes;
    facts->own_data_limit = header->flags & PL_RUN_OWN_DATA_LIMIT;
    gather_leak(snapshot, facts);
}

static void gather_end(const pl_snapshot *snapshot, pl_facts *facts)
{
    const pl_ledger_header *header = &snapshot->header;
    facts->ended = snapshot->ended;
    facts->supervisor_alive = snapshot->state.supervisor_alive;
    facts->command_alive = snapshot->state.command_alive;
    facts->rebooted = snapshot->state.rebooted;
    facts->cut_short = snapshot->state.cut_short;
    if (snapshot->ended) {
        facts->wait_status = header->wait_status;
        facts->stop_signal = (int)(header->stop_signal & 0x7f);
        facts->seccomp_mode = header->seccomp_mode;
        facts->n_oom_kills = header->n_oom_kills;
        facts->n_vm_oom_kills = header->n_vm_oom_kills;
        facts->has_memory_cgroup = header->cgroup_path[0] != '\0';
    } else {
        facts->n_oom_kills = snapshot->state.n_oom_kills;
        facts->has_memory_cgroup = snapshot->state.oom_counted;
        facts->group_gone = snapshot->state.had_group && !snapshot->state.oom_counted;
        facts->vm_counted = snapshot->state.vm_counted;
        facts->n_vm_oom_kills = snapshot->state.n_vm_oom_kills;
    }
}

void pl_facts_gather(const pl_snapshot *snapshot, const pl_crash_analysis *analysis,
                     bool lock_cycle, pl_facts *ret_facts)
{
    *ret_facts = (pl_facts){.command.pid = snapshot->command_pid, .lock_cycle = lock_cycle};
    pl_snapshot_name(snapshot, snapshot->command_pid, NULL, ret_facts->command.name);
    ret_facts->command.is_kernel = is_kernel(snapshot, snapshot->command_pid);
    ret_facts->in_notebook = snapshot->in_notebook;
    ret_facts->observed = snapshot->header.flags & PL_RUN_OBSERVE;
    ret_facts->cell = snapshot->cell != 0 ? snapshot->cell_number : 0;
    gather_end(snapshot, ret_facts);
    gather_memory(snapshot, ret_facts);
    gather_events(snapshot, ret_facts);
    gather_killed_worker(snapshot, ret_facts);
    gather_outside(snapshot, ret_facts);
    gather_hang(snapshot, ret_facts);
    if (analysis != NULL)
        gather_crash(snapshot, analysis, &ret_facts->crash);
    else
        ret_facts->crash.refused_before_s = -1;
}
