/* SPDX-License-Identifier: Apache-2.0 */
/* `plimsoll doctor`: prints verdicts on this machine, its Python and its packages. The texts can
 * come from files of others, so control characters are replaced. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/installed.h"
#include "preflight/doctor.h"
#include "report/json.h"
#include "report/printer.h"
#include "report/report.h"
#include "sys/fixed_text.h"

const char pl_doctor_usage[] =
    "usage: plimsoll doctor [OPTION...]\n"
    "\n"
    "  --python PATH        examine this interpreter, or the environment in this folder (default:\n"
    "                       python3 on PATH)\n"
    "  --workers N          number of data-loading processes to expect (default: one per\n"
    "                       processor)\n"
    "  --root DIR           examine the system mounted at DIR\n"
    "  --facts FILE         known facts about builds (default: the installed doctor.csv)\n"
    "  --strict             exit with status 1 if there are warnings\n"
    "  --json               print findings, packages and Python as JSON\n"
    "\n"
    "Each line is ok, warn or fail. The exit status is 2 after a fail, 1 after a warn with\n"
    "--strict, 125 if plimsoll itself failed, else 0. Nothing is imported or changed.\n";

enum { EXIT_WARNED = 1, EXIT_FAILED = 2, MOST_WORKERS = 4096 };

typedef struct doctor_arguments {
    pl_doctor_options options;
    bool strict;
    bool json;
    bool help;
} doctor_arguments;

static int parse_workers(const char *text, unsigned *ret_n, pl_error *reterr)
{
    uint64_t n;
    const char *cursor = text;
    if (!pl_fixed_text_take_u64(&cursor, &n) || *cursor != '\0' || n == 0 || n > MOST_WORKERS)
        return pl_error_set(reterr, PL_EUSAGE, "doctor: '%s' is not a number of workers (1 to %d)",
                            text, MOST_WORKERS);
    *ret_n = (unsigned)n;
    return 0;
}

/* Makes it absolute and removes the last slash: it is put before absolute paths. */
static int parse_root(const char *text, char root[PATH_MAX], pl_error *reterr)
{
    if (realpath(text, root) == NULL)
        return pl_error_set(reterr, -errno, "doctor: cannot read the root '%s': %s", text,
                            strerror(errno));
    if (strcmp(root, "/") == 0)
        root[0] = '\0';
    return 0;
}

static int parse(int argc, char **argv, doctor_arguments *arguments, char root[PATH_MAX],
                 pl_error *reterr)
{
    static const struct option longs[] = {
        {"python", required_argument, NULL, 'p'}, {"workers", required_argument, NULL, 'w'},
        {"root", required_argument, NULL, 'r'},   {"facts", required_argument, NULL, 'f'},
        {"strict", no_argument, NULL, 's'},       {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},         {0},
    };
    pl_doctor_options *options = &arguments->options;
    int c, r = 0;
    opterr = 0;
    optind = 1;
    while (r == 0 && (c = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
        if (c == 'p')
            options->python = optarg;
        else if (c == 'w')
            r = parse_workers(optarg, &options->n_workers, reterr);
        else if (c == 'r')
            r = parse_root(optarg, root, reterr);
        else if (c == 'f')
            options->rules = optarg;
        else if (c == 's')
            arguments->strict = true;
        else if (c == 'j')
            arguments->json = true;
        else if (c == 'h')
            arguments->help = true;
        else
            r = c == ':' ? pl_error_set(reterr, PL_EUSAGE, "doctor: '%s' needs a value",
                                        pl_refused_word(argc, argv))
                         : pl_unknown_option("doctor", pl_refused_word(argc, argv), longs, reterr);
    }
    if (r == 0 && optind < argc)
        r = pl_error_set(reterr, PL_EUSAGE, "doctor: unexpected argument '%s'", argv[optind]);
    return r;
}

/* ---- text ---- */

static void print_finding(const pl_printer *printer, const pl_finding *finding)
{
    static const char *const colors[] = {"\033[32m", "\033[1;33m", "\033[1;31m"};
    printf("%s%-4s%s  %-12s  ", printer->color ? colors[finding->verdict] : "",
           pl_finding_verdict_name(finding->verdict), printer->color ? "\033[0m" : "",
           finding->check);
    pl_print_clean(printer, finding->says);
    if (finding->fix[0] != '\0') {
        printf("\n%20sfix: ", "");
        pl_print_clean(printer, finding->fix);
    }
    putchar('\n');
}

static void print_text(const pl_findings *findings)
{
    const pl_printer printer = {.out = stdout, .color = pl_report_wants_color(stdout)};
    size_t n_warn = pl_findings_count(findings, PL_FINDING_WARN);
    size_t n_fail = pl_findings_count(findings, PL_FINDING_FAIL);
    for (size_t i = 0; i < findings->n; i++)
        print_finding(&printer, &findings->items[i]);
    printf("\n%zu ok, %zu warning%s, %zu failure%s\n", pl_findings_count(findings, PL_FINDING_OK),
           n_warn, n_warn == 1 ? "" : "s", n_fail, n_fail == 1 ? "" : "s");
}

/* ---- JSON ---- */

static json_t *finding_to_json(pl_json *json, const pl_finding *finding)
{
    json_t *object = json_object();
    pl_json_put(json, object, "check", json_string(finding->check));
    pl_json_put(json, object, "verdict", json_string(pl_finding_verdict_name(finding->verdict)));
    pl_json_put(json, object, "says", pl_json_text(finding->says));
    pl_json_put_text(json, object, "fix", finding->fix);
    return object;
}

static json_t *package_to_json(pl_json *json, const pl_package *package)
{
    json_t *object = json_object();
    pl_json_put(json, object, "name", pl_json_text(package->name));
    pl_json_put(json, object, "version", pl_json_text(package->version));
    pl_json_put(json, object, "folder", pl_json_text(package->site));
    pl_json_put(json, object, "wheel", json_boolean(package->wheel));
    pl_json_put(json, object, "hidden", json_boolean(package->hidden));
    pl_json_put_text(json, object, "cuda", package->cuda);
    return object;
}

static json_t *python_to_json(pl_json *json, const pl_doctor_facts *facts)
{
    const pl_interpreter *python = &facts->python;
    json_t *object = json_object(), *folders = json_array();
    if (facts->python_code < 0) {
        json_decref(object);
        json_decref(folders);
        return json_null();
    }
    for (size_t i = 0; i < python->n_sites; i++)
        pl_json_add(json, folders, pl_json_text(python->sites[i]));
    pl_json_put(json, object, "path", pl_json_text(python->path));
    pl_json_put(json, object, "version", pl_json_text(python->version));
    pl_json_put(json, object, "kind", json_string(python->kind));
    pl_json_put(json, object, "prefix", pl_json_text(python->prefix));
    pl_json_put(json, object, "was_run", json_boolean(python->was_run));
    pl_json_put(json, object, "folders", folders);
    return object;
}

static int print_json(const pl_doctor_facts *facts, const pl_findings *findings, pl_error *reterr)
{
    static const char *const counts[] = {"n_ok", "n_warn", "n_fail"};
    pl_json json = {0};
    json_t *root = json_object(), *list = json_array(), *packages = json_array();
    for (size_t i = 0; i < findings->n; i++)
        pl_json_add(&json, list, finding_to_json(&json, &findings->items[i]));
    for (size_t i = 0; i < facts->packages.n; i++)
        pl_json_add(&json, packages, package_to_json(&json, &facts->packages.items[i]));
    pl_json_put(&json, root, "schema", json_integer(1));
    for (int i = PL_FINDING_OK; i <= PL_FINDING_FAIL; i++)
        pl_json_put(&json, root, counts[i], pl_json_u64(pl_findings_count(findings, i)));
    pl_json_put(&json, root, "line_bytes", pl_json_u64(facts->system.memory.budget.line_bytes));
    pl_json_put(&json, root, "findings", list);
    pl_json_put(&json, root, "python", python_to_json(&json, facts));
    pl_json_put(&json, root, "packages", packages);
    int r = json.failed ? pl_error_set(reterr, -ENOMEM, "out of memory for the answer")
                        : pl_report_print(root, stdout, reterr);
    json_decref(root);
    return r;
}

static int examine(const doctor_arguments *arguments, pl_error *reterr)
{
    static pl_doctor_facts facts; /* too large for a stack with a small limit */
    pl_findings findings = {0};
    int r = pl_doctor_gather(&arguments->options, &facts, reterr);
    if (r < 0)
        return r;
    r = pl_doctor_examine(&facts, &findings, reterr);
    if (r == 0 && arguments->json)
        r = print_json(&facts, &findings, reterr);
    else if (r == 0)
        print_text(&findings);
    int status = pl_findings_count(&findings, PL_FINDING_FAIL) > 0 ? EXIT_FAILED
                 : arguments->strict && pl_findings_count(&findings, PL_FINDING_WARN) > 0
                     ? EXIT_WARNED
                     : 0;
    pl_findings_done(&findings);
    pl_doctor_done(&facts);
    return r < 0 ? r : status;
}

int pl_cmd_doctor(int argc, char **argv)
{
    doctor_arguments arguments = {0};
    char root[PATH_MAX] = "", rules[PATH_MAX], program[PATH_MAX] = "", guard[PATH_MAX] = "";
    pl_error no_guard = {0};
    pl_error error = {0};
    int r = parse(argc, argv, &arguments, root, &error);
    if (r == 0 && arguments.help) {
        fputs(pl_doctor_usage, stdout);
        return pl_answer_end(0, NULL);
    }
    arguments.options.root = root;
    if (r == 0 && arguments.options.rules == NULL) {
        r = pl_installed_rules(rules, &error);
        arguments.options.rules = rules;
    }
    if (r == 0 && root[0] == '\0' && pl_installed_program(program) == 0) {
        if (pl_installed_guard(guard, &no_guard) < 0)
            guard[0] = '\0';
        arguments.options.program = program;
        arguments.options.guard = guard;
    }
    int status = r < 0 ? r : examine(&arguments, &error);
    int end = pl_answer_end(status, &error);
    return end != 0 ? end : status;
}
