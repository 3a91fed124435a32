/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll runs [--json]: the recorded runs, newest first. */
#include <getopt.h>
#include <stdio.h>

#include "cli/commands.h"
#include "report/report.h"

static int parse(int argc, char **argv, bool *ret_json)
{
    static const struct option longs[] = {{"json", no_argument, NULL, 'j'}, {0}};
    *ret_json = false;
    opterr = 0;
    optind = 1;
    int c;
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (c != 'j') {
            fprintf(stderr, "plimsoll: runs: unknown option '%s'\n", argv[optind - 1]);
            return PL_EUSAGE;
        }
        *ret_json = true;
    }
    if (optind < argc) {
        fprintf(stderr, "plimsoll: runs: unexpected argument '%s'\n", argv[optind]);
        return PL_EUSAGE;
    }
    return 0;
}

int pl_cmd_runs(int argc, char **argv)
{
    bool json;
    if (parse(argc, argv, &json) < 0)
        return PL_EXIT_FAILURE;

    pl_error error = {0};
    json_t *runs = NULL;
    int r = pl_report_runs(&runs, &error);
    if (r < 0) {
        fprintf(stderr, "plimsoll: %s\n", error.message);
        return PL_EXIT_FAILURE;
    }
    if (json) {
        r = pl_report_print(runs, stdout, &error);
    } else {
        pl_report_runs_text(runs, stdout);
    }
    json_decref(runs);
    if (r < 0) {
        fprintf(stderr, "plimsoll: %s\n", error.message);
        return PL_EXIT_FAILURE;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("plimsoll: cannot write the answer");
        return PL_EXIT_FAILURE;
    }
    return 0;
}
