/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a notebook's run, for whoever names a place in one.
 *   source   what a cell says; it is kept in the record's cells.jsonl when the cell is first run
 *   file     what tracebacks call a source: "/tmp/ipykernel_4121/123456.py"
 *   places   what is needed to say where a frame is: the working directory, and the cells
 * cells.jsonl is written by the kernel, a line for each run of a cell, and is not trusted: a line
 * that is torn or makes no sense is skipped, and of a file over 32 MiB the first and the last half
 * of that are read: sources stand where they first appear, the numbers that count are the last. */
#ifndef PL_REPORT_CELL_SOURCES_H
#define PL_REPORT_CELL_SOURCES_H

#include "base/base.h"
#include "ledger/layout.h"

enum { PL_CELLS_TEXT_BYTES = 201, PL_CELLS_TITLE_BYTES = 81 };

typedef struct pl_cell_sources pl_cell_sources;

typedef struct pl_place_context {
    const char *directory;        /* of the command */
    const pl_cell_sources *cells; /* NULL: none are known */
} pl_place_context;

/* What the record and the ledger know of cells. No file at all is no error; 0 or -ENOMEM. The
 * ledger must outlive *ret_cells. */
PL_MUST_CHECK int pl_cell_sources_load(const struct pl_ledger *ledger, const char *record_directory,
                                       pl_cell_sources **ret_cells);
void pl_cell_sources_free(pl_cell_sources *cells); /* NULL is allowed */

/* The number of the cell whose source, or one of whose earlier sources, tracebacks call `file`; 0
 * when it is no cell's. `cells` may be NULL. */
uint32_t pl_cell_sources_number(const pl_cell_sources *cells, const char *file);

/* A line of that source, trimmed; "" when it is not known. */
void pl_cell_sources_line(const pl_cell_sources *cells, const char *file, uint64_t line,
                          char text[PL_CELLS_TEXT_BYTES]);

/* The first line of the source that the cell `id` ran last which is neither blank nor a comment. */
void pl_cell_sources_title(const pl_cell_sources *cells, const char *id,
                           char text[PL_CELLS_TITLE_BYTES]);

#endif
