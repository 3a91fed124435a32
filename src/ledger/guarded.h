/* SPDX-License-Identifier: Apache-2.0 */
/* The guard's services for the runtime in the same process, so that both keep to one line. The
 * runtime finds these functions with dlsym(): the guard may be absent, and neither links the other.
 * Callable from any thread; outside a run they do what the system does.
 *   map    memory that the guard claims, tracks and names a site for, as it does a large block. It
 *          is returned with munmap(), which the guard intercepts
 *   spare  mapped memory that is kept for reuse: claimed, but held by no site
 *   hold   a thread holds a lock that moving tensors to disk needs. Its requests meanwhile neither
 *          wait nor raise an exception */
#ifndef PL_LEDGER_GUARDED_H
#define PL_LEDGER_GUARDED_H

#include <stdbool.h>
#include <stddef.h>

#include "plimsoll/ledger.h"

enum pl_map_kind {
    PL_MAP_IF_ROOM,   /* PL_EBUDGET if the line has no room now; not recorded */
    PL_MAP_OR_REFUSE, /* makes room as for any large request; else a refusal, on record */
    PL_MAP_RESERVE,   /* up to the line and the reserve */
};

/* -ENOMEM if the system has none. */
typedef int pl_guard_map_function(uint64_t bytes, enum pl_map_kind kind, void **ret_data);

/* The whole mapping becomes a spare, or is used again, by the caller's code. */
typedef void pl_guard_spare_function(void *data, bool is_spare);

typedef void pl_guard_hold_function(int more);

/* Returns the process's slot in the ledger; -1: it has none. */
typedef pl_owner pl_guard_owner_function(void);

/* Reads what the process uses and charges it. */
typedef void pl_guard_look_function(void);

/* Writes the sentence for the last refusal: see guard/notebook.h. */
typedef int pl_guard_refusal_function(char *text, size_t size);

#endif
