/* SPDX-License-Identifier: Apache-2.0 */
/* See jupyter_options.h. */
#include "cli/jupyter_options.h"
#include "cli/answer.h"

#include <getopt.h>
#include <string.h>

#include "base/size.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "plimsoll/budget.h"

const char pl_jupyter_usage[] =
    "usage: plimsoll jupyter install [--kernel NAME | --all] [--budget SIZE|N%]\n"
    "                                [--user | --prefix DIR]\n"
    "       plimsoll jupyter list [--json]\n"
    "       plimsoll jupyter uninstall [--kernel NAME | --all] [--user | --prefix DIR]\n"
    "\n"
    "install makes a twin of a kernel that runs under the line: 'Python 3 (Plimsoll)'. The kernel\n"
    "itself stays as it is.\n"
    "\n"
    "  --kernel NAME        the kernel, by its name in 'plimsoll jupyter list' (default: python3)\n"
    "  --all                every kernel, or every twin\n"
    "  --budget SIZE|N%     the line of the twin: 512M, 2G, 80% (default: all that the system "
    "gives)\n"
    "  --user               in the user's Jupyter folder (the default)\n"
    "  --prefix DIR         in DIR/share/jupyter/kernels\n"
    "  --json               list as JSON\n"
    "\n"
    "The exit status is 0; 1 if a kernel that was asked for is not there, cannot be used or "
    "cannot\n"
    "be replaced; 125 if plimsoll itself failed.\n";

/* Refuses a size now that `plimsoll run` would refuse: later, the kernel would not start. */
static int check_budget(const char *text, pl_error *reterr)
{
    uint64_t bytes;
    bool share = strchr(text, '%') != NULL;
    int r = pl_size_parse(text, share ? UINT64_C(1) << 62 : PL_GIB, &bytes, reterr);
    if (r == 0 && !share && bytes < PL_BUDGET_MIN_BYTES)
        r = pl_error_set(reterr, PL_EBUDGET, "'%s' is too small a budget: give at least %s", text,
                         PL_SIZE(PL_BUDGET_MIN_BYTES));
    return r;
}

static int refuse_option(int argc, char **argv, int code, const struct option *longs,
                         pl_error *reterr)
{
    const char *word = pl_refused_word(argc, argv);
    if (code == ':')
        return pl_error_set(reterr, PL_EUSAGE, "jupyter: '%s' needs a value", word);
    return pl_unknown_option("jupyter", word, longs, reterr);
}

static int read_words(int argc, char **argv, pl_jupyter_options *options, pl_error *reterr)
{
    static const struct option longs[] = {
        {"kernel", required_argument, NULL, 'k'}, {"all", no_argument, NULL, 'a'},
        {"budget", required_argument, NULL, 'b'}, {"user", no_argument, NULL, 'u'},
        {"prefix", required_argument, NULL, 'p'}, {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},         {0},
    };
    int code, r = 0;
    opterr = 0;
    optind = 0; /* glibc: start afresh, and find the verb between options */
    while (r == 0 && (code = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
        switch (code) {
        case 'k':
            options->kernel = optarg;
            break;
        case 'b':
            options->budget = optarg;
            r = check_budget(optarg, reterr);
            break;
        case 'p':
            options->prefix = optarg;
            break;
        case 'a':
            options->all = true;
            break;
        case 'u':
            options->user = true;
            break;
        case 'j':
            options->json = true;
            break;
        case 'h':
            options->help = true;
            break;
        default:
            r = refuse_option(argc, argv, code, longs, reterr);
        }
    }
    options->verb = optind < argc ? argv[optind] : NULL;
    if (r == 0 && argc - optind > 1)
        r = pl_error_set(reterr, PL_EUSAGE, "jupyter %s: unexpected argument '%s'", options->verb,
                         argv[optind + 1]);
    return r;
}

/* Refuses options that the verb would ignore, and two that exclude each other. */
static int check_options(const pl_jupyter_options *options, pl_error *reterr)
{
    bool list = strcmp(options->verb, "list") == 0, install = strcmp(options->verb, "install") == 0;
    const char *stray = NULL;
    if (!list && options->json)
        stray = "--json";
    if (!install && options->budget != NULL)
        stray = "--budget";
    if (list && (options->user || options->prefix != NULL))
        stray = options->user ? "--user" : "--prefix";
    if (list && (options->all || options->kernel != NULL))
        stray = options->all ? "--all" : "--kernel";
    if (stray != NULL)
        return pl_error_set(reterr, PL_EUSAGE, "jupyter %s: does not take '%s'", options->verb,
                            stray);
    if (options->all && options->kernel != NULL)
        return pl_error_set(reterr, PL_EUSAGE, "jupyter %s: give --kernel or --all, not both",
                            options->verb);
    if (options->user && options->prefix != NULL)
        return pl_error_set(reterr, PL_EUSAGE, "jupyter %s: give --user or --prefix, not both",
                            options->verb);
    return 0;
}

static int check_verb(const char *verb, pl_error *reterr)
{
    static const char *const verbs[] = {"install", "list", "uninstall"};
    if (verb == NULL)
        return pl_error_set(reterr, PL_EUSAGE, "jupyter: give install, list or uninstall");
    for (size_t i = 0; i < PL_COUNT_OF(verbs); i++)
        if (strcmp(verb, verbs[i]) == 0)
            return 0;
    return pl_error_set(reterr, PL_EUSAGE,
                        "jupyter: unknown word '%s'; give install, list or uninstall", verb);
}

int pl_jupyter_options_read(int argc, char **argv, pl_jupyter_options *ret_options,
                            pl_error *reterr)
{
    pl_jupyter_options options = {0};
    int r = read_words(argc, argv, &options, reterr);
    if (r == 0 && !options.help)
        r = check_verb(options.verb, reterr);
    if (r == 0 && !options.help)
        r = check_options(&options, reterr);
    if (r == 0)
        *ret_options = options;
    return r;
}
