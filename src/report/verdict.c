/* SPDX-License-Identifier: Apache-2.0 */
/* The rules, each a function that either gives the verdict or leaves it to the next. The most
 * direct evidence comes first: plimsoll's own actions, then the record of the dying process, the
 * system's counters, and last the exit status. */
#include "report/verdict.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/size.h"

/* A refusal, or a worker's death, explains an end with an error that follows within this time,
 * which a traceback, exit handlers and joining workers may take. */
static const double recent_s = 10.0;

/* An abort follows the refusal that caused it within this time. */
static const double at_once_s = 2.0;

/* A run whose end was not seen counts as at the limit from this share of it on: the last sample may
 * be a step old. */
static const double near_limit = 0.95;

const char *pl_signal_name(int signal)
{
    static _Thread_local char text[32];
    const char *short_name = sigabbrev_np(signal);
    if (short_name != NULL)
        snprintf(text, sizeof(text), "SIG%s", short_name);
    else
        snprintf(text, sizeof(text), "signal %d", signal);
    return text;
}

const char *pl_signal_fault(int signal)
{
    switch (signal) {
    case SIGSEGV:
        return "segmentation fault";
    case SIGBUS:
        return "bus error";
    case SIGFPE:
        return "floating point error";
    case SIGABRT:
        return "abort";
    case SIGILL:
        return "illegal instruction";
    default:
        return NULL;
    }
}

/* Does 128 + signal look like a shell's report of a dead child? Only for signals that a child is
 * likely to die of: 128 + 40 is a number like any other. */
static bool is_reported_by_shells(int signal)
{
    static const int reported[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGABRT, SIGBUS, SIGFPE,
                                   SIGKILL, SIGSEGV, SIGPIPE, SIGTERM, SIGXCPU, SIGSYS};
    for (size_t i = 0; i < PL_COUNT_OF(reported); i++)
        if (reported[i] == signal)
            return true;
    return false;
}

int pl_verdict_signal(int wait_status)
{
    if (WIFSIGNALED(wait_status))
        return WTERMSIG(wait_status);
    if (WIFEXITED(wait_status) && is_reported_by_shells(WEXITSTATUS(wait_status) - 128))
        return WEXITSTATUS(wait_status) - 128;
    return 0;
}

static bool ended_well(const pl_facts *facts)
{
    return facts->ended && WIFEXITED(facts->wait_status) && WEXITSTATUS(facts->wait_status) == 0;
}

static bool is_command(const pl_facts *facts, const pl_fact_process *process)
{
    return process->pid == facts->command.pid;
}

static bool is_recent(const pl_fact_process *process)
{
    return process->before_end_s <= recent_s;
}

/* Both the supervisor and the command are dead, and the end was not recorded. */
static bool all_dead(const pl_facts *facts)
{
    return !facts->ended && !facts->supervisor_alive && !facts->command_alive;
}

__attribute__((format(printf, 3, 4))) static void
conclude(pl_verdict *verdict, enum pl_verdict_kind kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(verdict->summary, sizeof(verdict->summary), format, args);
    va_end(args);
    verdict->kind = kind;
}

__attribute__((format(printf, 2, 3))) static void add_evidence(pl_verdict *verdict,
                                                               const char *format, ...)
{
    if (verdict->n_evidence == PL_VERDICT_EVIDENCE)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(verdict->evidence[verdict->n_evidence++], sizeof(verdict->evidence[0]), format, args);
    va_end(args);
}

#define WHO_BYTES (PL_FACT_NAME_BYTES + 24)

/* Writes "'train.py' (pid 4121)"; "process 4121" when its name is not known. In a notebook it
 * writes "the kernel" instead of the program's name, because users know it as that. */
static const char *who(const pl_fact_process *process, char text[WHO_BYTES])
{
    if (process->is_kernel)
        snprintf(text, WHO_BYTES, "the kernel (pid %d)", (int)process->pid);
    else if (process->name[0] != '\0')
        snprintf(text, WHO_BYTES, "'%s' (pid %d)", process->name, (int)process->pid);
    else
        snprintf(text, WHO_BYTES, "process %d", (int)process->pid);
    return text;
}

#define WHO(process) who((process), (char[WHO_BYTES]){0})

#define PAIR_BYTES (2 * PL_SIZE_TEXT_BYTES + 8)

/* Writes "7.8 of 8.0 GiB", with the first unit only where it differs. */
static const char *pair(uint64_t part, uint64_t whole, const char *word, char text[PAIR_BYTES])
{
    char first[PL_SIZE_TEXT_BYTES], second[PL_SIZE_TEXT_BYTES];
    pl_size_format(part, first);
    pl_size_format(whole, second);
    char *unit = strchr(first, ' '), *other = strchr(second, ' ');
    if (unit != NULL && other != NULL && strcmp(unit, other) == 0)
        *unit = '\0';
    snprintf(text, PAIR_BYTES, "%s %s %s", first, word, second);
    return text;
}

#define PAIR(part, whole, word) pair((part), (whole), (word), (char[PAIR_BYTES]){0})

#define END_BYTES 64

/* Writes how the command ended: "ended with status 1", "was ended by SIGKILL". */
static const char *end_of(const pl_facts *facts, char text[END_BYTES])
{
    if (!facts->ended)
        snprintf(text, END_BYTES, "ended unseen");
    else if (WIFSIGNALED(facts->wait_status))
        snprintf(text, END_BYTES, "was ended by %s", pl_signal_name(WTERMSIG(facts->wait_status)));
    else
        snprintf(text, END_BYTES, "ended with status %d", WEXITSTATUS(facts->wait_status));
    return text;
}

#define END(facts) end_of((facts), (char[END_BYTES]){0})

static void add_shell_evidence(const pl_facts *facts, pl_verdict *verdict)
{
    int signal = pl_verdict_signal(facts->wait_status);
    if (facts->ended && WIFEXITED(facts->wait_status) && signal != 0)
        add_evidence(verdict, "status %d is how a shell reports that %s ended its child",
                     WEXITSTATUS(facts->wait_status), pl_signal_name(signal));
}

static void add_oom_evidence(const pl_facts *facts, pl_verdict *verdict)
{
    if (facts->n_oom_kills > 0)
        add_evidence(verdict, "the memory cgroup counted %" PRIu64 " OOM kill%s during the run",
                     facts->n_oom_kills, facts->n_oom_kills == 1 ? "" : "s");
    else if (facts->n_vm_oom_kills > 0)
        add_evidence(verdict, "the machine counted %" PRIu64 " OOM kill%s during the run%s",
                     facts->n_vm_oom_kills, facts->n_vm_oom_kills == 1 ? "" : "s",
                     facts->has_memory_cgroup ? ", but none in this run's memory cgroup"
                     : facts->group_gone      ? "; the run's memory cgroup is gone"
                                              : "");
}

static void add_refusal_evidence(const pl_facts *facts, pl_verdict *verdict)
{
    const pl_fact_refusal *refusal = &facts->refusal;
    if (facts->n_refusals == 0)
        return;
    if (refusal->process.pid == 0)
        add_evidence(verdict, "%" PRIu64 " requests were refused", facts->n_refusals);
    else
        add_evidence(verdict, "%" PRIu64 " request%s refused, the last %.1f s before the end%s%s",
                     facts->n_refusals, facts->n_refusals == 1 ? " was" : "s were",
                     refusal->process.before_end_s, refusal->place[0] != '\0' ? ", at " : "",
                     refusal->place);
}

/* Writes "'train.py' (pid 4121) asked for 512.0 MiB at train.py:12: 7.8 of 8.0 GiB were in use". */
static void conclude_refused(const pl_facts *facts, pl_verdict *verdict)
{
    const pl_fact_refusal *refusal = &facts->refusal;
    const char *at = refusal->place[0] != '\0' ? " at " : "";
    const char *use = PAIR(refusal->charged_bytes, refusal->limit_bytes, "of");
    if (refusal->process.bytes > 0)
        conclude(verdict, PL_VERDICT_REFUSED, "refused: %s asked for %s%s%s: %s were in use",
                 WHO(&refusal->process), PL_SIZE(refusal->process.bytes), at, refusal->place, use);
    else
        conclude(verdict, PL_VERDICT_REFUSED, "refused: %s got a MemoryError%s%s: %s were in use",
                 WHO(&refusal->process), at, refusal->place, use);
    if (!is_command(facts, &refusal->process))
        add_evidence(verdict, "%s %s after a refusal in %s", WHO(&facts->command), END(facts),
                     WHO(&refusal->process));
    else
        add_evidence(verdict, "it %s, %.1f s after a refusal", END(facts),
                     refusal->process.before_end_s);
}

static bool judge_running(const pl_facts *facts, pl_verdict *verdict)
{
    if (facts->ended || (!facts->supervisor_alive && !facts->command_alive) || facts->hangs)
        return false;
    conclude(verdict, PL_VERDICT_RUNNING, "running: %s%s", WHO(&facts->command),
             facts->supervisor_alive ? "" : ", but its supervisor is gone: nothing watches it");
    if (!facts->supervisor_alive)
        add_evidence(verdict, "the command is alive, its supervisor is not");
    add_refusal_evidence(facts, verdict);
    return true;
}

/* A hang ends only by a signal, from plimsoll or another, or when the program gives up. */
static bool judge_hang(const pl_facts *facts, pl_verdict *verdict)
{
    bool gave_up = facts->ended && !ended_well(facts) &&
                   pl_signal_fault(pl_verdict_signal(facts->wait_status)) == NULL;
    bool alive = !facts->ended && (facts->supervisor_alive || facts->command_alive);
    if (!facts->hangs || (!gave_up && !alive))
        return false;
    conclude(verdict, PL_VERDICT_HANG, "hang: %s made no progress for %.0f s%s",
             WHO(&facts->command), facts->idle_s,
             facts->lock_cycle ? ": its threads are deadlocked" : "");
    if (facts->lock_cycle)
        add_evidence(verdict, "each thread of a cycle waits for a lock that the next one holds");
    add_evidence(verdict, "no process of the tree used the processor for %.0f s", facts->idle_s);
    if (facts->ended)
        add_evidence(verdict, "then it %s", END(facts));
    else
        add_evidence(verdict, "it still runs");
    return true;
}

static bool judge_stopped(const pl_facts *facts, pl_verdict *verdict)
{
    const pl_fact_process *stopped = &facts->stopped;
    bool own = stopped->pid != 0 && is_command(facts, stopped);
    if (stopped->pid == 0 || ended_well(facts) || (!own && (!facts->ended || !is_recent(stopped))))
        return false;
    conclude(verdict, PL_VERDICT_STOPPED_FOR_MEMORY,
             "stopped for memory: plimsoll stopped %s, which held %s of a line of %s", WHO(stopped),
             PL_SIZE(stopped->bytes), PL_SIZE(facts->limit_bytes));
    add_evidence(verdict, "the supervisor recorded the stop, %.1f s before the end",
                 stopped->before_end_s);
    if (!own)
        add_evidence(verdict, "%s then %s", WHO(&facts->command), END(facts));
    add_refusal_evidence(facts, verdict);
    return true;
}

/* The values in /proc/PID/status. */
enum { SECCOMP_STRICT = 1, SECCOMP_FILTER = 2, SECCOMP_KILLED = 3 };

/* A seccomp filter ends a process with SIGSYS, or sends that signal; otherwise it appears only when
 * another process sends it. The strict mode, which allows four calls, ends a process with SIGKILL.
 * Since Linux 5.17 a process that seccomp killed is in a mode of its own, which distinguishes this
 * from a kill from outside. */
bool pl_verdict_is_seccomp(const pl_facts *facts)
{
    int signal = facts->ended ? pl_verdict_signal(facts->wait_status) : 0;
    bool sent = facts->crash.signal == SIGSYS && facts->crash.sender_pid != 0;
    bool strict =
        signal == SIGKILL && (facts->seccomp_mode == SECCOMP_KILLED ||
                              (facts->seccomp_mode == SECCOMP_STRICT && facts->n_oom_kills == 0));
    return (signal == SIGSYS && !sent) || strict;
}

static bool judge_seccomp(const pl_facts *facts, pl_verdict *verdict)
{
    const pl_fact_crash *crash = &facts->crash;
    if (!pl_verdict_is_seccomp(facts))
        return false;
    bool strict = pl_verdict_signal(facts->wait_status) == SIGKILL;
    bool placed = crash->signal == SIGSYS && crash->place[0] != '\0';
    conclude(verdict, PL_VERDICT_KILLED,
             "killed: seccomp ended %s for a system call that %s%s%s; memory had no part in it",
             WHO(&facts->command), strict ? "its strict mode forbids" : "its filter forbids",
             placed ? ", at " : "", placed ? crash->place : "");
    if (strict)
        add_evidence(verdict, "it was in seccomp's strict mode, in which any call but read, write, "
                              "exit and sigreturn ends with SIGKILL");
    else
        add_evidence(verdict, "SIGSYS ended it, which the kernel sends for that%s",
                     facts->seccomp_mode >= SECCOMP_FILTER ? "; a seccomp filter was on" : "");
    add_evidence(verdict, "the call may be the program's own, or one of plimsoll's guard, which "
                          "reads /proc and asks what is resident");
    add_shell_evidence(facts, verdict);
    add_refusal_evidence(facts, verdict);
    return true;
}

/* A crash explains the end when the signals agree, or when it came shortly before an end with an
 * error: handlers exit, and parents notice. The crash of another process than the command does not
 * explain that the command itself ended by the same signal much later: a parent that passes on a
 * child's signal, as timeout(1) does, does so at once. */
bool pl_verdict_crash_explains_end(const pl_facts *facts)
{
    const pl_fact_crash *crash = &facts->crash;
    if (crash->process.pid == 0 || ended_well(facts))
        return false;
    if (!facts->ended)
        return all_dead(facts) && is_command(facts, &crash->process);
    if (pl_verdict_signal(facts->wait_status) == crash->signal)
        return WIFEXITED(facts->wait_status) || is_command(facts, &crash->process) ||
               is_recent(&crash->process);
    return WIFEXITED(facts->wait_status) && is_recent(&crash->process);
}

static void add_denied_evidence(const pl_facts *facts, pl_verdict *verdict)
{
    if (facts->denied.pid == 0)
        return;
    const char *limits = facts->denied_limits & 1   ? "RLIMIT_AS is in force (ulimit -v)"
                         : facts->denied_limits & 2 ? "RLIMIT_DATA is in force (ulimit -d)"
                                                    : "the kernel overcommits no further "
                                                      "(vm.overcommit_memory), or allows no more "
                                                      "mappings (vm.max_map_count)";
    add_evidence(verdict, "the line had room for %s, but the system refused it: %s",
                 PL_SIZE(facts->denied.bytes), limits);
}

static bool was_denied_before(const pl_facts *facts, const pl_fact_process *process)
{
    double before_s = facts->denied.before_end_s - process->before_end_s;
    return facts->denied.pid != 0 && facts->denied.pid == process->pid && before_s >= 0 &&
           before_s <= at_once_s;
}

static void add_crash_evidence(const pl_facts *facts, pl_verdict *verdict)
{
    const pl_fact_crash *crash = &facts->crash;
    add_evidence(verdict, "%s recorded %s before it died", WHO(&crash->process),
                 pl_signal_name(crash->signal));
    if (facts->ended && WIFEXITED(facts->wait_status))
        add_evidence(verdict, "%s %s", WHO(&facts->command), END(facts));
    if (crash->refused_before_s >= 0 && crash->refused_before_s <= at_once_s)
        add_evidence(verdict,
                     "a request of the same process was refused %.1f s before: typical of code "
                     "that ignores a NULL return",
                     crash->refused_before_s);
    if (was_denied_before(facts, &crash->process))
        add_denied_evidence(facts, verdict);
}

static bool judge_crash(const pl_facts *facts, pl_verdict *verdict)
{
    const pl_fact_crash *crash = &facts->crash;
    if (!pl_verdict_crash_explains_end(facts))
        return false;
    if (crash->cause == PL_CRASH_BAD_ALLOC && crash->refused_before_s >= 0 &&
        crash->refused_before_s <= at_once_s) {
        conclude_refused(facts, verdict);
        add_evidence(verdict, "it aborted by std::bad_alloc, which nothing caught");
        return true;
    }
    if (crash->sender_pid != 0) {
        conclude(verdict, PL_VERDICT_KILLED, "killed: process %d sent %s to %s",
                 (int)crash->sender_pid, pl_signal_name(crash->signal), WHO(&crash->process));
        add_evidence(verdict,
                     "another process sent the signal: it was not a fault of the program's own");
        return true;
    }
    const char *at = crash->place[0] != '\0' ? " at " : "";
    if (crash->missing_set[0] != '\0') {
        conclude(verdict, PL_VERDICT_ILLEGAL_INSTRUCTION,
                 "illegal instruction: %s%s%s: %s needs %s, which this CPU lacks",
                 WHO(&crash->process), at, crash->place,
                 crash->module[0] != '\0' ? crash->module : "its code", crash->missing_set);
        add_evidence(verdict, "the instruction that it stopped at belongs to %s",
                     crash->missing_set);
    } else {
        const char *fault = pl_signal_fault(crash->signal);
        conclude(verdict, PL_VERDICT_CRASHED, "crashed: %s in %s%s%s%s%s",
                 fault != NULL ? fault : pl_signal_name(crash->signal), WHO(&crash->process), at,
                 crash->place, crash->reason[0] != '\0' ? ": " : "", crash->reason);
    }
    add_crash_evidence(facts, verdict);
    return true;
}

static bool is_near_limit(const pl_facts *facts)
{
    double limit = (double)facts->true_limit_bytes;
    return facts->sampled && facts->true_limit_bytes > 0 &&
           ((double)facts->last_resident_bytes >= near_limit * limit ||
            (double)facts->last_available_bytes <= (1 - near_limit) * limit);
}

/* The kernel counts a kill in the victim's cgroup and on the machine. Where there is a cgroup, a
 * kill that only the machine counted may be of any process: it then counts only for a run that was
 * at its limit. */
static bool oom_counted(const pl_facts *facts)
{
    return facts->n_oom_kills > 0 ||
           (facts->n_vm_oom_kills > 0 &&
            ((!facts->has_memory_cgroup && !facts->group_gone) || is_near_limit(facts)));
}

static void add_peak_evidence(const pl_facts *facts, pl_verdict *verdict)
{
    if (facts->peak_bytes > 0 && facts->true_limit_bytes > 0)
        add_evidence(verdict, "the tree's memory peaked at %s that the system would give",
                     PAIR(facts->peak_bytes, facts->true_limit_bytes, "of"));
}

/* After the OOM killer ends a process of a service, systemd sends SIGTERM to each of the others
 * (OOMPolicy=stop, the default). The command's end is then a result of the kill, too. It may come
 * before the supervisor gets its own SIGTERM. */
static bool judge_worker_oom(const pl_facts *facts, pl_verdict *verdict)
{
    bool refused = facts->refusal.process.pid != 0 && is_recent(&facts->refusal.process);
    bool worker = facts->killed_worker.pid != 0 && is_recent(&facts->killed_worker);
    int signal = facts->ended ? pl_verdict_signal(facts->wait_status) : 0;
    bool passed_on = signal != 0 && signal == facts->stop_signal;
    bool asked = passed_on || signal == SIGTERM;
    if (!facts->ended || ended_well(facts) || facts->n_oom_kills == 0 || (refused && !worker) ||
        (asked ? !worker : !WIFEXITED(facts->wait_status)))
        return false;
    conclude(verdict, PL_VERDICT_KILLED_FOR_MEMORY,
             "killed for memory: the system's OOM killer ended %s, and %s %s",
             worker ? WHO(&facts->killed_worker) : "a process of its cgroup", WHO(&facts->command),
             END(facts));
    add_oom_evidence(facts, verdict);
    if (worker)
        add_evidence(verdict, "SIGKILL ended %s, and plimsoll did not send it",
                     WHO(&facts->killed_worker));
    if (asked)
        add_evidence(verdict,
                     "%s %s: systemd stops a service so after an OOM kill (OOMPolicy=stop)",
                     passed_on ? "the supervisor was sent and passed on" : "from outside came",
                     pl_signal_name(signal));
    add_peak_evidence(facts, verdict);
    return true;
}

static bool judge_oom_kill(const pl_facts *facts, pl_verdict *verdict)
{
    bool sigkill = facts->ended && pl_verdict_signal(facts->wait_status) == SIGKILL;
    if (!(sigkill || all_dead(facts)) || facts->rebooted || !oom_counted(facts))
        return judge_worker_oom(facts, verdict);
    conclude(verdict, PL_VERDICT_KILLED_FOR_MEMORY,
             "killed for memory: the system's OOM killer ended %s", WHO(&facts->command));
    add_oom_evidence(facts, verdict);
    add_peak_evidence(facts, verdict);
    add_shell_evidence(facts, verdict);
    if (!facts->ended)
        add_evidence(verdict, "the supervisor died with it, and recorded no end");
    return true;
}

static bool judge_lost(const pl_facts *facts, pl_verdict *verdict)
{
    if (facts->ended)
        return false;
    bool no_kill = facts->vm_counted && facts->n_vm_oom_kills == 0 && !facts->rebooted;
    if (is_near_limit(facts) && !no_kill) {
        conclude(verdict, PL_VERDICT_KILLED_FOR_MEMORY,
                 "killed for memory, most likely: %s was at the limit when its record stops",
                 WHO(&facts->command));
        add_evidence(verdict, "the last sample shows %s that the system would give",
                     PAIR(facts->last_resident_bytes, facts->true_limit_bytes, "of"));
    } else {
        conclude(verdict, PL_VERDICT_LOST,
                 "lost: the supervisor of %s was killed too, and the record does not say how it "
                 "ended",
                 WHO(&facts->command));
        if (facts->has_memory_cgroup && !facts->rebooted)
            add_evidence(verdict, "the memory cgroup counted no OOM kill since the start");
        else if (no_kill)
            add_evidence(
                verdict,
                "the machine counted no OOM kill since the start: if memory was the reason, a "
                "service killed it and not the kernel (systemd-oomd, earlyoom, an eviction)");
        else if (facts->group_gone)
            add_oom_evidence(facts, verdict);
        if (facts->sampled)
            add_evidence(verdict, "the last sample shows %s that the system would give",
                         PAIR(facts->last_resident_bytes, facts->true_limit_bytes, "of"));
    }
    add_evidence(verdict,
                 facts->rebooted
                     ? "the machine has been restarted since"
                     : "neither the supervisor nor the command is alive, and no end is recorded");
    add_refusal_evidence(facts, verdict);
    return true;
}

static void conclude_killed(const pl_facts *facts, int signal, pl_verdict *verdict)
{
    const char *name = pl_signal_name(signal);
    if (facts->stop_signal == signal)
        conclude(verdict, PL_VERDICT_KILLED, "killed: %s was asked to stop, by %s",
                 WHO(&facts->command), name);
    else if (signal == SIGPIPE)
        conclude(verdict, PL_VERDICT_KILLED,
                 "killed: %s wrote to a pipe whose reader is gone (SIGPIPE)", WHO(&facts->command));
    else
        conclude(verdict, PL_VERDICT_KILLED, "killed: %s from outside ended %s%s", name,
                 WHO(&facts->command),
                 is_near_limit(facts) ? " when memory was nearly used up"
                                      : "; memory had no part in it");
    if (facts->stop_signal == signal)
        add_evidence(verdict, "the supervisor was sent %s, and passed it on", name);
    else if (signal == SIGKILL && facts->n_vm_oom_kills == 0)
        add_evidence(
            verdict,
            "%s came from outside: no OOM kill was counted in the cgroup or on the machine", name);
    else if (signal != SIGPIPE)
        add_evidence(verdict, "%s came from outside: plimsoll did not send it", name);
    if (is_near_limit(facts) && facts->stop_signal == 0 && signal != SIGPIPE)
        add_evidence(verdict, "it may be a service that ends programs before memory is used up "
                              "(earlyoom, systemd-oomd)");
}

/* Says whether memory had a part in it when plimsoll refused nothing: an inner run's verdict, a
 * request that the guard saw the system refuse, or a limit that refuses without a trace. */
static const char *part_of_memory(const pl_facts *facts, char *text, size_t size)
{
    text[0] = '\0';
    if (facts->n_refusals > 0 || facts->n_stopped > 0)
        return text;
    if (facts->has_inner)
        snprintf(text, size, "; a run inside it ended as '%s'",
                 pl_verdict_name(facts->inner_verdict));
    else if (facts->denied.pid != 0)
        snprintf(text, size, "; the system refused %s to %s%s%s before",
                 PL_SIZE(facts->denied.bytes), WHO(&facts->denied),
                 facts->denied_place[0] != '\0' ? " at " : "", facts->denied_place);
    else if (facts->own_data_limit)
        snprintf(text, size,
                 "; whether memory had a part in it is not known: it ran without the guard, where "
                 "RLIMIT_DATA refuses beyond %s",
                 PL_SIZE(facts->data_limit_bytes));
    else if (facts->address_limit_bytes > 0 || facts->data_limit_bytes > 0)
        snprintf(text, size, "; whether memory had a part in it is not known: %s refuses beyond %s",
                 facts->address_limit_bytes > 0 ? "RLIMIT_AS" : "RLIMIT_DATA",
                 PL_SIZE(facts->address_limit_bytes > 0 ? facts->address_limit_bytes
                                                        : facts->data_limit_bytes));
    else
        snprintf(text, size, "; memory had no part in it");
    return text;
}

#define PART(facts) part_of_memory((facts), (char[512]){0}, 512)

/* An inner run that exits with 128+N reports how its own command ended: this run got no signal. */
static bool judge_signal(const pl_facts *facts, pl_verdict *verdict)
{
    int signal = facts->ended ? pl_verdict_signal(facts->wait_status) : 0;
    if (signal == 0 || (WIFEXITED(facts->wait_status) && facts->has_inner))
        return false;
    const char *fault = pl_signal_fault(signal);
    if (fault != NULL) {
        conclude(verdict, PL_VERDICT_CRASHED, "crashed: %s in %s%s", fault, WHO(&facts->command),
                 facts->own_data_limit ? PART(facts) : "");
        add_evidence(verdict, "%s ended it; %s left a crash record", pl_signal_name(signal),
                     facts->crash.process.pid != 0 ? "only another process, before,"
                                                   : "no process");
        if (facts->own_data_limit &&
            (double)facts->peak_bytes >= near_limit * (double)facts->data_limit_bytes)
            add_evidence(verdict,
                         "it ran without the guard, where RLIMIT_DATA refuses beyond %s, and came "
                         "near it",
                         PL_SIZE(facts->data_limit_bytes));
    } else {
        conclude_killed(facts, signal, verdict);
        add_oom_evidence(facts, verdict);
        add_peak_evidence(facts, verdict);
    }
    add_shell_evidence(facts, verdict);
    add_refusal_evidence(facts, verdict);
    return true;
}

/* Python exits with status 1 after an uncaught exception. Another status is the program's own
 * choice, made after it caught the error. */
static bool judge_refused(const pl_facts *facts, pl_verdict *verdict)
{
    const pl_fact_refusal *refusal = &facts->refusal;
    if (ended_well(facts) || refusal->process.pid == 0 || !is_recent(&refusal->process) ||
        (refusal->in_python && WEXITSTATUS(facts->wait_status) != 1))
        return false;
    conclude_refused(facts, verdict);
    if (facts->n_refusals > 1)
        add_refusal_evidence(facts, verdict);
    return true;
}

/* Counters that were lost read as zero, and comparing with them would show kills that never
 * happened. */
static bool judge_cut_short(const pl_facts *facts, pl_verdict *verdict)
{
    if (!facts->cut_short || !facts->ended)
        return false;
    bool well = ended_well(facts);
    conclude(verdict, well ? PL_VERDICT_FINISHED : PL_VERDICT_FAILED,
             "%s: %s %s; a program of the run truncated the file of its record: %s",
             well ? "finished" : "failed", WHO(&facts->command), END(facts),
             "what is reported here of memory, places and times is incomplete");
    return true;
}

/* Shorter stalls are normal: caches are read again, pages are written back. */
static bool stalled(const pl_facts *facts)
{
    return facts->own_stalls && facts->stalled_s >= 1 && facts->stalled_s >= facts->lasted_s / 10;
}

enum { MANY_THROTTLES = 100 };

static void add_stall_evidence(const pl_facts *facts, pl_verdict *verdict)
{
    if (stalled(facts))
        add_evidence(verdict,
                     "its cgroup stalled for memory for %.1f of %.1f s, with all processes waiting "
                     "for %.1f s",
                     facts->stalled_s, facts->lasted_s, facts->stalled_full_s);
    if (facts->n_throttles >= MANY_THROTTLES)
        add_evidence(verdict,
                     "the kernel made its processes wait %" PRIu64
                     " times, because a cgroup was above memory.high",
                     facts->n_throttles);
}

bool pl_verdict_stalled(const pl_facts *facts)
{
    return stalled(facts) || facts->n_throttles >= MANY_THROTTLES;
}

/* A kernel that ended while a cell was running did not end by request. */
static void conclude_ended_in_cell(const pl_facts *facts, pl_verdict *verdict)
{
    conclude(verdict, ended_well(facts) ? PL_VERDICT_FINISHED : PL_VERDICT_FAILED,
             "ended: %s %s while In [%" PRIu32 "] ran%s", WHO(&facts->command), END(facts),
             facts->cell, PART(facts));
}

static void judge_exit(const pl_facts *facts, pl_verdict *verdict)
{
    const char *ended = WHO(&facts->command);
    if (facts->cell != 0) {
        conclude_ended_in_cell(facts, verdict);
    } else if (!ended_well(facts)) {
        bool memory = facts->n_refusals > 0 || facts->n_stopped > 0;
        conclude(verdict, PL_VERDICT_FAILED, "failed: %s %s%s", ended, END(facts), PART(facts));
        if (facts->has_inner)
            add_evidence(verdict, "'plimsoll explain %s' explains the inner run", facts->inner_run);
        add_denied_evidence(facts, verdict);
        if (!memory && facts->denied.pid == 0 && !facts->has_inner)
            add_evidence(verdict, "no request was refused, and no process was stopped or killed");
    } else if (facts->n_refusals > 0) {
        conclude(verdict, PL_VERDICT_FINISHED_AFTER_REFUSALS,
                 "finished after %" PRIu64 " refusal%s: %s went on, and %s", facts->n_refusals,
                 facts->n_refusals == 1 ? "" : "s", ended, END(facts));
    } else if (facts->n_stopped > 0) {
        conclude(verdict, PL_VERDICT_FINISHED_AFTER_REFUSALS,
                 "finished: %s went on after %s was stopped for memory", ended,
                 WHO(&facts->stopped));
    } else if (facts->over.pid != 0) {
        conclude(verdict, PL_VERDICT_FINISHED, "finished over the line: %s reached %s, and %s; %s",
                 WHO(&facts->over),
                 PAIR(pl_max_u64(facts->peak_bytes, facts->over.bytes), facts->limit_bytes, "of"),
                 END(facts),
                 facts->observed ? "--observe refuses nothing"
                                 : "small requests are refused in Python code only");
    } else if (facts->crash.process.pid != 0) {
        const pl_fact_crash *crash = &facts->crash;
        const char *fault = pl_signal_fault(crash->signal);
        conclude(verdict, PL_VERDICT_FINISHED, "finished: %s %s, but %s crashed: %s%s%s", ended,
                 END(facts), WHO(&crash->process),
                 fault != NULL ? fault : pl_signal_name(crash->signal),
                 crash->place[0] != '\0' ? " at " : "", crash->place);
    } else if (facts->killed_worker.pid != 0) {
        conclude(verdict, PL_VERDICT_FINISHED, "finished: %s %s, but %s was killed for memory",
                 ended, END(facts), WHO(&facts->killed_worker));
        add_oom_evidence(facts, verdict);
    } else {
        conclude(verdict, PL_VERDICT_FINISHED, "finished: %s %s%s", ended, END(facts),
                 pl_verdict_stalled(facts) ? ", but was made to wait for memory" : "");
    }
    add_refusal_evidence(facts, verdict);
    if (facts->n_stopped > 0)
        add_evidence(verdict, "plimsoll stopped %" PRIu64 " process%s for memory", facts->n_stopped,
                     facts->n_stopped == 1 ? "" : "es");
    add_oom_evidence(facts, verdict);
}

static void add_limit_evidence(const pl_fact_line *line, pl_verdict *verdict)
{
    const char *file = line->file[0] != '\0' ? line->file : "its memory cgroup's limit";
    char often[48] = "", to[PL_SIZE_TEXT_BYTES + 8] = "";
    if (line->n > 1)
        snprintf(often, sizeof(often), ", the last of %d changes", line->n);
    if (line->process.bytes > 0)
        snprintf(to, sizeof(to), "set to %s", PL_SIZE(line->process.bytes));
    add_evidence(verdict, "'%s' was %s %.1f s after the start%s: the line was %s from then on",
                 file, line->process.bytes > 0 ? to : "lifted", line->since_start_s, often,
                 PL_SIZE(line->line_bytes));
}

static void add_line_evidence(const pl_facts *facts, pl_verdict *verdict)
{
    const pl_fact_line *neighbours = &facts->neighbours;
    if (facts->moved_limit.n > 0)
        add_limit_evidence(&facts->moved_limit, verdict);
    if (neighbours->n > 0)
        add_evidence(verdict,
                     "others in its memory cgroup had taken %s %.1f s after the start%s%s: they "
                     "left a line of %s",
                     PL_SIZE(neighbours->process.bytes), neighbours->since_start_s,
                     neighbours->process.pid != 0 ? ", most of it " : "",
                     neighbours->process.pid != 0 ? WHO(&neighbours->process) : "",
                     PL_SIZE(neighbours->line_bytes));
}

/* A request above this share of the line is named itself, however memory came to be full. */
static const double noticeable_request = 0.01;

/* At the end of a steady rise, the small request that happened to be refused is not the problem;
 * the rise is. A run that was killed or stopped, or asked for a large piece, keeps its own
 * verdict. */
static bool is_leak(const pl_facts *facts, const pl_verdict *verdict)
{
    return verdict->kind == PL_VERDICT_REFUSED &&
           (double)facts->refusal.process.bytes <= noticeable_request * (double)facts->limit_bytes;
}

static void consider_leak(const pl_facts *facts, pl_verdict *verdict)
{
    const pl_leak *leak = &facts->leak;
    bool by_memory = verdict->kind == PL_VERDICT_REFUSED ||
                     verdict->kind == PL_VERDICT_KILLED_FOR_MEMORY ||
                     verdict->kind == PL_VERDICT_STOPPED_FOR_MEMORY;
    if (!leak->found || !by_memory)
        return;
    verdict->leaked = true;
    char how[sizeof(verdict->evidence[0])];
    if (is_leak(facts, verdict)) {
        snprintf(how, sizeof(how), "%.*s", (int)sizeof(how) - 1, verdict->summary);
        conclude(verdict, PL_VERDICT_LEAK, "leak: memory of %s rose by %s/s for %.1f s, from %s",
                 WHO(&facts->command), PL_SIZE((uint64_t)leak->bytes_per_s), leak->over_s,
                 PAIR(leak->from_bytes, leak->to_bytes, "to"));
    } else {
        snprintf(how, sizeof(how), "memory rose steadily before: by %s/s for %.1f s, from %s",
                 PL_SIZE((uint64_t)leak->bytes_per_s), leak->over_s,
                 PAIR(leak->from_bytes, leak->to_bytes, "to"));
    }
    if (verdict->n_evidence == PL_VERDICT_EVIDENCE)
        verdict->n_evidence--;
    memmove(verdict->evidence[1], verdict->evidence[0],
            (size_t)verdict->n_evidence * sizeof(verdict->evidence[0]));
    verdict->n_evidence++;
    memcpy(verdict->evidence[0], how, sizeof(how));
}

const char *pl_outside_reason(enum pl_outside_cause cause)
{
    static const char *const reasons[PL_OUTSIDE_CAUSES] = {
        [PL_OUTSIDE_DESCRIPTORS] = "no free file descriptor",
        [PL_OUTSIDE_NO_PROC] = "no /proc (chroot)",
        [PL_OUTSIDE_NAMESPACE] = "another pid namespace",
        [PL_OUTSIDE_FULL] = "too many processes",
        [PL_OUTSIDE_OTHER] = "a system error",
    };
    return reasons[cause];
}

/* Writes "2 processes ran without the guard: no free file descriptor (1), too many processes
 * (1)". */
static void add_outside_evidence(const pl_facts *facts, pl_verdict *verdict)
{
    char reasons[256] = "";
    size_t used = 0;
    uint64_t n = 0;
    for (int i = 0; i < PL_OUTSIDE_CAUSES; i++) {
        if (facts->n_outside[i] == 0)
            continue;
        n += facts->n_outside[i];
        used += (size_t)snprintf(reasons + used, sizeof(reasons) - used, "%s%s (%" PRIu64 ")",
                                 used ? ", " : "", pl_outside_reason((enum pl_outside_cause)i),
                                 facts->n_outside[i]);
    }
    if (n > 0)
        add_evidence(verdict,
                     "%" PRIu64 " process%s ran without the guard, watched but not refused: %s", n,
                     n == 1 ? "" : "es", reasons);
}

void pl_verdict_judge(const pl_facts *facts, pl_verdict *ret_verdict)
{
    pl_verdict verdict = {0};
    if (!(judge_running(facts, &verdict) || judge_cut_short(facts, &verdict) ||
          judge_hang(facts, &verdict) || judge_stopped(facts, &verdict) ||
          judge_seccomp(facts, &verdict) || judge_crash(facts, &verdict) ||
          judge_oom_kill(facts, &verdict) || judge_lost(facts, &verdict) ||
          judge_signal(facts, &verdict) || judge_refused(facts, &verdict)))
        judge_exit(facts, &verdict);
    add_line_evidence(facts, &verdict);
    add_stall_evidence(facts, &verdict);
    consider_leak(facts, &verdict);
    add_outside_evidence(facts, &verdict);
    *ret_verdict = verdict;
}
