/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll top [RUN] [--json]: how a run stands at this moment. */
#include <getopt.h>
#include <stdio.h>

#include "cli/commands.h"
#include "report/report.h"
#include "supervise/record.h"

typedef struct options {
    const char *run; /* NULL: the one that we are in, or the newest that runs */
    bool json;
} options;

static int parse(int argc, char **argv, options *ret_options)
{
    static const struct option longs[] = {{"json", no_argument, NULL, 'j'}, {0}};
    *ret_options = (options){0};
    opterr = 0;
    optind = 1;
    int c;
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (c != 'j') {
            fprintf(stderr, "plimsoll: top: unknown option '%s'\n", argv[optind - 1]);
            return PL_EUSAGE;
        }
        ret_options->json = true;
    }
    if (argc - optind > 1) {
        fprintf(stderr, "plimsoll: top: give one run, not %d\n", argc - optind);
        return PL_EUSAGE;
    }
    if (argc > optind)
        ret_options->run = argv[optind];
    return 0;
}

int pl_cmd_top(int argc, char **argv)
{
    options options_;
    if (parse(argc, argv, &options_) < 0)
        return PL_EXIT_FAILURE;

    pl_error error = {0};
    pl_record record;
    json_t *top = NULL;
    int r = options_.run != NULL ? pl_record_open(options_.run, &record, &error)
                                 : pl_report_top_find(&record, &error);
    if (r == 0)
        r = pl_report_top(&record, &top, &error);
    if (r == 0 && options_.json)
        r = pl_report_print(top, stdout, &error);
    else if (r == 0)
        pl_report_top_text(top, stdout, pl_report_wants_color(stdout) ? PL_REPORT_COLOR : 0);
    json_decref(top);
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
