/* SPDX-License-Identifier: Apache-2.0 */
/* Describes places in programs in the few words that a sentence has room for. */
#ifndef PL_REPORT_CODE_PLACE_H
#define PL_REPORT_CODE_PLACE_H

#include "report/cell_sources.h"
#include "report/verdict.h"
#include "supervise/inspect.h"

/* Writes "train.py:12 in load()": without the working directory, or the path of an installed
 * package. "In [3] line 4 in load()" in a notebook's cell; see probe/frame_text.h. */
void pl_code_place_python(const pl_python_frame *frame, const pl_place_context *places,
                          char place[PL_FACT_PLACE_BYTES]);

/* Writes "file.c:12 in parse_file() of libfoo.so" where there is debug information, without the
 * module where that is a program; else "libfoo.so parse_file" or "libfoo.so+0x1234". */
void pl_code_place_native(const pl_native_frame *frame, char place[PL_FACT_PLACE_BYTES]);

/* Picks the most useful frame: the innermost in the user's own code, not of Python's library or an
 * installed package; else the innermost. -1 when there are no frames. */
int pl_code_place_pick_python(const pl_python_frame *frames, int n);

/* Does this module fault only on behalf of its caller (libc), or have no name? */
bool pl_code_place_is_plumbing(const char *module);

/* Is it Python itself, or an extension of its standard library? */
bool pl_code_place_is_interpreter(const char *module);

/* Picks the innermost frame that is neither the C library's nor the guard's; else the innermost. */
int pl_code_place_pick_native(const pl_native_frame *frames, int n);

/* Returns the part of a path after its last '/'. */
const char *pl_code_place_file_name(const char *path);

#endif
