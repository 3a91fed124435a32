/* SPDX-License-Identifier: Apache-2.0 */
/* Places in programs, in the few words that a sentence has room for. */
#ifndef PL_REPORT_PLACE_H
#define PL_REPORT_PLACE_H

#include "report/verdict.h"
#include "supervise/inspect.h"

/* "train.py:12 in load()": without the working directory, or what leads to an installed package. */
void pl_place_python(const pl_python_frame *frame, const char *directory,
                     char place[PL_FACT_PLACE_BYTES]);

/* "libfoo.so parse_file", or "libfoo.so+0x1234". */
void pl_place_native(const pl_native_frame *frame, char place[PL_FACT_PLACE_BYTES]);

/* The frame that tells most: the innermost of the user's own code, not of Python's library or an
 * installed package; else the innermost. -1 when there is none. */
int pl_place_pick_python(const pl_python_frame *frames, int n);

/* The innermost that is neither the C library's nor the guard's; else the innermost. */
int pl_place_pick_native(const pl_native_frame *frames, int n);

/* What follows the last '/'. */
const char *pl_place_file_name(const char *path);

#endif
