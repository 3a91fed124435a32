/* SPDX-License-Identifier: Apache-2.0 */
/* The call sites that held the memory, largest first, with names for native frames. */
#ifndef PL_REPORT_SITES_H
#define PL_REPORT_SITES_H

#include "report/json.h"
#include "report/ledger_snapshot.h"

enum { PL_REPORT_SITES = 16 };

/* The moment that the bytes belong to. The sites of one moment never add up to more than was in
 * use. */
enum pl_sites_moment {
    PL_SITES_NOW,
    PL_SITES_AT_REFUSAL, /* the last one */
    PL_SITES_AT_PEAK,    /* a program that ends by an exception has freed most by its end */
    PL_SITES_AT_END,
};

/* Returns the moment that a report describes: now, while the run goes on; the last refusal, if the
 * verdict is about that; else the peak, or the end when no more was held at the peak. */
enum pl_sites_moment pl_sites_moment_of(const pl_snapshot *snapshot, bool about_refusal);

/* Returns "now", "refusal", "peak" or "end", the values of "sites_at". */
const char *pl_sites_moment_name(enum pl_sites_moment moment);

/* Parses the name; PL_SITES_AT_END when it is unknown. */
enum pl_sites_moment pl_sites_moment_parse(const char *name);

uint64_t pl_sites_in_use_bytes(const pl_snapshot *snapshot, enum pl_sites_moment moment);

/* Freeing less than this part of the memory in use would not help. */
enum { PL_SITES_NOTICEABLE = 8 };

/* Makes the array for the report, with the sites of each process separately. *ret_holder is the
 * place that held most, if that is a noticeable part. */
json_t *pl_sites_build(pl_json *json, const pl_snapshot *snapshot, enum pl_sites_moment moment,
                       pl_holder *ret_holder);

/* Returns the number of the cell at `cell` (1 + its place in the ledger), as of its last run; 0:
 * none. */
uint32_t pl_sites_cell_number(const pl_snapshot *snapshot, uint32_t cell);

/* One place, summed over all processes, for the time that one cell ran. */
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

/* 0 or -ENOMEM; to be freed with pl_sites_groups_done(). */
PL_MUST_CHECK int pl_sites_group(const pl_snapshot *snapshot, enum pl_sites_moment moment,
                                 pl_site_groups *ret_groups);
void pl_sites_groups_done(pl_site_groups *groups);

#endif
