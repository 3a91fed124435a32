/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll explain [RUN] [--json]: what happened to a run, from its record alone. */
#include <getopt.h>
#include <stdio.h>

#include "cli/commands.h"
#include "report/report.h"
#include "supervise/record.h"

typedef struct options {
    const char *run;
    bool json;
} options;

static int parse(int argc, char **argv, options *ret_options)
{
    static const struct option longs[] = {{"json", no_argument, NULL, 'j'}, {0}};
    *ret_options = (options){.run = "last"};
    opterr = 0;
    optind = 1;
    int c;
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (c != 'j') {
            fprintf(stderr, "plimsoll: explain: unknown option '%s'\n", argv[optind - 1]);
            return PL_EUSAGE;
        }
        ret_options->json = true;
    }
    if (argc - optind > 1) {
        fprintf(stderr, "plimsoll: explain: give one run, not %d\n", argc - optind);
        return PL_EUSAGE;
    }
    if (argc > optind)
        ret_options->run = argv[optind];
    return 0;
}

int pl_cmd_explain(int argc, char **argv)
{
    options options_;
    if (parse(argc, argv, &options_) < 0)
        return PL_EXIT_FAILURE;

    pl_error error = {0};
    pl_record record;
    json_t *report = NULL;
    int r = pl_record_open(options_.run, &record, &error);
    if (r == 0)
        r = pl_report_load(&record, &report, &error);
    if (r < 0) {
        fprintf(stderr, "plimsoll: %s\n", error.message);
        return PL_EXIT_FAILURE;
    }

    if (options_.json) {
        r = pl_report_print(report, stdout, &error);
    } else {
        unsigned color = pl_report_wants_color(stdout) ? PL_REPORT_COLOR : 0;
        pl_report_text(report, stdout, PL_REPORT_FULL | color);
    }
    json_decref(report);
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
