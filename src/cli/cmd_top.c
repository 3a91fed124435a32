/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll top [RUN] [--json]: prints the state of a run at this moment. Without RUN it is the run
 * that we are in, or the newest one that is still running. */
#include <stdio.h>

#include "cli/answer.h"
#include "cli/commands.h"
#include "report/report.h"
#include "supervise/run_record.h"

int pl_cmd_top(int argc, char **argv)
{
    pl_answer_options options;
    if (!pl_answer_parse(argc, argv, true, &options))
        return PL_EXIT_FAILURE;

    pl_error error = {0};
    pl_run_record record;
    json_t *top = NULL;
    int r = options.run != NULL ? pl_run_record_open(options.run, &record, &error)
                                : pl_report_top_find(&record, &error);
    if (r == 0)
        r = pl_report_top(&record, &top, &error);
    if (r == 0 && options.json)
        r = pl_report_print(top, stdout, &error);
    else if (r == 0)
        pl_report_top_text(top, stdout, pl_report_wants_color(stdout) ? PL_REPORT_COLOR : 0);
    json_decref(top);
    return pl_answer_end(r, &error);
}
