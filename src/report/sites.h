/* SPDX-License-Identifier: Apache-2.0 */
/* The call sites that held the memory, largest first, with names for native frames. */
#ifndef PL_REPORT_SITES_H
#define PL_REPORT_SITES_H

#include "report/json.h"
#include "report/snapshot.h"

enum { PL_REPORT_SITES = 16 };

/* To free what is less than this part of the peak would not help. */
enum { PL_SITES_NOTICEABLE = 8 };

/* The array for the report, a site of each process by itself. `holder` becomes the place that held
 * most, "" when none held a noticeable part. */
json_t *pl_sites_build(pl_json *json, const pl_snapshot *snapshot,
                       char holder[PL_FACT_PLACE_BYTES]);

/* The number of the cell at `cell` (1 + its place in the ledger), as of its last run; 0: none. */
uint32_t pl_sites_cell_number(const pl_snapshot *snapshot, uint32_t cell);

/* One place, in all processes together, as far as one cell ran. */
typedef struct pl_site_group {
    const pl_site *site; /* one of them */
    uint32_t cell;       /* 1 + the cell's place in the ledger; 0: none */
    uint64_t bytes;
    uint64_t count;
    int64_t growth_bytes; /* over the last run of its cell */
    char place[PL_FACT_PLACE_BYTES];
} pl_site_group;

typedef struct pl_site_groups {
    pl_site_group *groups; /* largest first */
    size_t n;
} pl_site_groups;

/* Which bytes: what the sites hold now, or, as in pl_sites_build(), at the peak if that was more.
 * 0 or -ENOMEM; to be freed with pl_sites_groups_done(). */
enum pl_sites_when { PL_SITES_NOW, PL_SITES_AT_MOST };
PL_MUST_CHECK int pl_sites_group(const pl_snapshot *snapshot, enum pl_sites_when when,
                                 pl_site_groups *ret_groups);
void pl_sites_groups_done(pl_site_groups *groups);

#endif
