/* SPDX-License-Identifier: Apache-2.0 */
/* `plimsoll budget`: prints how much memory a run would get here, and what limits it. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>

#include "base/base.h"
#include "base/size.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/say.h"
#include "cli/wanted_budget.h"
#include "plimsoll/budget.h"
#include "report/json.h"
#include "report/report.h"

static const char usage[] = "usage: plimsoll budget [--budget SIZE|N%] [--reserve SIZE] [--json]\n";

typedef struct budget_arguments {
    pl_budget_options options;
    bool json;
    bool help;
} budget_arguments;

static int fail(const pl_error *error)
{
    pl_say_error("%s", error->message);
    return PL_EXIT_FAILURE;
}

/* Returns the option that getopt_long rejected. It puts long options into optopt only if they lack
 * a value. */
static int refuse_option(int argc, char **argv, int code, const struct option *longs,
                         pl_error *reterr)
{
    const char *word = pl_refused_word(argc, argv);
    if (code == ':')
        return pl_error_set(reterr, PL_EUSAGE, "budget: '%s' needs a value", word);
    return pl_unknown_option("budget", word, longs, reterr);
}

static int parse_arguments(int argc, char **argv, budget_arguments *arguments, pl_error *reterr)
{
    static const struct option options[] = {
        {"budget", required_argument, NULL, 'b'},
        {"reserve", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    int code, r = 0;
    optind = 0; /* glibc: start afresh, main() may have used getopt too */
    while (r == 0 && (code = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        switch (code) {
        case 'b':
            arguments->options.request_text = optarg;
            break;
        case 'r':
            r = pl_size_parse(optarg, 0, &arguments->options.reserve_bytes, reterr);
            break;
        case 'j':
            arguments->json = true;
            break;
        case 'h':
            arguments->help = true;
            break;
        default:
            r = refuse_option(argc, argv, code, options, reterr);
        }
    }
    if (r == 0 && optind < argc)
        r = pl_error_set(reterr, PL_EUSAGE, "budget: unexpected argument '%s'", argv[optind]);
    return r;
}

static void print_source(const pl_budget *budget, int index)
{
    const pl_budget_source *source = &budget->sources[index];
    const char *mark = index == budget->decisive ? "*" : " ";
    if (source->present)
        pl_say_to(stdout, "%s %-13s %12s %12s  %s\n", mark, source->name, PL_SIZE(source->bytes),
                  PL_SIZE(source->limit_bytes), source->detail);
    else
        pl_say_to(stdout, "%s %-13s %12s %12s  %s\n", mark, source->name, "-", "-", source->detail);
}

static void print_text(const pl_budget *budget)
{
    printf("  %-13s %12s %12s  %s\n", "source", "lets us have", "its limit", "from");
    for (int i = 0; i < budget->n_sources; i++)
        print_source(budget, i);
    printf("\n");
    if (budget->tightest >= 0)
        pl_say_to(stdout, "  %-13s %12s  %s\n", "true limit", PL_SIZE(budget->true_limit_bytes),
                  budget->sources[budget->tightest].name);
    printf("  %-13s %12s\n", "reserve", PL_SIZE(budget->reserve_bytes));
    pl_say_to(stdout, "* %-13s %12s  set by %s%s\n", "line", PL_SIZE(budget->line_bytes),
              budget->sources[budget->decisive].name,
              budget->cut ? "; the request was cut to what the system gives" : "");
}

static json_t *source_to_json(const pl_budget_source *source)
{
    json_t *detail = pl_json_text(source->detail); /* the path of a cgroup may contain any bytes */
    if (!source->present)
        return json_pack("{s:s, s:o, s:b}", "name", source->name, "detail", detail, "present", 0);
    return json_pack("{s:s, s:o, s:b, s:I, s:I}", "name", source->name, "detail", detail, "present",
                     1, "bytes", (json_int_t)source->bytes, "limit_bytes",
                     (json_int_t)source->limit_bytes);
}

/* `decisive` and `tightest` are indices of `sources`; the latter is null when no source could be
 * read. */
static json_t *budget_to_json(const pl_budget *budget)
{
    json_t *sources = json_array();
    for (int i = 0; i < budget->n_sources; i++)
        if (json_array_append_new(sources, source_to_json(&budget->sources[i])) < 0)
            json_decref(PL_TAKE(sources)); /* prints all of the answer or nothing */
    json_t *tightest = budget->tightest < 0 ? json_null() : json_integer(budget->tightest);
    return json_pack("{s:i, s:I, s:I, s:I, s:b, s:i, s:o, s:o}", "schema", 1, "line_bytes",
                     (json_int_t)budget->line_bytes, "reserve_bytes",
                     (json_int_t)budget->reserve_bytes, "true_limit_bytes",
                     (json_int_t)budget->true_limit_bytes, "cut", budget->cut, "decisive",
                     budget->decisive, "tightest", tightest, "sources", sources);
}

static int print_json(const pl_budget *budget, pl_error *reterr)
{
    json_t *root = budget_to_json(budget);
    int r = root ? pl_report_print(root, stdout, reterr)
                 : pl_error_set(reterr, -ENOMEM, "cannot print the answer: out of memory");
    json_decref(root);
    return r;
}

int pl_cmd_budget(int argc, char **argv)
{
    budget_arguments arguments = {0};
    pl_error error = {0};
    if (parse_arguments(argc, argv, &arguments, &error) < 0)
        return fail(&error);
    if (arguments.help) {
        fputs(usage, stdout);
        return 0;
    }

    pl_budget budget;
    if (pl_wanted_budget(&arguments.options, &budget, &error) < 0)
        return fail(&error);
    int r = 0;
    if (arguments.json)
        r = print_json(&budget, &error);
    else
        print_text(&budget);
    if (r < 0)
        return fail(&error);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        pl_error_set(&error, -EIO, "cannot write the answer to standard output");
        return fail(&error);
    }
    return 0;
}
