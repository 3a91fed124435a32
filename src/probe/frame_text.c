/* SPDX-License-Identifier: Apache-2.0 */
/* See frame_text.h. */
#include "probe/frame_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "probe/python.h"

/* Recognises code outside any function. IPython 8 names a cell's code "<cell line: 1>". */
static bool is_top_level(const char *function)
{
    static const char cell[] = "<cell line";
    return function[0] == '\0' || strcmp(function, "<module>") == 0 ||
           strncmp(function, cell, strlen(cell)) == 0;
}

static size_t write_place(const char *file, uint64_t line, uint32_t cell, char *text, size_t size)
{
    int n = cell != 0 ? snprintf(text, size, "In [%" PRIu32 "] line %" PRIu64, cell, line)
            : line == PL_LINE_OF_FILE   ? snprintf(text, size, "%s", file)
            : pl_python_is_import(file) ? snprintf(text, size, PL_IMPORTED_MODULES)
                                        : snprintf(text, size, "%s:%" PRIu64, file, line);
    return pl_min_u64((uint64_t)n, size - 1);
}

size_t pl_frame_text(const char *file, uint64_t line, const char *function, uint32_t cell,
                     char *text, size_t size)
{
    if (size == 0)
        return 0;
    size_t n = write_place(file, line, cell, text, size);
    bool is_code = cell != 0 || (line != PL_LINE_OF_FILE && !pl_python_is_import(file));
    if (!is_code || is_top_level(function))
        return n;
    const char *brackets = function[0] != '<' ? "()" : ""; /* not for "<lambda>", "<listcomp>" */
    int more = snprintf(text + n, size - n, " in %s%s", function, brackets);
    return n + pl_min_u64((uint64_t)more, size - n - 1);
}
