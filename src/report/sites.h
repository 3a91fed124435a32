/* SPDX-License-Identifier: Apache-2.0 */
/* The call sites that held the memory, largest first, with names for native frames. */
#ifndef PL_REPORT_SITES_H
#define PL_REPORT_SITES_H

#include "report/json.h"
#include "report/snapshot.h"

enum { PL_REPORT_SITES = 16 };

/* The array for the report. `holder` becomes the place that held most, "" when there is none. */
json_t *pl_sites_build(pl_json *json, const pl_snapshot *snapshot,
                       char holder[PL_FACT_PLACE_BYTES]);

#endif
