/* SPDX-License-Identifier: Apache-2.0 */
/* The one way for a command to say something with a text from outside in it: a file's name, what a
 * file holds, a word of the command line, the environment. Control characters become blanks, so
 * that no such text moves the cursor, colours, or makes lines of its own. */
#ifndef PL_CLI_SAY_H
#define PL_CLI_SAY_H

#include <stdio.h>

#include "base/base.h"

/* One line on stderr, behind "plimsoll: ". */
void pl_say_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A piece of text; a line's end at the format's end is kept. */
void pl_say_to(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
