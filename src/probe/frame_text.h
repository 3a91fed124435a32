/* SPDX-License-Identifier: Apache-2.0 */
/* Formats a line of Python code in the few words that a sentence has room for. Used both for the
 * text of a MemoryError (guard/) and for reports (report/), so that they name a line alike. Pure;
 * never allocates. */
#ifndef PL_PROBE_FRAME_TEXT_H
#define PL_PROBE_FRAME_TEXT_H

#include "base/base.h"

/* Stands for the import system's own frames: they hold the code of imported modules. */
#define PL_IMPORTED_MODULES "imported modules"

/* Writes "train.py:4 in load()"; "In [3] line 4 in load()" when the line belongs to the notebook
 * cell number `cell` (0: to none); PL_IMPORTED_MODULES for the import system; only the file when
 * `line` is PL_LINE_OF_FILE. The caller shortens `file` first. Cuts text that does not fit, and
 * returns the length. */
size_t pl_frame_text(const char *file, uint64_t line, const char *function, uint32_t cell,
                     char *text, size_t size);

#endif
