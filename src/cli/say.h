/* SPDX-License-Identifier: Apache-2.0 */
/* Prints texts that contain names or contents from outside: files, arguments, the environment.
 * Control characters become blanks, so that no such text can move the cursor, set colours or add
 * lines. */
#ifndef PL_CLI_SAY_H
#define PL_CLI_SAY_H

#include <stdio.h>

#include "base/base.h"

/* Prints one line on stderr, after "plimsoll: ". */
void pl_say_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a piece of text. A newline at the end of the format is kept. */
void pl_say_to(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
