/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll explain [RUN] [--json]: what happened to a run, from its record alone. */
#include <stdio.h>

#include "cli/answer.h"
#include "cli/commands.h"
#include "report/report.h"
#include "supervise/run_record.h"

int pl_cmd_explain(int argc, char **argv)
{
    pl_answer_options options;
    if (!pl_answer_parse(argc, argv, true, &options))
        return PL_EXIT_FAILURE;

    pl_error error = {0};
    pl_run_record record;
    json_t *report = NULL;
    int r = pl_run_record_open(options.run != NULL ? options.run : "last", &record, &error);
    if (r == 0)
        r = pl_report_load(&record, &report, &error);
    if (r == 0 && options.json) {
        r = pl_report_print(report, stdout, &error);
    } else if (r == 0) {
        unsigned color = pl_report_wants_color(stdout) ? PL_REPORT_COLOR : 0;
        pl_report_text(report, stdout, PL_REPORT_FULL | color);
    }
    json_decref(report);
    return pl_answer_end(r, &error);
}
