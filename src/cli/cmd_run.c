/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll run [OPTION...] -- COMMAND [ARG...]: runs a command under the line, and reports why it
 * ended. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/installed.h"
#include "cli/kernel_run.h"
#include "cli/say.h"
#include "cli/wanted_budget.h"
#include "plimsoll/budget.h"
#include "report/report.h"
#include "supervise/executable.h"
#include "supervise/run_record.h"
#include "supervise/supervise.h"
#include "sys/proc.h"

typedef struct run_options {
    const char *budget;
    uint64_t reserve_bytes;
    const char *record;
    const char *report;
    bool quiet;
    uint32_t flags; /* pl_run_flags */
    const char *sparse_programs[PL_SPARSE_PROGRAMS];
    int n_sparse_programs;
    uint64_t hang_after_ns;
    bool hang_stop;
    const char *kernel; /* its connection file, or PL_KERNEL_RUN_AUTO */
    char *const *command;
} run_options;

typedef struct this_run {
    const run_options *options;
    pl_run_record record;
    pl_ledger *ledger;
    char ledger_path[PATH_MAX];
    char guard_path[PATH_MAX];
    char *const *command; /* as it is started: for a kernel, with more arguments than were given */
    bool hang_reported;
} this_run;

static int fail(const pl_error *error)
{
    pl_say_error("%s", error->message);
    return PL_EXIT_FAILURE;
}

/* Parses "90", "90s", "1.5m", "2h". */
static int parse_duration(const char *text, uint64_t *ret_ns, pl_error *reterr)
{
    char *end = NULL;
    double value = strtod(text, &end);
    double unit = strcmp(end, "h") == 0                   ? 3600
                  : strcmp(end, "m") == 0                 ? 60
                  : strcmp(end, "s") == 0 || *end == '\0' ? 1
                                                          : 0;
    if (end == text || unit == 0 || !(value > 0) || value * unit > 1e9)
        return pl_error_set(reterr, PL_EUSAGE,
                            "'%s' is not a duration: give seconds, or a number with s, m or h",
                            text);
    *ret_ns = (uint64_t)(value * unit * 1e9);
    return 0;
}

static int take_sparse(run_options *options, const char *program, pl_error *reterr)
{
    if (!program) {
        options->flags |= PL_RUN_SPARSE;
        return 0;
    }
    if (options->n_sparse_programs == PL_SPARSE_PROGRAMS)
        return pl_error_set(reterr, PL_EUSAGE, "--sparse can name %d programs at most",
                            PL_SPARSE_PROGRAMS);
    options->sparse_programs[options->n_sparse_programs++] = program;
    return 0;
}

enum { BUDGET = 1, RESERVE, RECORD, REPORT, QUIET, OBSERVE, SPARSE, HANG_AFTER, HANG_STOP, KERNEL };

static const struct option longs[] = {
    {"budget", required_argument, NULL, BUDGET},
    {"reserve", required_argument, NULL, RESERVE},
    {"record", required_argument, NULL, RECORD},
    {"report", required_argument, NULL, REPORT},
    {"quiet", no_argument, NULL, QUIET},
    {"observe", no_argument, NULL, OBSERVE},
    {"sparse", optional_argument, NULL, SPARSE},
    {"hang-after", required_argument, NULL, HANG_AFTER},
    {"hang-stop", no_argument, NULL, HANG_STOP},
    {"kernel", required_argument, NULL, KERNEL},
    {0},
};

static int parse(int argc, char **argv, run_options *options, pl_error *reterr)
{
    int c, r = 0;
    opterr = 0;
    optind = 1;
    while (r == 0 && (c = getopt_long(argc, argv, "+:", longs, NULL)) != -1) {
        switch (c) {
        case BUDGET:
            options->budget = optarg;
            break;
        case RESERVE:
            r = pl_size_parse(optarg, 0, &options->reserve_bytes, reterr);
            break;
        case RECORD:
            options->record = optarg;
            break;
        case REPORT:
            options->report = optarg;
            break;
        case QUIET:
            options->quiet = true;
            break;
        case OBSERVE:
            options->flags |= PL_RUN_OBSERVE;
            break;
        case SPARSE:
            r = take_sparse(options, optarg, reterr);
            break;
        case HANG_AFTER:
            r = parse_duration(optarg, &options->hang_after_ns, reterr);
            break;
        case HANG_STOP:
            options->hang_stop = true;
            break;
        case KERNEL:
            options->kernel = optarg;
            if (*optarg == '\0')
                r = pl_error_set(reterr, PL_EUSAGE, "run: --kernel needs a connection file");
            break;
        case ':':
            r = pl_error_set(reterr, PL_EUSAGE, "run: '%s' needs a value",
                             pl_refused_word(argc, argv));
            break;
        default:
            r = pl_unknown_option("run", pl_refused_word(argc, argv), longs, reterr);
        }
    }
    if (r == 0 && optind == argc)
        r = pl_error_set(reterr, PL_EUSAGE,
                         "run: no command given: plimsoll run [OPTION...] -- COMMAND [ARG...]");
    options->command = argv + optind;
    return r;
}

static void describe_command(pl_ledger_header *header, char *const *command)
{
    static const char more[] = "..."; /* replaces words that do not fit */
    size_t used = 0;
    for (; *command; command++) {
        size_t n = strlen(*command) + 1;
        if (used + n + sizeof more + 1 > sizeof header->command) {
            memcpy(header->command + used, more, sizeof more);
            break;
        }
        memcpy(header->command + used, *command, n);
        used += n;
    }
    if (!getcwd(header->directory, sizeof header->directory))
        header->directory[0] = '\0';
}

/* The highest line if a cgroup's limit is raised: the least of the request and all sources other
 * than cgroups. */
static uint64_t highest_line(const pl_budget *budget)
{
    uint64_t highest = UINT64_MAX;
    for (int i = 0; i < budget->n_sources; i++) {
        const pl_budget_source *source = &budget->sources[i];
        bool asked = strcmp(source->name, "request") == 0;
        if (source->present && strncmp(source->name, "cgroup", strlen("cgroup")) != 0)
            highest = pl_min_u64(highest,
                                 pl_sub_sat_u64(source->bytes, asked ? 0 : budget->reserve_bytes));
    }
    return highest;
}

static void describe_source(const pl_budget_source *source, char *text, size_t size)
{
    snprintf(text, size, "%.20s %.*s", source->name, (int)size - 22, source->detail);
}

/* The limits that stay fixed: those of cgroups and free memory change while the command runs. */
static bool is_steady(const pl_budget_source *source)
{
    return source->present && strncmp(source->name, "cgroup", strlen("cgroup")) != 0 &&
           strcmp(source->name, "MemAvailable") != 0 && strcmp(source->name, "request") != 0;
}

static void describe_limits(const pl_budget *budget, pl_ledger_header *header)
{
    header->true_limit_bytes = budget->true_limit_bytes;
    if (budget->tightest >= 0)
        describe_source(&budget->sources[budget->tightest], header->limit_source,
                        sizeof header->limit_source);
    for (int i = 0; i < budget->n_sources; i++) {
        const pl_budget_source *source = &budget->sources[i];
        if (!is_steady(source) ||
            (header->steady_limit_bytes > 0 && source->bytes >= header->steady_limit_bytes))
            continue;
        header->steady_limit_bytes = source->bytes;
        describe_source(source, header->steady_source, sizeof header->steady_source);
    }
}

static void describe_run(const this_run *run, const pl_budget *budget)
{
    pl_ledger_header *header = &run->ledger->header;
    pl_proc_stat stat;
    header->flags = run->options->flags;
    describe_limits(budget, header);
    pl_ledger_set_system_bytes(run->ledger, budget->line_bytes);
    pl_ledger_set_limit_bytes(run->ledger, highest_line(budget));
    header->supervisor_pid = getpid();
    if (pl_proc_identity_read(getpid(), &stat) == 0)
        header->supervisor_start_ticks = stat.start_ticks;
    if (pl_proc_read_file("/proc/sys/kernel/random/boot_id", header->boot_id,
                          sizeof header->boot_id) < 0)
        header->boot_id[0] = '\0';
    header->boot_id[strcspn(header->boot_id, "\n")] = '\0';
    for (int i = 0; i < run->options->n_sparse_programs; i++)
        snprintf(header->sparse_programs[i], sizeof header->sparse_programs[i], "%s",
                 run->options->sparse_programs[i]);
    describe_command(header, run->options->command);
}

static int prepare_kernel(this_run *run, pl_error *reterr)
{
    const char *warning = NULL;
    pl_kernel_run_describe(&run->ledger->header, run->options->kernel, run->options->command);
    int r = pl_kernel_run_prepare(&run->ledger->header, run->options->command, &run->command,
                                  &warning, reterr);
    if (warning && !run->options->quiet)
        pl_say_error("%s", warning);
    return r;
}

/* A command that never started leaves no record. */
static void discard(const this_run *run)
{
    if (run->ledger)
        unlink(run->ledger_path);
    if (run->record.directory[0])
        rmdir(run->record.directory);
}

static int create_record(this_run *run, const pl_budget *budget, pl_error *reterr)
{
    int r = pl_run_record_create(run->options->record, &run->record, reterr);
    if (r < 0)
        return r;
    r = pl_run_record_path(run->record.directory, PL_RECORD_LEDGER, run->ledger_path);
    if (r < 0)
        return pl_error_set(reterr, r, "the record's path is too long: '%s'",
                            run->record.directory);
    pl_ledger_params params = {.limit_bytes = budget->line_bytes,
                               .reserve_bytes = budget->reserve_bytes};
    return pl_ledger_create(run->ledger_path, &params, &run->ledger, reterr);
}

/* Without a record there is no line. A kernel must start even if its home is full or read-only, as
 * it would without plimsoll. */
static int create_kernel_record(this_run *run, const pl_budget *budget, pl_error *reterr)
{
    char folder[PATH_MAX];
    pl_error second = {0};
    int r = create_record(run, budget, reterr);
    if (r == 0 || run->options->record || pl_kernel_run_use_temporary(folder) < 0)
        return r;
    discard(run);
    run->record = (pl_run_record){0};
    if (create_record(run, budget, &second) < 0)
        return r; /* the user can fix the cause of the first failure */
    pl_say_error("%s; the kernel's record is kept in '%s'", reterr->message, folder);
    return 0;
}

/* Warns now, before the start, not when the line is reached. */
static void warn_if_unguardable(const this_run *run)
{
    pl_executable program;
    char text[PL_EXECUTABLE_SENTENCE_BYTES];
    pl_executable_look(run->options->command[0], run->guard_path, &program);
    pl_executable_sentence(&program, text);
    bool refuses = !(run->options->flags & PL_RUN_OBSERVE);
    if (text[0] && refuses && !run->options->quiet)
        pl_say_error("%s", text);
}

/* The budget given here also holds for the runtime, and for runs, inside the command. */
static int pass_on_budget(const run_options *options, pl_error *reterr)
{
    if (options->budget && getenv(PL_BUDGET_VARIABLE) &&
        setenv(PL_BUDGET_VARIABLE, options->budget, 1) < 0)
        return pl_error_set(reterr, -errno, "cannot set the command's environment: out of memory");
    return 0;
}

static int prepare(this_run *run, pl_error *reterr)
{
    pl_budget budget;
    pl_budget_options wanted = {.request_text = run->options->budget,
                                .reserve_bytes = run->options->reserve_bytes};
    int r = pl_installed_guard(run->guard_path, reterr);
    if (r == 0)
        r = pl_wanted_budget(&wanted, &budget, reterr);
    if (r == 0)
        r = run->options->kernel ? create_kernel_record(run, &budget, reterr)
                                 : create_record(run, &budget, reterr);
    if (r < 0)
        return r;
    if (budget.cut && !run->options->quiet)
        pl_say_error("the budget was cut to %s, all that the system gives",
                     PL_SIZE(budget.line_bytes));
    r = pass_on_budget(run->options, reterr);
    if (r < 0)
        return r;
    describe_run(run, &budget);
    warn_if_unguardable(run);
    run->command = run->options->command;
    return run->options->kernel ? prepare_kernel(run, reterr) : 0;
}

static void print_report(const this_run *run, const json_t *report)
{
    if (!run->options->quiet)
        pl_report_text(report, stderr, pl_report_wants_color(stderr) ? PL_REPORT_COLOR : 0);
}

static void keep_hang(void *context, const pl_inspect_process *processes, int n, double idle_s)
{
    this_run *run = context;
    pl_error error = {0};
    json_t *report = NULL;
    if (pl_report_write_hang(run->record.directory, processes, (size_t)n, idle_s, &error) < 0 ||
        pl_report_build(run->ledger, run->record.directory, &report, &error) < 0) {
        pl_say_error("%s", error.message);
        return;
    }
    print_report(run, report);
    run->hang_reported = true;
    json_decref(report);
}

static int exit_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* The record's disk may be full when the disk of --report is not: each is tried. */
static void save_report(const this_run *run, const json_t *report)
{
    char path[PATH_MAX];
    pl_error error = {.message = "the path of the record's report is too long"};
    if (pl_run_record_path(run->record.directory, PL_RECORD_REPORT, path) < 0 ||
        pl_report_save(report, path, &error) < 0)
        fail(&error);
    if (run->options->report && pl_report_save(report, run->options->report, &error) < 0)
        fail(&error);
}

/* No data is lost: the ledger and the files beside it stay in the record. If stderr cannot be
 * written to, which may be why the report failed, this prints nothing. */
static void say_no_report(const this_run *run, const char *why)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
        return;
    pl_say_error("%s; 'plimsoll explain %s' tries again", why,
                 run->options->record ? run->record.directory : run->record.id);
}

/* If this run is inside another, the outer supervisor sees only our exit status, so we pass it the
 * verdict too. */
static void report_to_outer_run(const this_run *run, enum pl_verdict_kind verdict)
{
    pl_ledger *outer = NULL;
    pl_error error = {0};
    if (!pl_verdict_has(verdict, PL_TRAIT_EXPLAINS) || !getenv(PL_LEDGER_VARIABLE) ||
        pl_ledger_open_run(&outer, &error) < 0)
        return;
    pl_event event = {.kind = PL_EVENT_INNER, .pid = getpid(), .detail = 1 + (uint32_t)verdict};
    snprintf(event.where.file, sizeof event.where.file, "%.119s",
             run->options->record ? run->record.directory : run->record.id);
    pl_ledger_event(outer, &event);
    pl_ledger_close(outer);
}

static void explain(const this_run *run)
{
    pl_error error = {0};
    json_t *report = NULL;
    if (pl_report_build(run->ledger, run->record.directory, &report, &error) < 0)
        say_no_report(run, error.message);
    else
        save_report(run, report);
    enum pl_verdict_kind verdict = pl_report_verdict(report);
    report_to_outer_run(run, verdict);
    if (report && !(run->hang_reported && verdict == PL_VERDICT_HANG))
        print_report(run, report);
    json_decref(report);
    if (!run->options->record && pl_run_record_prune(PL_RECORD_KEEP, &error) < 0)
        fail(&error);
}

/* The time that a report may still take after a signal asked plimsoll to end. systemd waits 90 s
 * before it sends SIGKILL, Kubernetes 30 s and docker stop 10 s. A report takes under a second, or
 * a few with large debug information. */
#define ASKED_TO_END_S 8

/* Waits for the report. A signal that asks us to end leaves it some seconds, a second Ctrl-C
 * none. */
static int wait_for_report(pid_t pid)
{
    sigset_t signals;
    pl_supervise_signals(&signals);
    uint64_t deadline_ns = UINT64_MAX;
    int status = 0, n_interrupts = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        uint64_t now_ns = pl_clock_monotonic_ns();
        if (now_ns >= deadline_ns || n_interrupts > 1)
            kill(pid, SIGKILL);
        struct timespec second = {.tv_sec = 1};
        int got = sigtimedwait(&signals, NULL, &second);
        n_interrupts += got == SIGINT;
        if (got > 0 && got != SIGCHLD)
            deadline_ns = pl_min_u64(deadline_ns, now_ns + ASKED_TO_END_S * PL_NS_PER_SEC);
    }
    return status;
}

/* Makes the report in a child process. The command has ended, and no failure from here on may
 * change its exit status; but when memory is short, libdw ends its process, by exit() or a null
 * pointer. Both processes block the signals that the supervisor passes on. */
static void explain_apart(const this_run *run)
{
    pid_t pid = fork();
    if (pid <= 0)
        explain(run);
    if (pid == 0)
        _exit(0);
    int status = pid > 0 ? wait_for_report(pid) : 0;
    if (status != 0)
        say_no_report(run, WIFSIGNALED(status)
                               ? "the process that makes the report was ended by a signal"
                               : "the process that makes the report failed");
}

int pl_cmd_run(int argc, char **argv)
{
    run_options options = {0};
    static this_run run;
    run.options = &options;
    pl_error error = {0};
    int r = parse(argc, argv, &options, &error);
    if (r == 0)
        r = prepare(&run, &error);
    if (r < 0) {
        discard(&run);
        return fail(&error);
    }

    pl_supervise_options supervise = {
        .command = run.command,
        .guard_path = run.guard_path,
        .ledger_path = run.ledger_path,
        .hang_after_ns = options.hang_after_ns,
        .hang_stop = options.hang_stop,
        .parent = options.kernel ? pl_kernel_run_parent() : 0,
        .on_hang = keep_hang,
        .context = &run,
    };
    int wait_status = 0;
    r = pl_supervise(run.ledger, &supervise, &wait_status, &error);
    if (r < 0) {
        discard(&run);
        fail(&error);
        bool ours = r == -ENOMEM || r == -EMFILE || r == -ENFILE || run.ledger->header.command_pid;
        return r == -ENOENT ? PL_EXIT_NOT_FOUND : ours ? PL_EXIT_FAILURE : PL_EXIT_CANNOT_RUN;
    }
    signal(SIGPIPE, SIG_IGN); /* the report may have no reader; the command's status is kept */
    explain_apart(&run);
    pl_ledger_close(run.ledger);
    return exit_status(wait_status);
}
