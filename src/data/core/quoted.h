/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of users within what is written: names, paths, messages. Pure. */
#ifndef PL_DATA_CORE_QUOTED_H
#define PL_DATA_CORE_QUOTED_H

#include <stdio.h>

/* A JSON string, ASCII only. A byte that is not UTF-8 becomes the half of a surrogate pair that
 * Python's file names have for it (0x80 is \udc80), so that os.fsencode() gives the path back. */
void pl_quoted_json(const char *text, FILE *to);

#endif
