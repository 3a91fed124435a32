/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/watch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/room.h"
#include "plimsoll/budget.h"
#include "sys/machine.h"
#include "sys/proc.h"

/* Calm: four samples a second, more at the start (an eighth of the time passed), so that a short
 * run has a timeline, too; fewer when one costs more than 1/400 of its period. Near the line, where
 * a process can grow by a gigabyte in 0.2 s: fifty, at 1/10. */
#define CALM_PERIOD_NS    (250 * PL_NS_PER_MS)
#define PRESSED_PERIOD_NS (20 * PL_NS_PER_MS)
#define LONGEST_PERIOD_NS (2 * PL_NS_PER_SEC)
enum { CALM_COST = 400, PRESSED_COST = 10 };

/* The guards raise and refuse first; a process that stays over the hard mark for this long ignores
 * them. */
#define PATIENCE_NS (500 * PL_NS_PER_MS)

/* Less CPU than this share of the time is not progress: a polling loop sleeps most of the time. */
enum { PROGRESS_SHARE = 200 };

static int start_slot(pl_watch *watch)
{
    int r = pl_ledger_join(watch->ledger, 1, &watch->owner);
    if (r < 0)
        return r;
    pl_ledger_slot *slot = &watch->ledger->slots[watch->owner];
    atomic_store(&slot->flags, PL_SLOT_OBSERVER);
    snprintf(slot->name, sizeof slot->name, "plimsoll");
    return 0;
}

static void note_cgroup(pl_watch *watch)
{
    const pl_cgroup *cgroup = &watch->allowance.cgroup;
    pl_ledger_header *header = &watch->ledger->header;
    header->cgroup_limit_bytes = pl_cgroup_limit_bytes(cgroup);
    if (strlen(cgroup->path) < sizeof header->cgroup_path)
        strcpy(header->cgroup_path, cgroup->path);
    if (pl_cgroup_id_at(cgroup->path, &header->cgroup_id) < 0)
        header->cgroup_id = 0;
    if (pl_cgroup_oom_kills(cgroup, &header->baseline_oom_kills) < 0)
        header->baseline_oom_kills = 0;
    if (pl_cgroup_pressure_read(cgroup, &watch->pressure) < 0)
        watch->pressure = (pl_cgroup_pressure){0};
    watch->baseline_pressure = watch->pressure;
    watch->baseline_throttles = pl_cgroup_throttles(cgroup);
    if (cgroup->pressure_is_own)
        header->flags |= PL_RUN_OWN_PRESSURE;
}

int pl_watch_init(pl_watch *watch, pl_ledger *ledger, const pl_supervise_options *options)
{
    watch->ledger = ledger;
    watch->options = options;
    watch->period_ns = PRESSED_PERIOD_NS;
    int r = start_slot(watch);
    if (r < 0)
        return r;

    pl_ledger_header *header = &ledger->header;
    if (pl_allowance_init(&watch->allowance, "") == 0)
        note_cgroup(watch);
    watch->n_oom_kills = header->baseline_oom_kills;
    if (pl_machine_oom_kills("", &header->baseline_vm_oom_kills) < 0)
        header->baseline_vm_oom_kills = 0;
    watch->line_reported_bytes = pl_ledger_limit_bytes(ledger);
    watch->others_reported_bytes = watch->allowance.others_bytes;
    watch->sampled_ns = watch->moved_ns = pl_clock_monotonic_ns();
    return 0;
}

void pl_watch_done(pl_watch *watch)
{
    pl_ledger_leave(watch->ledger, watch->owner);
    pl_allowance_done(&watch->allowance);
}

static uint64_t guarded_charge(const pl_watch *watch)
{
    uint64_t sum = 0;
    int n = pl_ledger_n_slots(watch->ledger);
    for (int i = 0; i < n; i++) {
        const pl_ledger_slot *slot = &watch->ledger->slots[i];
        if (i != watch->owner && atomic_load(&slot->pid))
            sum += atomic_load(&slot->claimed_bytes) + atomic_load(&slot->measured_bytes);
    }
    return sum;
}

/* A guard looks only when its process asks for memory: it does not see memory that was freed or
 * touched since then. The memory that a process uses beyond its claims is at most all that it has
 * resident, and at least the part left of that when every claim is touched. */
static void correct_measures(pl_watch *watch)
{
    for (int i = 0; i < watch->tree.n; i++) {
        const pl_tree_process *process = &watch->tree.processes[i];
        if (process->slot < 0 || process->state == 'Z') /* its first thread ended: statm says 0 */
            continue;
        const pl_ledger_slot *slot = &watch->ledger->slots[process->slot];
        uint64_t measured = atomic_load(&slot->measured_bytes);
        uint64_t most = process->private_bytes;
        uint64_t least =
            process->shares_pages ? 0 : pl_sub_sat_u64(most, atomic_load(&slot->claimed_bytes));
        if (measured > most ||
            measured < least) /* a process that has ended meanwhile needs no measure */
            (void)!pl_ledger_measure_other(watch->ledger, watch->owner, process->slot, process->pid,
                                           pl_clamp_u64(measured, least, most));
    }
}

/* Only a limited group's usage says something about the run: the root group's is the whole
 * machine. */
static void read_system(pl_watch *watch)
{
    pl_machine_memory machine = {0};
    watch->available_bytes =
        pl_machine_memory_read("", &machine) == 0 ? machine.available_bytes : UINT64_MAX;
    pl_allowance_read(&watch->allowance, &watch->tree);
    watch->cgroup_bytes = watch->allowance.gained_bytes;
    watch->room_bytes = pl_min_u64(watch->available_bytes, watch->allowance.left_bytes);
}

static void charge_unseen(pl_watch *watch)
{
    uint64_t charge = guarded_charge(watch);
    uint64_t guarded_use = watch->tree.used_bytes - watch->tree.unguarded_bytes;
    uint64_t unseen = watch->tree.unguarded_bytes + pl_sub_sat_u64(guarded_use, charge);
    unseen = pl_max_u64(unseen, pl_sub_sat_u64(watch->cgroup_bytes, charge));
    pl_shared_files_look(&watch->shared_files, watch->ledger, &watch->tree, unseen,
                         pl_clock_monotonic_ns());
    pl_ledger_measure(watch->ledger, watch->owner, unseen);
}

static uint32_t pressure_ppm(pl_watch *watch, uint64_t now_ns)
{
    pl_cgroup_pressure now;
    if (pl_cgroup_pressure_read(&watch->allowance.cgroup, &now) < 0)
        return 0;
    uint64_t stalled_us = now.some_us - watch->pressure.some_us;
    uint64_t passed_us = (now_ns - watch->sampled_ns) / 1000;
    watch->pressure = now;
    pl_ledger_header *header = &watch->ledger->header;
    header->stalled_some_us = pl_sub_sat_u64(now.some_us, watch->baseline_pressure.some_us);
    header->stalled_full_us = pl_sub_sat_u64(now.full_us, watch->baseline_pressure.full_us);
    return passed_us ? (uint32_t)pl_min_u64(stalled_us * 1000000 / passed_us, 1000000) : 0;
}

static void take_sample(pl_watch *watch, uint64_t now_ns)
{
    watch->ledger->header.n_throttles =
        pl_sub_sat_u64(pl_cgroup_throttles(&watch->allowance.cgroup), watch->baseline_throttles);
    static long ticks_per_s;
    if (!ticks_per_s)
        ticks_per_s = sysconf(_SC_CLK_TCK);
    pl_memory_sample sample = {
        .time_ns = now_ns,
        .charged_bytes = pl_ledger_charged_bytes(watch->ledger),
        .resident_bytes = watch->tree.resident_bytes,
        .cgroup_bytes = watch->cgroup_bytes,
        .cpu_ns = watch->tree.cpu_ticks * (PL_NS_PER_SEC / (uint64_t)ticks_per_s),
        .n_processes = (uint32_t)watch->tree.n,
        .psi_some_ppm = pressure_ppm(watch, now_ns),
        .available_bytes = watch->available_bytes,
        .n_oom_kills = watch->n_oom_kills,
    };
    pl_ledger_sample(watch->ledger, &sample);
    pl_peak_raise(&watch->ledger->sum.peak_resident_bytes, sample.resident_bytes);
    uint64_t marked = atomic_load(&watch->ledger->sum.sites_peak_bytes);
    if (sample.charged_bytes > marked + marked / 64)
        pl_ledger_mark_peak(watch->ledger);
}

static void report_event(pl_watch *watch, uint32_t kind, const pl_tree_process *process,
                         uint64_t bytes)
{
    pl_event event = {.kind = kind, .pid = process->pid, .tid = process->pid, .bytes = bytes};
    snprintf(event.where.function, sizeof event.where.function, "%s", process->name);
    pl_ledger_event(watch->ledger, &event);
}

static void stop_process(pl_watch *watch, const pl_tree_process *process)
{
    if (process->slot >= 0)
        atomic_fetch_or(&watch->ledger->slots[process->slot].flags, PL_SLOT_STOPPED);
    report_event(watch, PL_EVENT_STOPPED, process, process->used_bytes);
    watch->stopped_pid = process->pid;
    watch->stopped_ns = pl_clock_monotonic_ns();
    if (pl_proc_alive(process->pid, process->start_ticks))
        kill(process->pid, SIGKILL);
}

/* Gives the path of a limit's file, or the end of one that is too long. */
static void name_limit(const pl_cgroup *cgroup, int level, const char *file, char *text,
                       size_t size)
{
    size_t length = cgroup->levels[level].path_length, room = size - strlen(file) - sizeof "...//";
    const char *dots = length > room ? "..." : "";
    size_t cut = length > room ? length - room : 0;
    snprintf(text, size, "%s%.*s/%s", dots, (int)(length - cut), cgroup->path + cut, file);
}

static void report_line(pl_watch *watch, uint64_t now_ns)
{
    const pl_allowance *allowance = &watch->allowance;
    pl_event event = {.kind = PL_EVENT_LINE, .detail = PL_LINE_NEIGHBOUR};
    if (allowance->limits_changed) {
        const pl_cgroup_change *change = &allowance->change;
        event.detail = PL_LINE_LIMIT;
        event.bytes = change->limit_bytes;
        name_limit(&allowance->cgroup, change->level, change->file, event.where.file,
                   sizeof event.where.file);
    } else {
        pl_neighbour who = pl_allowance_who_grew(allowance);
        pl_proc_stat stat;
        event.bytes = allowance->others_gained_bytes;
        event.pid = who.pid;
        if (who.pid && pl_proc_stat_read(who.pid, &stat) == 0)
            snprintf(event.where.function, sizeof event.where.function, "%s", stat.name);
    }
    pl_ledger_event(watch->ledger, &event);
    watch->line_reported_bytes = pl_ledger_limit_bytes(watch->ledger);
    watch->others_reported_bytes = allowance->others_bytes;
    watch->line_reported_ns = now_ns;
    watch->n_lines_reported++;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return pl_max_u64(a, b) - pl_min_u64(a, b);
}

/* A changed limit is always reported. Neighbours come and go: they are reported only when both they
 * and the line moved by a sixteenth of the line since the last time, at most once a second, and a
 * limited number of times, because each event pushes out an older one. The run's own needs at the
 * start move the line, too. */
static bool worth_reporting(const pl_watch *watch, uint64_t now_ns)
{
    enum { MOST_REPORTED = PL_EVENTS / 8 };
    uint64_t line = pl_ledger_limit_bytes(watch->ledger), reported = watch->line_reported_bytes;
    uint64_t moved = pl_min_u64(distance(line, reported), distance(watch->allowance.others_bytes,
                                                                   watch->others_reported_bytes));
    if (watch->allowance.limits_changed)
        return true;
    return watch->n_lines_reported < MOST_REPORTED && moved > reported / 16 &&
           (watch->n_lines_reported == 0 || now_ns - watch->line_reported_ns >= PL_NS_PER_SEC);
}

/* The true limit is the least that the machine, the cgroups and the fixed limits give. */
static void note_limits(pl_watch *watch)
{
    pl_ledger_header *header = &watch->ledger->header;
    const pl_allowance *allowance = &watch->allowance;
    const pl_cgroup *cgroup = &allowance->cgroup;
    char *source = header->limit_source;
    uint64_t least = pl_add_sat_u64(watch->available_bytes, watch->tree.used_bytes);
    snprintf(source, sizeof header->limit_source, "MemAvailable /proc/meminfo");
    if (allowance->tightest >= 0 && allowance->gives_bytes < least) {
        least = allowance->gives_bytes;
        snprintf(source, sizeof header->limit_source, "cgroup v%d %.*s/%s", cgroup->version,
                 (int)cgroup->levels[allowance->tightest].path_length, cgroup->path,
                 cgroup->levels[allowance->tightest].limit_file);
    }
    if (header->steady_limit_bytes > 0 && header->steady_limit_bytes <= least) {
        least = header->steady_limit_bytes;
        snprintf(source, sizeof header->limit_source, "%s", header->steady_source);
    }
    header->true_limit_bytes = least;
    header->cgroup_limit_bytes = pl_cgroup_limit_bytes(cgroup);
}

/* Limits that are changed and neighbours that grow move the line, down and up again, never above
 * what the user asked for. It moves in steps, not with every page of a neighbour; the reserve
 * covers the difference. */
static void follow_system(pl_watch *watch, uint64_t now_ns)
{
    pl_ledger *ledger = watch->ledger;
    const pl_allowance *allowance = &watch->allowance;
    uint64_t reserve = ledger->header.reserve_bytes, step = reserve / 4;
    uint64_t allowed = UINT64_MAX, before = atomic_load(&ledger->sum.system_bytes);
    if (allowance->tightest >= 0)
        allowed = pl_max_u64(pl_sub_sat_u64(allowance->gives_bytes, reserve), PL_BUDGET_MIN_BYTES);
    if (!allowance->limits_changed && distance(allowed, before) <= step)
        allowed = before;
    if (allowance->limits_changed || allowed != before)
        note_limits(watch);
    pl_ledger_set_system_bytes(ledger, allowed); /* also when it is the same: see ledger.c */
    if (worth_reporting(watch, now_ns))
        report_line(watch, now_ns);
}

/* Has the process that was stopped last not given its memory back yet? Then the next may not have
 * to be stopped. */
static bool still_dying(const pl_watch *watch, uint64_t now_ns)
{
    return watch->stopped_pid && now_ns - watch->stopped_ns < PATIENCE_NS &&
           pl_proc_alive(watch->stopped_pid, 0);
}

/* Stops processes for memory that was not requested, and so could not be refused: first touches,
 * copied pages, a static child. Past the line and the reserve, the newest growth is stopped after
 * PATIENCE_NS, or at once when the system is about to kill. How near that is depends on the speed
 * of growth: what was gained since the last sample may be gained twice before the next one counts.
 * The command itself is stopped last, when it would be killed anyway: meanwhile its own guard
 * refuses its requests.
 *
 * The line here is the one for the run's own use. Neighbours that grow lower the other line, which
 * refuses, but no process of the run is stopped for them. */
static void keep_hard_mark(pl_watch *watch, uint64_t now_ns)
{
    const pl_ledger_header *header = &watch->ledger->header;
    uint64_t reserve = header->reserve_bytes;
    uint64_t line = pl_min_u64(pl_ledger_wanted_bytes(watch->ledger),
                               pl_sub_sat_u64(watch->allowance.alone_bytes, reserve));
    uint64_t used = pl_max_u64(watch->tree.used_bytes, watch->cgroup_bytes);
    uint64_t gained = pl_sub_sat_u64(used, watch->used_bytes);
    watch->used_bytes = used;
    if (header->flags & PL_RUN_OBSERVE)
        return;
    /* Idle tensors of other processes go to disk for those that cannot be refused. */
    if (pl_ledger_charged_bytes(watch->ledger) > line && pl_room_idle_bytes(watch->ledger) > 0)
        pl_room_call(watch->ledger);
    if (used <= line + reserve)
        watch->over_ns = watch->over_reported = 0;
    else if (!watch->over_ns)
        watch->over_ns = now_ns;
    bool lasting = watch->over_ns && now_ns - watch->over_ns >= PATIENCE_NS;
    bool danger = used > line && watch->room_bytes < reserve / 4 + 2 * gained;
    if ((!lasting && !danger) || still_dying(watch, now_ns))
        return;

    pid_t main_pid = pl_process_tree_main(&watch->tree, watch->command, reserve / 4);
    const pl_tree_process *process = pl_process_tree_victim(&watch->tree, main_pid, reserve / 4);
    if (!process)
        return;
    bool can_be_refused = process->slot_flags & PL_SLOT_PYTHON;
    uint64_t last_room = reserve / 8 + (can_be_refused ? 0 : 2 * gained);
    if (process->pid != main_pid || watch->room_bytes < last_room) {
        stop_process(watch, process);
        watch->over_ns = 0;
    } else if (lasting && !watch->over_reported) {
        report_event(watch, PL_EVENT_OVER, process, used);
        watch->over_reported = true;
    }
}

static void choose_period(pl_watch *watch, uint64_t cost_ns)
{
    uint64_t limit = pl_ledger_limit_bytes(watch->ledger);
    watch->pressed = pl_ledger_headroom_bytes(watch->ledger) < pl_max_u64(limit / 5, 64 * PL_MIB);
    uint64_t passed_ns = watch->sampled_ns - watch->ledger->header.started_monotonic_ns;
    bool calm = !watch->pressed && passed_ns / 8 >= CALM_PERIOD_NS;
    uint64_t least = watch->pressed
                         ? PRESSED_PERIOD_NS
                         : pl_clamp_u64(passed_ns / 8, PRESSED_PERIOD_NS, CALM_PERIOD_NS);
    watch->period_ns =
        pl_clamp_u64(cost_ns * (calm ? CALM_COST : PRESSED_COST), least, LONGEST_PERIOD_NS);
}

static bool tree_moved(const pl_watch *watch, uint64_t now_ns)
{
    uint64_t ticks = watch->tree.cpu_ticks - watch->moved_ticks;
    uint64_t waited_ticks = (now_ns - watch->moved_ns) / (PL_NS_PER_SEC / 100);
    return ticks > 2 + waited_ticks / PROGRESS_SHARE;
}

static void report_hang(pl_watch *watch, uint64_t idle_ns)
{
    int n = watch->tree.n;
    pl_inspect_process *processes = calloc((size_t)n + 1, sizeof *processes);
    int n_read = 0;
    for (int i = 0; processes && i < n; i++) {
        const pl_tree_process *process = &watch->tree.processes[i];
        const pl_ledger_slot *slot =
            process->slot >= 0 ? &watch->ledger->slots[process->slot] : NULL;
        if (pl_inspect_live(process->pid, slot ? slot->python_version : 0,
                            slot ? slot->python_runtime : 0, &processes[n_read], NULL) == 0)
            n_read++;
    }
    pl_event event = {.kind = PL_EVENT_HANG, .pid = watch->command, .bytes = idle_ns};
    pl_ledger_event(watch->ledger, &event);
    if (watch->options->on_hang && processes)
        watch->options->on_hang(watch->options->context, processes, n_read,
                                (double)idle_ns / (double)PL_NS_PER_SEC);
    for (int i = 0; i < n_read; i++)
        pl_inspect_process_done(&processes[i]);
    free(processes);
}

static void look_for_hang(pl_watch *watch, uint64_t now_ns)
{
    if (!watch->options->hang_after_ns)
        return;
    if (watch->hang_stop_ns && now_ns >= watch->hang_stop_ns) {
        kill(watch->command, SIGKILL);
        return;
    }
    if (tree_moved(watch, now_ns)) {
        watch->moved_ns = now_ns;
        watch->moved_ticks = watch->tree.cpu_ticks;
        watch->hang_reported = false;
        return;
    }
    if (watch->hang_reported || now_ns - watch->moved_ns < watch->options->hang_after_ns)
        return;
    watch->hang_reported = true;
    report_hang(watch, now_ns - watch->moved_ns);
    if (watch->options->hang_stop) {
        kill(watch->command, SIGTERM);
        watch->hang_stop_ns = now_ns + 5 * PL_NS_PER_SEC;
    }
}

static void report_death(pl_watch *watch, pid_t pid, const char *name, uint64_t bytes, int signal)
{
    pl_event event = {
        .kind = PL_EVENT_DIED, .pid = pid, .detail = (uint32_t)signal, .bytes = bytes};
    snprintf(event.where.function, sizeof event.where.function, "%.31s", name);
    pl_ledger_event(watch->ledger, &event);
}

static int crash_signal(const pl_watch *watch, const pl_ledger_slot *slot)
{
    for (int i = 0; i < PL_CRASHES; i++) {
        const pl_crash *crash = &watch->ledger->crashes[i];
        if (atomic_load(&crash->state) == PL_CRASH_COMPLETE &&
            (uint32_t)crash->pid == atomic_load(&slot->pid) &&
            crash->start_ticks == atomic_load(&slot->start_ticks))
            return crash->signal;
    }
    return 0;
}

/* A process that became another program, which the guard cannot enter, leaves a slot without a
 * name. */
static const char *name_of(const pl_watch *watch, const pl_ledger_slot *slot, pid_t pid)
{
    const pl_process_tree *tree = &watch->tree;
    if (slot->name[0])
        return slot->name;
    for (int i = 0; i < tree->n; i++)
        if (tree->processes[i].pid == pid)
            return tree->processes[i].name;
    for (int i = 0; i < tree->n_ended; i++)
        if (tree->ended[i].pid == pid)
            return tree->ended[i].name;
    return "";
}

enum { SETTLED = PL_SLOT_EXITED | PL_SLOT_STOPPED | PL_SLOT_OBSERVER };

/* Finds guarded processes that are gone without having run their exit handlers. Those that left a
 * crash record died of that crash. Those that the supervisor reaped itself are marked as exited,
 * and reported already. */
static void note_vanished(pl_watch *watch)
{
    int n = pl_ledger_n_slots(watch->ledger);
    for (int i = 0; i < n; i++) {
        const pl_ledger_slot *slot = &watch->ledger->slots[i];
        uint32_t pid = atomic_load(&slot->pid);
        if (!pid || pid == (uint32_t)watch->command || atomic_load(&slot->flags) & SETTLED)
            continue;
        bool alive = pl_proc_alive((pid_t)pid, atomic_load(&slot->start_ticks));
        bool noted = pid == watch->noted_pids[i];
        if (noted && alive)
            watch->noted_pids[i] = 0; /* another one with that pid */
        if (noted || alive)
            continue;
        watch->noted_pids[i] = pid;
        int signal = crash_signal(watch, slot);
        if (!signal && watch->n_unexplained_kills > 0) {
            watch->n_unexplained_kills--;
            signal = SIGKILL;
        }
        if (signal)
            report_death(watch, (pid_t)pid, name_of(watch, slot, (pid_t)pid),
                         atomic_load(&slot->peak_bytes), signal);
    }
}

/* Finds processes without the guard that are gone. */
static void note_ended(pl_watch *watch)
{
    for (int i = 0; i < watch->tree.n_ended && watch->n_unexplained_kills > 0; i++) {
        const pl_tree_process *process = &watch->tree.ended[i];
        if (process->pid == watch->command || process->slot >= 0)
            continue;
        watch->n_unexplained_kills--;
        report_death(watch, process->pid, process->name, process->used_bytes, SIGKILL);
    }
}

/* The count rises before the victims are gone: a kill waits for its victim. */
static void count_kills(pl_watch *watch)
{
    uint64_t kills;
    if (pl_cgroup_oom_kills(&watch->allowance.cgroup, &kills) == 0) {
        watch->n_unexplained_kills += pl_sub_sat_u64(kills, watch->n_oom_kills);
        watch->n_oom_kills = kills;
    }
}

/* Attributes as many deaths to memory as the system counted OOM kills. */
static void note_deaths(pl_watch *watch)
{
    count_kills(watch);
    note_vanished(watch);
    note_ended(watch);
}

/* A process of the tree that became our child when its parent ended. */
static void note_orphan(pl_watch *watch, pid_t pid, const char *name, int status)
{
    int n = pl_ledger_n_slots(watch->ledger);
    for (int i = 0; i < n; i++)
        if (atomic_load(&watch->ledger->slots[i].pid) == (uint32_t)pid)
            atomic_fetch_or(&watch->ledger->slots[i].flags, PL_SLOT_EXITED);
    if (!WIFSIGNALED(status))
        return;
    count_kills(watch);
    if (WTERMSIG(status) == SIGKILL && watch->n_unexplained_kills > 0)
        watch->n_unexplained_kills--;
    report_death(watch, pid, name, 0, WTERMSIG(status));
}

/* Its name is read while it is a zombie: the tree has left it out already. */
bool pl_watch_reap(pl_watch *watch, int *ret_wait_status)
{
    bool ended = false;
    siginfo_t info;
    for (;;) {
        int status;
        pl_proc_stat stat;
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
            return ended;
        if (pl_proc_stat_read(info.si_pid, &stat) < 0)
            stat.name[0] = '\0';
        if (waitpid(info.si_pid, &status, 0) != info.si_pid)
            return ended;
        if (info.si_pid == watch->command) {
            *ret_wait_status = status;
            ended = true;
        } else {
            note_orphan(watch, info.si_pid, stat.name, status);
        }
    }
}

/* A process that died after note_vanished() keeps its slot until the next look, which reports the
 * death. */
static bool is_noted(const void *context, int index)
{
    const pl_watch *watch = context;
    const pl_ledger_slot *slot = &watch->ledger->slots[index];
    return atomic_load(&slot->flags) & SETTLED ||
           atomic_load(&slot->pid) == watch->noted_pids[index];
}

/* The command's slot stays until the report is made: it shows the bytes held at the end. */
static void reclaim(pl_watch *watch)
{
    if (pl_proc_alive(watch->command, 0))
        (void)pl_ledger_reclaim_if(watch->ledger, is_noted, watch);
}

void pl_watch_step(pl_watch *watch)
{
    uint64_t begun_ns = pl_clock_monotonic_ns();
    uint64_t begun_cpu_ns = pl_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    pl_process_tree_read(&watch->tree, watch->ledger, getpid(), begun_ns, watch->pressed);
    uint64_t shares_ns = watch->tree.shares_ns;
    read_system(watch);
    follow_system(watch, begun_ns);
    correct_measures(watch);
    charge_unseen(watch);
    note_deaths(watch);
    take_sample(watch, begun_ns);
    reclaim(watch);
    keep_hard_mark(watch, begun_ns);
    if (pl_ledger_headroom_bytes(watch->ledger) > 0)
        pl_process_tree_calm(&watch->tree);
    look_for_hang(watch, begun_ns);
    watch->sampled_ns = begun_ns;
    choose_period(watch, pl_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_cpu_ns - shares_ns);
}

/* The OOM killer's victim may take longer to die, with all its memory, than the command that was
 * asked to stop because of it. Waits for the victim, to name it in the report. */
static void wait_for_victims(pl_watch *watch)
{
    enum { LOOKS = 50 };
    int status;
    const struct timespec nap = {.tv_nsec = 10 * PL_NS_PER_MS};
    for (int i = 0; i < LOOKS && watch->n_unexplained_kills > 0 && watch->tree.n > 0; i++) {
        nanosleep(&nap, NULL);
        (void)pl_watch_reap(watch, &status);
        pl_process_tree_read(&watch->tree, watch->ledger, getpid(), pl_clock_monotonic_ns(), false);
        note_deaths(watch);
    }
}

void pl_watch_end(pl_watch *watch, int wait_status)
{
    pl_ledger_header *header = &watch->ledger->header;
    uint64_t kills;
    pl_process_tree_read(&watch->tree, watch->ledger, getpid(), pl_clock_monotonic_ns(), false);
    note_deaths(watch);
    wait_for_victims(watch);
    header->n_oom_kills = (uint32_t)pl_sub_sat_u64(watch->n_oom_kills, header->baseline_oom_kills);
    if (pl_machine_oom_kills("", &kills) == 0)
        header->n_vm_oom_kills = (uint32_t)pl_sub_sat_u64(kills, header->baseline_vm_oom_kills);
    header->wait_status = wait_status;
    atomic_store(&header->ended_realtime_ns, pl_clock_realtime_ns());
    pl_ledger_shrink(watch->ledger);
}
