/* SPDX-License-Identifier: Apache-2.0 */
/* A report in a few lines: what `plimsoll run` prints at the end, and what the next kernel of a
 * notebook shows. */
#ifndef PL_REPORT_BRIEF_H
#define PL_REPORT_BRIEF_H

#include <jansson.h>

#include "base/base.h"

/* Makes the lines of a document that is otherwise complete: an array of {label, text}. NULL when a
 * run just finished: there is nothing to say. 0 or -ENOMEM. */
PL_MUST_CHECK int pl_brief_build(const json_t *report, json_t **ret_brief);

enum { PL_BRIEF_CELL_BYTES = 320 };

/* "In [3] line 2: ctypes.string_at(0), running for 40 s", of the report's "notebook"; "In [3],
 * which begins: import os" when no stack tells the line; "" when no cell ran. */
void pl_brief_cell(const json_t *notebook, char text[PL_BRIEF_CELL_BYTES]);

#endif
