/* SPDX-License-Identifier: Apache-2.0 */
/* Advice for each verdict: concrete, in the order in which it is likely to help. Pure. */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "ledger/refusal.h"
#include "report/verdict.h"

typedef struct advice {
    char (*lines)[PL_ADVICE_BYTES];
    int n;
    int max;
} advice;

__attribute__((format(printf, 2, 3))) static void say(advice *advice_, const char *format, ...)
{
    if (advice_->n == advice_->max)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(advice_->lines[advice_->n++], PL_ADVICE_BYTES, format, args);
    va_end(args);
}

static const char *budget_option(const pl_facts *facts)
{
    return pl_line_option(facts->line_is_cells, facts->in_notebook);
}

static void advise_holder(const pl_holder *holder, advice *to)
{
    switch (holder->kind) {
    case PL_HOLDER_UNKNOWN:
        break;
    case PL_HOLDER_CODE:
        say(to, "free or batch what %s keeps", holder->place);
        break;
    case PL_HOLDER_MODULES:
        say(to, "import less: modules hold most of it");
        break;
    case PL_HOLDER_FILE:
        say(to, "close and remove '%s': it is a file in memory", holder->place);
        break;
    case PL_HOLDER_MEMFD:
        say(to, "close '%s': it is a file in memory", holder->place);
        break;
    }
}

/* Others in the group took memory that the run was meant to have. */
static void advise_neighbour(const pl_facts *facts, advice *to)
{
    const pl_fact_process *who = &facts->neighbours.process;
    char name[PL_FACT_NAME_BYTES + 24] = "the other processes of its memory cgroup";
    if (who->pid != 0)
        snprintf(name, sizeof(name), "'%s' (pid %d)", who->name, (int)who->pid);
    say(to, "move %s to another memory cgroup, or end it: it took %s of the memory that both share",
        name, PL_SIZE(who->bytes));
}

/* A larger budget does not help against other processes, a cgroup's limit, or the reserve. */
static void advise_more(const pl_facts *facts, uint64_t needed_bytes, advice *to)
{
    uint64_t least = pl_max_u64(pl_add_sat_u64(facts->limit_bytes, 64 * PL_MIB), needed_bytes);
    if (facts->limit_bytes < facts->budget_bytes) {
        if (facts->neighbours.n > 0)
            advise_neighbour(facts, to);
        else
            say(to, "or give its memory cgroup more: the line is as high as that allows");
    } else if (pl_sub_sat_u64(facts->true_limit_bytes, facts->reserve_bytes) > least) {
        say(to, "allow more with %s: the system would give %s", budget_option(facts),
            PL_SIZE(facts->true_limit_bytes));
    }
}

static void advise_less_memory(const pl_facts *facts, const pl_holder *holder, advice *to)
{
    if (holder->kind != PL_HOLDER_UNKNOWN)
        advise_holder(holder, to);
    else
        say(to, "load less at a time: smaller batches, slices, narrower types");
    advise_more(facts, 0, to);
}

/* Freeing memory would not help this request. */
static void advise_never_fits(const pl_facts *facts, enum pl_refusal_fit fit, advice *to)
{
    const pl_fact_refusal *refusal = &facts->refusal;
    uint64_t bytes = refusal->process.bytes;
    char nor[64] = "";
    if (fit == PL_FIT_NEVER)
        snprintf(nor, sizeof(nor), ", nor in the %s that the system would give",
                 PL_SIZE(facts->true_limit_bytes));
    say(to, "%s can never fit in %s%s: ask for less at once%s%s, or in slices", PL_SIZE(bytes),
        PL_SIZE(refusal->limit_bytes), nor, refusal->place[0] != '\0' ? " at " : "",
        refusal->place);
    advise_more(facts, bytes, to);
}

static void advise_refused(const pl_facts *facts, const pl_holder *holder, advice *to)
{
    const pl_fact_refusal *refusal = &facts->refusal;
    enum pl_refusal_fit fit =
        pl_refusal_fit(refusal->process.bytes, refusal->limit_bytes, facts->true_limit_bytes);
    if (fit != PL_FIT_WHEN_FREED && refusal->limit_bytes > 0)
        advise_never_fits(facts, fit, to);
    else
        advise_less_memory(facts, holder, to);
    if (refusal->process.bytes > refusal->limit_bytes / 2 && refusal->process.bytes > 0 &&
        !facts->in_notebook)
        say(to, "if most of it is never written, run with --sparse");
}

/* If the run passed the line by far, the line did not stop it, and a lower one would not either. */
static void advise_oom(const pl_facts *facts, const pl_holder *holder, advice *to)
{
    if (facts->observed)
        say(to, "run it without --observe, so that requests are refused before the system kills");
    else if (facts->neighbours.n > 0)
        advise_neighbour(facts, to);
    else if (facts->true_limit_bytes > 0 && facts->peak_bytes / 2 <= facts->limit_bytes)
        say(to, "%s below %s, so that requests are refused before the system kills",
            facts->in_notebook ? "draw the line with %plimsoll budget SIZE" : "set --budget",
            PL_SIZE(pl_min_u64(facts->limit_bytes, facts->true_limit_bytes)));
    if (holder->kind != PL_HOLDER_UNKNOWN)
        advise_holder(holder, to);
    else
        say(to, "the guard saw none of it: give a static program, or one started without the "
                "environment, a limit of its own; 'ulimit -s' bounds a stack that grows");
    say(to, "or give the container or machine more memory");
}

static void advise_bus_error(const pl_facts *facts, advice *to)
{
    if (strncmp(facts->crash.mapping, "/dev/shm", strlen("/dev/shm")) == 0) {
        say(to, "'df -h /dev/shm' shows whether it is full: run the container with a larger "
                "--shm-size (Docker gives 64 MiB), or use DataLoader(num_workers=0)");
        say(to, "or remove what dead programs left there");
    } else if (facts->crash.mapping[0] == '/') {
        say(to, "do not truncate '%s' while a program has it mapped; check that it is complete",
            facts->crash.mapping);
    } else {
        say(to, "check the files that the program maps, and 'df -h /dev/shm'");
    }
}

static void advise_crash(const pl_facts *facts, advice *to)
{
    const pl_fact_crash *crash = &facts->crash;
    if (crash->process.pid != 0 && !pl_verdict_crash_explains_end(facts)) {
        pl_facts own = *facts; /* the record is of another process */
        own.crash = (pl_fact_crash){.refused_before_s = -1};
        advise_crash(&own, to);
        return;
    }
    int signal = crash->process.pid != 0 ? crash->signal : pl_verdict_signal(facts->wait_status);
    if (facts->own_data_limit)
        say(to, "if its memory was short, allow more with --budget");
    if (crash->refused_before_s >= 0 && crash->refused_before_s <= 2)
        say(to, "memory was short just before: use less, or allow more with %s",
            budget_option(facts));
    if (crash->cause == PL_CRASH_STACK_OVERFLOW)
        say(to,
            "end the recursion, or allow more stack with 'ulimit -s' or threading.stack_size()");
    else if (signal == SIGBUS)
        advise_bus_error(facts, to);
    else if (signal == SIGFPE)
        say(to, "check the divisor in the innermost frame of the stack");
    else if (crash->cause == PL_CRASH_DOUBLE_FREE)
        say(to, "a block was freed twice: run it under 'valgrind' or with -fsanitize=address to "
                "find where");
    else if (crash->cause == PL_CRASH_HEAP_CORRUPTION)
        say(to, "the heap was damaged earlier, by a write past the end of a block or a free() of a "
                "bad pointer: run it under 'valgrind' or with -fsanitize=address to find where");
    if (signal == SIGBUS && crash->mapping[0] != '\0')
        return; /* the file's fault, not the module's */
    if (crash->in_program && crash->place[0] != '\0')
        say(to, "begin at %s%s", crash->place,
            crash->has_line ? "" : "; built with -g, it would name its lines");
    else if (crash->module[0] != '\0' && !crash->in_interpreter)
        say(to,
            "it happened in %s: try another version of it, or report the native stack to its "
            "authors",
            crash->module);
    else if (crash->place[0] != '\0')
        say(to, "begin at %s", crash->place);
    else if (crash->process.pid == 0)
        say(to, "it left no stack: run it under gdb, or allow a core file (ulimit -c unlimited)");
    else
        say(to, "build it with -g, and run it again for a stack with names");
}

static void advise_hang(const pl_facts *facts, advice *to)
{
    if (facts->lock_cycle)
        say(to, "take the locks of the cycle in the same order everywhere");
    else
        say(to, "look at what each thread waits for: '%splimsoll explain' shows every stack",
            facts->in_notebook ? "%" : "");
    say(to, "if it hangs in DataLoader workers, try num_workers=0, or the 'spawn' start method");
}

int pl_advice(const pl_facts *facts, enum pl_verdict_kind kind, const pl_holder *holder,
              char (*lines)[PL_ADVICE_BYTES], int max)
{
    advice to = {.lines = lines, .max = max};
    if (facts->cut_short) {
        say(&to, "find out what truncates the file that $PLIMSOLL_LEDGER names");
        return to.n;
    }
    switch (kind) {
    case PL_VERDICT_REFUSED:
    case PL_VERDICT_FINISHED_AFTER_REFUSALS:
        advise_refused(facts, holder, &to);
        break;
    case PL_VERDICT_LEAK:
        if (holder->kind != PL_HOLDER_UNKNOWN && holder->kind != PL_HOLDER_MODULES)
            say(&to, "let go of what %s collects: lists that only grow, graphs kept by losses",
                holder->place);
        else
            say(&to, "look for what only grows: lists, caches, losses that keep their graph");
        say(&to, "more memory only delays it");
        break;
    case PL_VERDICT_KILLED_FOR_MEMORY:
        advise_oom(facts, holder, &to);
        break;
    case PL_VERDICT_STOPPED_FOR_MEMORY:
        if (holder->kind == PL_HOLDER_UNKNOWN)
            say(&to, "most of it was taken where the guard does not see it: look for static "
                     "programs, native code that maps memory itself, and pages written after a "
                     "fork");
        advise_less_memory(facts, holder, &to);
        break;
    case PL_VERDICT_KILLED:
        if (pl_verdict_is_seccomp(facts) && pl_verdict_signal(facts->wait_status) == SIGKILL)
            say(&to, "run it once without plimsoll: if it works there, let it take its memory "
                     "before it enters the strict mode, or give it a filter that allows the "
                     "guard's system calls ('man plimsoll-run' lists them)");
        else if (pl_verdict_is_seccomp(facts))
            say(&to,
                "run it once without plimsoll: if it works there, allow the guard's system "
                "calls (openat, read, close, mincore, gettid, and what 'man plimsoll-run' lists)");
        else if (facts->stop_signal == 0)
            say(&to, "ask who sent it: %s, a batch system's time limit, a container being stopped",
                facts->in_notebook ? "a restart from the notebook, a user" : "a user");
        break;
    case PL_VERDICT_CRASHED:
        advise_crash(facts, &to);
        break;
    case PL_VERDICT_ILLEGAL_INSTRUCTION:
        say(&to, "install a build of %s for this CPU, without %s",
            facts->crash.module[0] != '\0' ? facts->crash.module : "the program",
            facts->crash.missing_set);
        say(&to, "or run it on a machine that has %s", facts->crash.missing_set);
        break;
    case PL_VERDICT_HANG:
        advise_hang(facts, &to);
        break;
    case PL_VERDICT_LOST:
        say(&to, "%slook at the system's log (journalctl -k, kubectl describe pod) for that time",
            facts->in_notebook ? "if nobody restarted the kernel, " : "");
        break;
    case PL_VERDICT_FINISHED:
    case PL_VERDICT_FAILED:
        if (facts->cell != 0)
            say(&to,
                "something that In [%" PRIu32
                "] called ended the process: os._exit(), or exit() in native code",
                facts->cell);
        break;
    case PL_VERDICT_RUNNING:
    case PL_VERDICT_UNREADABLE:
    case PL_VERDICTS:
        break;
    }
    if (pl_verdict_stalled(facts))
        say(&to,
            "%s, or let it use less%s: above memory.high, or with no memory left to reclaim, the "
            "kernel makes programs wait",
            facts->n_throttles > 0 ? "raise memory.high" : "give its cgroup more memory",
            facts->observed ? ", without --observe" : "");
    return to.n;
}
