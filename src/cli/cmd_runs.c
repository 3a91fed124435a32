/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll runs [--json]: the recorded runs, newest first. */
#include <stdio.h>

#include "cli/answer.h"
#include "cli/commands.h"
#include "report/report.h"

int pl_cmd_runs(int argc, char **argv)
{
    pl_answer_options options;
    if (!pl_answer_parse(argc, argv, false, &options))
        return PL_EXIT_FAILURE;

    pl_error error = {0};
    json_t *runs = NULL;
    int r = pl_report_runs(&runs, &error);
    if (r == 0 && options.json)
        r = pl_report_print(runs, stdout, &error);
    else if (r == 0)
        pl_report_runs_text(runs, stdout);
    json_decref(runs);
    return pl_answer_end(r, &error);
}
