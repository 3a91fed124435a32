/* SPDX-License-Identifier: Apache-2.0 */
/* See wanted_budget.h. */
#include "cli/wanted_budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Messages and output name the variable: it may have been set long ago, elsewhere. */
static int discover_by_variable(const pl_budget_options *options, const char *text,
                                pl_budget *ret_budget, pl_error *reterr)
{
    pl_error error = {0};
    pl_budget_options wanted = *options;
    wanted.request_text = text;
    int r = pl_budget_discover(&wanted, ret_budget, &error);
    if (r < 0)
        return pl_error_set(reterr, r, "with " PL_BUDGET_VARIABLE "=%.60s: %s", text,
                            error.message);
    pl_budget_source *source = &ret_budget->sources[ret_budget->n_sources - 1];
    snprintf(source->detail, sizeof source->detail, "environment: " PL_BUDGET_VARIABLE "=%.60s",
             text);
    return 0;
}

int pl_wanted_budget(const pl_budget_options *options, pl_budget *ret_budget, pl_error *reterr)
{
    const char *text = getenv(PL_BUDGET_VARIABLE);
    if (options->request_text || !text || !*text)
        return pl_budget_discover(options, ret_budget, reterr);
    return discover_by_variable(options, text, ret_budget, reterr);
}
