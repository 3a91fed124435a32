/* SPDX-License-Identifier: Apache-2.0 */
/* A notebook and its cells, as the report and `plimsoll top` show them: docs/report-format.md. */
#ifndef PL_REPORT_CELL_TABLE_H
#define PL_REPORT_CELL_TABLE_H

#include "report/json.h"
#include "report/ledger_snapshot.h"
#include "report/sites.h"

/* Builds the kernel, the notebook, and the cell that runs, or ran at the end. `stack` is the stack
 * at that moment, innermost frame first, as pl_json_python_stack() makes it; NULL: unknown. */
json_t *pl_cell_table_notebook(pl_json *json, const pl_snapshot *snapshot, const json_t *stack);

/* Builds every cell that the ledger still knows, in order of their numbers. `groups` holds the
 * bytes of each place. */
json_t *pl_cell_table_build(pl_json *json, const pl_snapshot *snapshot,
                            const pl_site_groups *groups);

#endif
