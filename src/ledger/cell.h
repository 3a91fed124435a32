/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a notebook in the ledger.
 *   cell      a piece of the notebook, named by its id however often it is run or edited
 *   number    the N in In [N]; changes at each run
 *   held      bytes that were allocated while the cell ran, in any process, and are not freed yet
 *   growing   a cell that held more after each of its last runs than after the run before
 *
 * A site belongs to the cell that ran when it was first seen, so a cell holds the sum over its
 * sites. Threads that outlive a cell are counted with the cell that runs when they allocate.
 *
 * One process, the kernel, begins and ends cells, in one thread; any process may read meanwhile.
 * When the table is full, the cell that was run longest ago is dropped, and its bytes then belong
 * to no cell. Never allocates, never waits. */
#ifndef PL_LEDGER_CELL_H
#define PL_LEDGER_CELL_H

#include "ledger/ledger.h"

/* The result of one run of a cell. */
typedef struct pl_cell_run {
    uint32_t number;
    uint32_t n_runs;
    uint32_t n_growing;
    uint32_t spare;
    uint64_t before_bytes; /* charged when it began, when it ended, and at most in between */
    uint64_t after_bytes;
    uint64_t peak_bytes;
    uint64_t held_bytes;  /* by the cell, now */
    int64_t growth_bytes; /* of that, since the end of the run before; all of it for the first */
} pl_cell_run;

/* A run after which a cell holds at least this much more counts as growth: samples are 512 KiB
 * apart, so less could be chance. */
#define PL_CELL_GROWTH_BYTES (UINT64_C(2) << 20)

/* Begins the cell `id`, as number `number`. A cell that did not end is ended first. -EBUSY when
 * another process has begun cells in this ledger. */
PL_MUST_CHECK int pl_cell_begin(pl_ledger *ledger, const char *id, uint32_t number);

/* Returns the part of an id that the ledger keeps: the end of a long one, in whole characters. VS
 * Code's ids begin with the address of the notebook, and the cell comes last. */
const char *pl_cell_kept_id(const char *id);

/* Notes that tracebacks use the name `file` for the source of the running cell, or a piece of
 * it. */
void pl_cell_set_file(pl_ledger *ledger, const char *file);

/* Ends the running cell. -ENOENT when none runs. */
PL_MUST_CHECK int pl_cell_end(pl_ledger *ledger, pl_cell_run *ret_run);

/* Returns the number of the cell whose source tracebacks call `file`; 0 when there is no such
 * cell. */
uint32_t pl_cell_number_of(const pl_ledger *ledger, const char *file);

/* Returns the bytes that the cell at `place` in the ledger holds now. */
uint64_t pl_cell_held_bytes(const pl_ledger *ledger, uint32_t place);

#endif
