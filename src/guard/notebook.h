/* SPDX-License-Identifier: Apache-2.0 */
/* The guard's functions for the code of a notebook kernel in its own process: its only exports
 * besides the interposed functions. The IPython extension finds them with dlsym() and calls them
 * through ctypes, so a kernel needs no compiled module, whichever Python it runs. All are for the
 * kernel's main thread. Outside a run they return -ENOENT and change nothing. */
#ifndef PL_GUARD_NOTEBOOK_H
#define PL_GUARD_NOTEBOOK_H

#include <stddef.h>

#include "ledger/cell.h"

#define PL_EXPORT __attribute__((visibility("default")))

/* Increased whenever a signature or pl_cell_run changes. The extension refuses any other number. */
enum { PL_GUARD_INTERFACE = 1 };

PL_EXPORT int pl_guard_interface(void);

/* See ledger/cell.h. The end of a cell first reads what the process really uses; the beginning uses
 * the last reading, because a look costs some 20 us, and little happens between two cells. */
PL_EXPORT int pl_guard_cell_begin(const char *id, uint32_t number);
PL_EXPORT int pl_guard_cell_file(const char *file);
PL_EXPORT int pl_guard_cell_end(pl_cell_run *ret_run);

/* How many requests were refused, and exceptions raised, in this process so far. */
PL_EXPORT uint64_t pl_guard_n_refusals(void);

/* The sentence of the last refusal in this process: how much was asked for, how much was in use,
 * what holds it, what to do. Returns its length; 0 when nothing was refused yet. */
PL_EXPORT int pl_guard_refusal(char *text, size_t size);

typedef struct pl_guard_memory {
    uint64_t line_bytes;
    uint64_t charged_bytes;
    uint64_t peak_bytes;
    uint64_t reserve_bytes;
    uint64_t true_limit_bytes; /* the system's free memory; 0: unknown */
} pl_guard_memory;

/* Looks, and returns the numbers. */
PL_EXPORT int pl_guard_memory_read(pl_guard_memory *ret_memory);

/* Moves the line to `request`: a size ("2G", "80%" of the true limit). Never above the true limit
 * less the reserve, and never below PL_BUDGET_MIN_BYTES: PL_EBUDGET. PL_EFORMAT if it is not a
 * size. The error goes to the message, up to `size` bytes. */
PL_EXPORT int pl_guard_set_line(const char *request, uint64_t *ret_line_bytes, char *message,
                                size_t size);

/* Moves the line to `more_bytes` above what is in use now, if that is tighter, and returns in
 * *ret_before what it was, for pl_guard_restore_line(). */
PL_EXPORT int pl_guard_tighten_line(uint64_t more_bytes, uint64_t *ret_before);
PL_EXPORT int pl_guard_restore_line(uint64_t before);

#endif
