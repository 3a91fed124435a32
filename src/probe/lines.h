/* SPDX-License-Identifier: Apache-2.0 */
/* Maps an instruction to its line, in the three formats that CPython has used. For the files of
 * probe/ only. Reads the table in pieces, in place: it may be long, and the stack short. */
#ifndef PL_PROBE_LINES_H
#define PL_PROBE_LINES_H

#include "probe/offsets.h"

typedef struct pl_line_table {
    const pl_reader *reader;
    enum pl_python_lines format;
    uint64_t address; /* of its first byte */
    uint64_t n_bytes;
    uint32_t first_line; /* of the function */
} pl_line_table;

/* Returns the line of an instruction (in code units); 0: it has none, or the table is malformed. */
uint32_t pl_line_table_find(const pl_line_table *table, uint64_t instruction);

#endif
