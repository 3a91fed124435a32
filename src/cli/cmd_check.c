/* SPDX-License-Identifier: Apache-2.0 */
/* `plimsoll check`: finds bad files in a dataset before training hits them. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/answer.h"
#include "cli/check_print.h"
#include "cli/commands.h"
#include "cli/say.h"
#include "sys/fixed_text.h"
#include "tensor/memory.h"
#include "verify/quarantine.h"

const char pl_check_usage[] =
    "usage: plimsoll check PATH... [OPTION...]\n"
    "       plimsoll check --plan PATH... [--batch N] [--prefetch N]\n"
    "       plimsoll check --restore DIR [--yes]\n"
    "\n"
    "  --format FORMAT      read all files as this format: npy, npz, tfrecord, jpeg, png, bmp,\n"
    "                       text, csv, tar or json (default: auto, by content)\n"
    "  --quarantine DIR     move bad files to DIR, with a manifest\n"
    "  --restore DIR        move them back, after showing where\n"
    "  --yes                restore without asking\n"
    "  --sample N           check N of the files, spread evenly\n"
    "  --values             count NaN and infinite values in arrays\n"
    "  --strict             treat warnings like errors: exit status 1, and quarantine\n"
    "  --jobs N             number of threads (default: one per processor)\n"
    "  --json               print findings and summary as JSON\n"
    "  --jsonl              print each finding as a JSON line, as it is found\n"
    "  --plan               show the memory that an element, a batch and the prefetched batches\n"
    "                       take, and which batch size fits\n"
    "  --batch N            elements per batch (default: 32)\n"
    "  --prefetch N         batches prepared ahead (default: 2)\n"
    "\n"
    "The exit status is 0 if all files are good, 1 if some are bad (or a plan does not fit), 2 if\n"
    "the check could not run or a bad file could not be moved, 130 after Ctrl-C, which keeps the\n"
    "findings so far.\n";

enum { EXIT_BAD = 1, EXIT_CANNOT = 2, MOST_JOBS = 1024 };

typedef struct check_arguments {
    pl_verify_options options;
    pl_check_form form;
    const char *quarantine, *restore;
    uint64_t n_jobs, batch, prefetch;
    bool strict, plan, yes, help;
} check_arguments;

/* State shared by the callbacks. */
typedef struct check_state {
    pl_check_printer printer;
    pl_quarantine quarantine;
    bool moves, strict;
    uint64_t n_moved, n_stayed;
} check_state;

/* ---- signals ---- */

static atomic_bool stopped;
static atomic_int stop_signal;

static void stop(int signal)
{
    atomic_store(&stop_signal, signal);
    atomic_store(&stopped, true);
}

/* The handler is reset after the first signal, so that a second one ends the process. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- options ---- */

static int parse_number(const char *what, const char *text, uint64_t least, uint64_t most,
                        uint64_t *ret_n, pl_error *reterr)
{
    const char *cursor = text;
    uint64_t n;
    if (!pl_fixed_text_take_u64(&cursor, &n) || *cursor != '\0' || n < least || n > most)
        return pl_error_set(reterr, PL_EUSAGE,
                            "check: '%s' is not a number for %s (%" PRIu64 " to %" PRIu64 ")", text,
                            what, least, most);
    *ret_n = n;
    return 0;
}

static int parse_format(const char *text, pl_verify_format *ret_format, pl_error *reterr)
{
    if (strcmp(text, "auto") == 0)
        *ret_format = PL_VERIFY_UNKNOWN;
    else if (!pl_verify_format_parse(text, ret_format))
        return pl_error_set(reterr, PL_EUSAGE,
                            "check: unknown format '%s': use auto, npy, npz, tfrecord, jpeg, png, "
                            "bmp, text, csv, tar or json",
                            text);
    return 0;
}

static int parse_option(int c, check_arguments *arguments, pl_error *reterr)
{
    pl_verify_options *options = &arguments->options;
    switch (c) {
    case 'f':
        return parse_format(optarg, &options->format, reterr);
    case 'q':
        arguments->quarantine = optarg;
        return 0;
    case 'r':
        arguments->restore = optarg;
        return 0;
    case 'n':
        return parse_number("--sample", optarg, 1, UINT32_MAX, &options->n_sample, reterr);
    case 'J':
        return parse_number("--jobs", optarg, 1, MOST_JOBS, &arguments->n_jobs, reterr);
    case 'b':
        return parse_number("--batch", optarg, 1, UINT32_MAX, &arguments->batch, reterr);
    case 'p':
        return parse_number("--prefetch", optarg, 0, UINT32_MAX, &arguments->prefetch, reterr);
    default:
        break;
    }
    arguments->plan |= c == 'P';
    arguments->strict |= c == 's';
    arguments->yes |= c == 'y';
    arguments->help |= c == 'h';
    options->values |= c == 'v';
    arguments->form = c == 'j' ? PL_CHECK_JSON : c == 'l' ? PL_CHECK_JSONL : arguments->form;
    return 0;
}

static int check_usage(const check_arguments *arguments, pl_error *reterr)
{
    bool has_paths = arguments->options.n_roots > 0;
    if (arguments->restore && (has_paths || arguments->quarantine || arguments->plan))
        return pl_error_set(reterr, PL_EUSAGE,
                            "check: --restore takes no paths, --quarantine or --plan");
    if (arguments->yes && !arguments->restore)
        return pl_error_set(reterr, PL_EUSAGE, "check: --yes needs --restore");
    if (arguments->quarantine && arguments->plan)
        return pl_error_set(reterr, PL_EUSAGE, "check: --plan and --quarantine cannot be combined");
    if (!arguments->restore && !has_paths && !arguments->help)
        return pl_error_set(reterr, PL_EUSAGE,
                            "check: no path given (see 'plimsoll check --help')");
    return 0;
}

static int parse(int argc, char **argv, check_arguments *arguments, pl_error *reterr)
{
    static const struct option longs[] = {
        {"format", required_argument, NULL, 'f'},
        {"quarantine", required_argument, NULL, 'q'},
        {"restore", required_argument, NULL, 'r'},
        {"sample", required_argument, NULL, 'n'},
        {"jobs", required_argument, NULL, 'J'},
        {"batch", required_argument, NULL, 'b'},
        {"prefetch", required_argument, NULL, 'p'},
        {"plan", no_argument, NULL, 'P'},
        {"values", no_argument, NULL, 'v'},
        {"strict", no_argument, NULL, 's'},
        {"json", no_argument, NULL, 'j'},
        {"jsonl", no_argument, NULL, 'l'},
        {"yes", no_argument, NULL, 'y'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    int c;
    opterr = 0;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
        if (c == '?')
            return pl_unknown_option("check", pl_refused_word(argc, argv), longs, reterr);
        if (c == ':')
            return pl_error_set(reterr, PL_EUSAGE, "check: '%s' needs a value",
                                pl_refused_word(argc, argv));
        int r = parse_option(c, arguments, reterr);
        if (r < 0)
            return r;
    }
    arguments->options.roots = (const char *const *)(argv + optind);
    arguments->options.n_roots = (size_t)(argc - optind);
    arguments->options.n_jobs = (int)arguments->n_jobs;
    return check_usage(arguments, reterr);
}

/* ---- checking ---- */

static int tell(void *context, const pl_verify_told *told, pl_error *reterr)
{
    check_state *checking = context;
    char to[PATH_MAX] = "";
    pl_error stays = {0};
    pl_verify_severity least = checking->strict ? PL_VERIFY_WARNING : PL_VERIFY_ERROR;
    if (checking->moves && told->finding->severity >= least) {
        int r = pl_quarantine_move(&checking->quarantine, told->path, told->finding->reason, to,
                                   &stays);
        if (r < 0)
            return pl_error_set(reterr, r, "%s", stays.message);
        checking->n_moved += r > 0;
        checking->n_stayed += r == 0;
    }
    pl_check_print(&checking->printer, told, to, stays.message);
    return 0;
}

static void show_progress(void *context, const pl_verify_summary *so_far)
{
    pl_check_print_progress(&((check_state *)context)->printer, so_far);
}

/* A plan reports no findings. */
static int tell_nobody(void *context, const pl_verify_told *told, pl_error *reterr)
{
    (void)context;
    (void)told;
    (void)reterr;
    return 0;
}

static int status_of(const check_arguments *arguments, const pl_verify_summary *summary)
{
    if (summary->interrupted)
        return 128 + atomic_load(&stop_signal);
    return summary->n_errors > 0 || (arguments->strict && summary->n_warnings > 0) ? EXIT_BAD : 0;
}

static int run_check(check_arguments *arguments, check_state *checking, pl_error *reterr)
{
    pl_verify_summary summary = {0};
    pl_error ignored = {0};
    int r = pl_verify_run(&arguments->options, &summary, reterr);
    if (r < 0 && summary.n_checked == 0)
        return r;
    int printed = pl_check_print_summary(&checking->printer, &summary, checking->n_moved,
                                         r < 0 ? &ignored : reterr);
    if (r == 0 && printed == 0 && checking->n_stayed > 0 && !summary.interrupted)
        r = pl_error_set(reterr, -ECANCELED,
                         "check: %" PRIu64 " bad files could not be moved to '%s'",
                         checking->n_stayed, arguments->quarantine);
    return r < 0 ? r : printed < 0 ? printed : status_of(arguments, &summary);
}

static int run_plan(check_arguments *arguments, check_state *checking, pl_error *reterr)
{
    pl_verify_summary summary = {0};
    pl_check_plan plan = {
        .batch = arguments->batch,
        .prefetch = arguments->prefetch,
        .line_bytes = pl_memory_headroom_bytes(arguments->options.memory),
    };
    arguments->options.size_only = true;
    arguments->options.notes = false;
    arguments->options.tell = tell_nobody;
    int r = pl_verify_run(&arguments->options, &summary, reterr);
    checking->printer.bar_is_shown ? fputs("\r\033[K", stderr) : 0;
    if (r == 0 && summary.interrupted)
        return status_of(arguments, &summary);
    if (r == 0)
        r = pl_check_print_plan(&checking->printer, &summary, &plan, reterr);
    return r < 0 ? r : pl_check_plan_fits(&summary, &plan) ? 0 : EXIT_BAD;
}

/* Uses the same budget as a Python program started here would. */
static int take_memory(pl_memory **ret_memory, pl_error *reterr)
{
    const char *text = getenv("PLIMSOLL_BUDGET");
    const pl_memory_options options = {.budget_text = text && *text ? text : NULL};
    return pl_memory_new(&options, ret_memory, reterr);
}

static int run(check_arguments *arguments, pl_error *reterr)
{
    check_state checking = {.strict = arguments->strict, .moves = arguments->quarantine != NULL};
    pl_verify_options *options = &arguments->options;
    int r = checking.moves ? pl_quarantine_open(&checking.quarantine, arguments->quarantine, reterr)
                           : 0;
    if (r < 0)
        return r;
    if (checking.moves)
        options->skip = pl_quarantine_identity(&checking.quarantine);
    pl_check_printer_init(&checking.printer, arguments->form);
    options->notes = true;
    options->stopped = &stopped;
    options->context = &checking;
    options->tell = tell;
    options->progress = checking.printer.bar ? show_progress : NULL;
    catch_signals();
    r = take_memory(&options->memory, reterr);
    if (r == 0)
        r = arguments->plan ? run_plan(arguments, &checking, reterr)
                            : run_check(arguments, &checking, reterr);
    pl_memory_unref(options->memory);
    pl_check_printer_done(&checking.printer);
    if (checking.moves)
        pl_quarantine_close(&checking.quarantine);
    return r;
}

/* ---- restoring ---- */

static void tell_left(const char *path, const char *why)
{
    const pl_printer printer = {.out = stderr};
    fputs("plimsoll: check: '", stderr);
    pl_print_clean(&printer, path);
    fprintf(stderr, "' stays in quarantine: %s\n", why);
}

static void show_file(const char *name, const char *path)
{
    const pl_printer printer = {.out = stdout};
    pl_print_clean(&printer, name);
    fputs(" goes back to '", stdout);
    pl_print_clean(&printer, path);
    fputs("'\n", stdout);
}

static void show_nothing(const char *name, const char *path)
{
    (void)name;
    (void)path;
}

static int agree_always(uint64_t n_files, pl_error *reterr)
{
    (void)n_files;
    (void)reterr;
    return 1;
}

/* A manifest can come with a download, and name any path that the user may write to. */
static int ask(uint64_t n_files, pl_error *reterr)
{
    char answer[16];
    if (fflush(stdout) != 0 || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return pl_error_set(reterr, -ECANCELED,
                            "check: nothing was moved, because there is no terminal to ask on: see "
                            "above where %" PRIu64 " file%s would go, then add --yes",
                            n_files, n_files == 1 ? "" : "s");
    fprintf(stderr, "Move %" PRIu64 " file%s back? [y/N] ", n_files, n_files == 1 ? "" : "s");
    bool yes = fgets(answer, sizeof answer, stdin) != NULL &&
               (strcasecmp(answer, "y\n") == 0 || strcasecmp(answer, "yes\n") == 0);
    return yes ? 1 : 0;
}

static int restore(const check_arguments *arguments, pl_error *reterr)
{
    const pl_quarantine_restoring how = {
        .show = arguments->yes ? show_nothing : show_file,
        .agree = arguments->yes ? agree_always : ask,
        .tell = tell_left,
    };
    pl_quarantine_restored restored;
    int r = pl_quarantine_restore(arguments->restore, &how, &restored, reterr);
    if (r < 0)
        return r;
    printf("%" PRIu64 " file%s moved back, %" PRIu64 " left\n", restored.n_restored,
           restored.n_restored == 1 ? "" : "s", restored.n_left);
    return restored.n_left > 0 ? EXIT_BAD : 0;
}

int pl_cmd_check(int argc, char **argv)
{
    check_arguments arguments = {.batch = 32, .prefetch = 2};
    pl_error error = {0};
    int r = parse(argc, argv, &arguments, &error);
    if (r == 0 && arguments.help)
        fputs(pl_check_usage, stdout);
    else if (r == 0)
        r = arguments.restore ? restore(&arguments, &error) : run(&arguments, &error);
    if (r < 0) {
        fflush(stdout);
        pl_say_error("%s", error.message);
        return EXIT_CANNOT;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("plimsoll: cannot write the answer");
        return EXIT_CANNOT;
    }
    return r;
}
