/* SPDX-License-Identifier: Apache-2.0 */
/* Printing parts of a report, shared by the short and the full text. A report may come from a file
 * that anyone wrote: missing fields and wrong types print nothing, and control characters never
 * reach the terminal. */
#ifndef PL_REPORT_PRINTER_H
#define PL_REPORT_PRINTER_H

#include <jansson.h>
#include <stdio.h>

#include "report/verdict_kind.h"

typedef struct pl_printer {
    FILE *out;
    bool color;
    const json_t *report;
    enum pl_verdict_kind verdict; /* of that report */
} pl_printer;

/* Returns a string of the object; "" when it is missing. */
const char *pl_get_text(const json_t *object, const char *key);

/* Returns a number of the object; 0 when it is missing or negative. */
uint64_t pl_get_u64(const json_t *object, const char *key);
double pl_get_real(const json_t *object, const char *key);

/* Prints the text without control characters and without characters that change the direction of
 * writing. */
void pl_print_clean(const pl_printer *printer, const char *text);

/* Prints "plimsoll: refused: ...", coloured by verdict. */
void pl_print_summary(const pl_printer *printer, const char *summary);

/* Prints "7.9 GiB resident of 8.0 GiB (cgroup v2 /a/b)"; the claims first where the line is well
 * below the amount that the system would give. */
void pl_print_peak(const pl_printer *printer);

/* Prints "train.py:12 in load", "In [3] line 4 in load()"; "libfoo.so parse_file (parse.c:40)". */
void pl_print_python_frame(const pl_printer *printer, const json_t *frame);
void pl_print_native_frame(const pl_printer *printer, const json_t *frame);

/* Prints the tables of cells, without a heading; nothing when there are none. */
void pl_print_cells(const pl_printer *printer, const json_t *cells);

void pl_print_full(const pl_printer *printer);

#endif
