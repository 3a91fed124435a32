/* SPDX-License-Identifier: Apache-2.0 */
/* The internal parts of the ledger: events, samples, sites and modules, for the guard, the
 * supervisor and the report. The public calls are in plimsoll/ledger.h, the layout in layout.h. The
 * same rule holds: any thread, any process, no allocation, no lock, no wait. */
#ifndef PL_LEDGER_LEDGER_H
#define PL_LEDGER_LEDGER_H

#include <sys/types.h>

#include "base/base.h"
#include "ledger/layout.h"
#include "plimsoll/ledger.h"

/* The environment variable that names the ledger of the run a process is in. */
#define PL_LEDGER_VARIABLE "PLIMSOLL_LEDGER"

/* Makes a ledger without a file, shared with the children that this process will fork: for a
 * program that keeps its own line outside any run. Only the bytes that are touched take memory. */
PL_MUST_CHECK int pl_ledger_new_private(const pl_ledger_params *params, pl_ledger **ret_ledger);

/* Call this when the run has ended: returns the disk space of unused slots to the system, except
 * for some, for processes that may still join. */
void pl_ledger_shrink(pl_ledger *ledger);

/* Returns how many slots were ever used: the first ones. */
int pl_ledger_n_slots(const pl_ledger *ledger);

/* Works as pl_ledger_reclaim(), but only for the slots that `may` accepts. */
int pl_ledger_reclaim_if(pl_ledger *ledger, bool (*may)(const void *context, int index),
                         const void *context);

/* Sets the bytes that process `pid`, whose slot is `other`, uses beyond its claims. `actor` is the
 * caller's own slot. -ESRCH when the slot is no longer its own, -EBUSY while the slot is being
 * given back. */
PL_MUST_CHECK int pl_ledger_measure_other(pl_ledger *ledger, pl_owner actor, pl_owner other,
                                          pid_t pid, uint64_t bytes);

/* The headroom: the bytes that a refusable claim could still get. 0 at and over the line. */
static inline uint64_t pl_ledger_headroom_bytes(const pl_ledger *ledger)
{
    return pl_sub_sat_u64(atomic_load_explicit(&ledger->sum.limit_bytes, memory_order_relaxed),
                          atomic_load_explicit(&ledger->sum.charged_bytes, memory_order_relaxed));
}

/* The line is the less of two: the user's wish, set by pl_ledger_set_limit_bytes(), and the
 * bytes that the system allows now, which only the supervisor sets; UINT64_MAX: the system sets
 * no limit. */
uint64_t pl_ledger_wanted_bytes(const pl_ledger *ledger);
void pl_ledger_set_system_bytes(pl_ledger *ledger, uint64_t system_bytes);

/* Raises *peak to `value` if that is more. */
static inline void pl_peak_raise(pl_atomic_u64 *peak, uint64_t value)
{
    uint64_t seen = atomic_load_explicit(peak, memory_order_relaxed);
    while (value > seen && !atomic_compare_exchange_weak_explicit(
                               peak, &seen, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* Puts an event into the ring, and fills in its time, charged, limit and cell, also in the caller's
 * copy. */
void pl_ledger_event(pl_ledger *ledger, pl_event *event);

/* Copies event number `number` (counted from 0); false when it was overwritten or is unfinished. */
bool pl_ledger_event_read(const pl_ledger *ledger, uint64_t number, pl_event *ret_event);

/* Adds a sample to the timeline. One writer: the supervisor. */
void pl_ledger_sample(pl_ledger *ledger, const pl_memory_sample *sample);

/* Finds the site with this key in this process, or adds a new one for the running cell, which the
 * caller then describes (`*ret_is_new`). The key includes the cell as well as the place. NULL when
 * the table is full around the key: the bytes then stay unattributed. */
pl_site *pl_ledger_site(pl_ledger *ledger, uint64_t key, pid_t pid, bool *ret_is_new);

/* Returns the cell that a site belongs to: 1 + its place in cells[], or 0. */
static inline uint32_t pl_site_cell(const pl_ledger *ledger, const pl_site *site)
{
    return atomic_load_explicit(&ledger->site_cells[site - ledger->sites], memory_order_relaxed);
}

/* Adds `bytes` and `n_blocks` (negative to subtract) to the bytes and blocks that a site holds:
 * claimed, or unclaimed, where they are an estimate. */
void pl_site_add(pl_site *site, int64_t bytes, int64_t n_blocks);
void pl_site_add_unclaimed(pl_site *site, int64_t bytes, int64_t n_blocks);

/* The unclaimed memory of a process: the sum that its sites estimate, and the bytes measured.
 * Zero before the first call of pl_site_held_bytes(), which keeps it for the sites of the same
 * process. */
typedef struct pl_unclaimed {
    uint32_t pid;
    uint64_t estimated_bytes;
    uint64_t measured_bytes;
} pl_unclaimed;

/* Returns the bytes that a site holds, corrected for display: samples overestimate by chance, and
 * untouched blocks count memory that is not there. When the estimates of a process add up to more
 * than was measured, each is scaled down by the same share: sites never hold more than their
 * process is charged. */
uint64_t pl_site_held_bytes(const pl_ledger *ledger, const pl_site *site, pl_unclaimed *unclaimed);

/* Remembers the displayed bytes of each site, as of the run's peak; or as of its last refusal. */
void pl_ledger_mark_peak(pl_ledger *ledger);
void pl_ledger_mark_refusal(pl_ledger *ledger);

/* Forgets the sites of a dead process, which hold nothing. Sites that had a part in the run's peak
 * or last refusal stay, for the report, until there is another one or their place is needed. */
void pl_ledger_forget_sites(pl_ledger *ledger, pid_t pid);

/* Returns the index of a module's path, which is added to the table if it is new; PL_MODULES when
 * the table is full. */
uint32_t pl_ledger_module(pl_ledger *ledger, const char *path);

#endif
