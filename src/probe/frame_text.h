/* SPDX-License-Identifier: Apache-2.0 */
/* A line of Python code in the few words that a sentence has room for. The one place that writes
 * them, for the text of a MemoryError (guard/) and for reports (report/), so that both name a line
 * alike. Pure; never allocates. */
#ifndef PL_PROBE_FRAME_TEXT_H
#define PL_PROBE_FRAME_TEXT_H

#include "base/base.h"

/* How the import system's own frames are written: they hold the code of what was imported. */
#define PL_IMPORTED_MODULES "imported modules"

/* Writes "train.py:4 in load()"; "In [3] line 4 in load()" when the line is one of the notebook
 * cell number `cell` (0: it is not); PL_IMPORTED_MODULES for the import system; the file alone
 * when `line` is PL_LINE_OF_FILE. The caller has shortened `file` as it suits its reader. Cuts what
 * does not fit, and returns the length. */
size_t pl_frame_text(const char *file, uint64_t line, const char *function, uint32_t cell,
                     char *text, size_t size);

#endif
