/* SPDX-License-Identifier: Apache-2.0 */
/* See say.h. Does not allocate, because it may report that memory ran out. */
#include "cli/say.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "report/printer.h"

/* two paths and a sentence; longer messages are cut */
enum { SAID_BYTES = 3 * PATH_MAX };

static void say(FILE *out, const char *format, va_list args)
{
    char text[SAID_BYTES];
    const pl_printer printer = {.out = out};
    size_t n = strlen(format);
    bool ends_line = n > 0 && format[n - 1] == '\n';
    if (vsnprintf(text, sizeof text, format, args) < 0)
        return;
    n = strlen(text);
    if (ends_line && n > 0 && text[n - 1] == '\n')
        text[n - 1] = '\0';
    pl_print_clean(&printer, text);
    if (ends_line)
        putc('\n', out);
}

void pl_say_error(const char *format, ...)
{
    va_list args;
    fputs("plimsoll: ", stderr);
    va_start(args, format);
    say(stderr, format, args);
    va_end(args);
    putc('\n', stderr);
}

void pl_say_to(FILE *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(out, format, args);
    va_end(args);
}
