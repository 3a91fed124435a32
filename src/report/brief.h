/* SPDX-License-Identifier: Apache-2.0 */
/* A report in a few lines: `plimsoll run` prints it at the end, and the next kernel of a notebook
 * shows it. */
#ifndef PL_REPORT_BRIEF_H
#define PL_REPORT_BRIEF_H

#include <jansson.h>

#include "report/verdict_kind.h"

/* Adds "news_for" and, unless the run is news for nobody, "brief", an array of {label, text}, to a
 * document that is otherwise complete. 0 or -ENOMEM. */
PL_MUST_CHECK int pl_brief_put(json_t *report, enum pl_verdict_kind verdict);

enum { PL_BRIEF_CELL_BYTES = 320 };

/* Writes "In [3] line 2: ctypes.string_at(0), running for 40 s", from the report's "notebook"; "In
 * [3], which begins: import os" when no stack shows the line; "" when no cell ran. */
void pl_brief_cell(const json_t *notebook, char text[PL_BRIEF_CELL_BYTES]);

#endif
