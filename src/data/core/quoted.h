/* SPDX-License-Identifier: Apache-2.0 */
/* Writes users' texts, such as names, paths and messages, safely. Pure. */
#ifndef PL_DATA_CORE_QUOTED_H
#define PL_DATA_CORE_QUOTED_H

#include <stdio.h>

/* Writes a JSON string, ASCII only. A byte that is not valid UTF-8 becomes the lone surrogate that
 * Python's file names use for it (0x80 is \udc80), so that os.fsencode() restores the path. */
void pl_quoted_json(const char *text, FILE *to);

#endif
