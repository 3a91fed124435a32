/* SPDX-License-Identifier: Apache-2.0 */
/* The requested budget: by --budget or, without that, by PLIMSOLL_BUDGET. */
#ifndef PL_CLI_WANTED_BUDGET_H
#define PL_CLI_WANTED_BUDGET_H

#include "base/base.h"
#include "plimsoll/budget.h"

#define PL_BUDGET_VARIABLE "PLIMSOLL_BUDGET"

/* pl_budget_discover(), with the variable's value if there is no --budget. */
PL_MUST_CHECK int pl_wanted_budget(const pl_budget_options *options, pl_budget *ret_budget,
                                   pl_error *reterr);

#endif
