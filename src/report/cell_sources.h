/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of a notebook's cells, for naming a place in one.
 *   source   the text of a cell, kept in the record's cells.jsonl when the cell is first run
 *   file     the name that tracebacks use for a source: "/tmp/ipykernel_4121/123456.py"
 *   context  the things needed to name a frame: the working directory, and the cells
 * The kernel writes cells.jsonl, a line for each run of a cell. The file is not trusted: torn or
 * invalid lines are skipped. Only the first and the last 16 MiB of a file over 32 MiB are read: a
 * source stands where it first appears, and the last number of a cell is the one that counts. */
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

/* Loads all cells in the record and the ledger. A missing file is not an error. 0 or -ENOMEM. The
 * ledger must outlive *ret_cells. */
PL_MUST_CHECK int pl_cell_sources_load(const struct pl_ledger *ledger, const char *record_directory,
                                       pl_cell_sources **ret_cells);
void pl_cell_sources_free(pl_cell_sources *cells); /* NULL is allowed */

/* Returns the number of the cell whose source, or one of whose earlier sources, tracebacks call
 * `file`; 0 when there is no such cell. `cells` may be NULL. */
uint32_t pl_cell_sources_number(const pl_cell_sources *cells, const char *file);

/* Writes a line of that source, trimmed; "" when it is not known. */
void pl_cell_sources_line(const pl_cell_sources *cells, const char *file, uint64_t line,
                          char text[PL_CELLS_TEXT_BYTES]);

/* Writes the first line, of the source that the cell `id` ran last, that is neither blank nor a
 * comment. */
void pl_cell_sources_title(const pl_cell_sources *cells, const char *id,
                           char text[PL_CELLS_TITLE_BYTES]);

#endif
