/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `plimsoll check`: findings as they come, a progress bar, a summary. Paths and reasons
 * can come from files of others, so control characters are replaced. */
#ifndef PL_CLI_CHECK_PRINT_H
#define PL_CLI_CHECK_PRINT_H

#include <jansson.h>

#include "report/json.h"
#include "report/printer.h"
#include "verify/verify.h"

typedef enum pl_check_form { PL_CHECK_TEXT, PL_CHECK_JSON, PL_CHECK_JSONL } pl_check_form;

typedef struct pl_check_printer {
    pl_check_form form;
    pl_printer text;
    bool bar; /* stderr is a terminal */
    bool bar_is_shown;
    uint64_t begin_ns;
    uint64_t n_notes_shown;
    pl_json json;
    json_t *findings; /* of PL_CHECK_JSON */
} pl_check_printer;

void pl_check_printer_init(pl_check_printer *printer, pl_check_form form);
void pl_check_printer_done(pl_check_printer *printer);

/* `moved_to` is "" unless the file was moved; `stays` is the reason if it could not be, else "". */
void pl_check_print(pl_check_printer *printer, const pl_verify_told *told, const char *moved_to,
                    const char *stays);

void pl_check_print_progress(pl_check_printer *printer, const pl_verify_summary *so_far);

/* Clears the bar and prints the summary. -ENOMEM. */
PL_MUST_CHECK int pl_check_print_summary(pl_check_printer *printer,
                                         const pl_verify_summary *summary, uint64_t n_moved,
                                         pl_error *reterr);

/* The memory that reading in batches would take. */
typedef struct pl_check_plan {
    uint64_t batch, prefetch; /* elements; batches ready ahead */
    uint64_t line_bytes;      /* available on this machine now */
} pl_check_plan;

/* Returns whether the plan fits in `line_bytes`. */
bool pl_check_plan_fits(const pl_verify_summary *summary, const pl_check_plan *plan);

PL_MUST_CHECK int pl_check_print_plan(const pl_check_printer *printer,
                                      const pl_verify_summary *summary, const pl_check_plan *plan,
                                      pl_error *reterr);

#endif
