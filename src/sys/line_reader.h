/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file of any length line by line through one fixed buffer. A line that does not fit is
 * skipped, not cut: half a line would be misunderstood. */
#ifndef PL_SYS_LINE_READER_H
#define PL_SYS_LINE_READER_H

#include "base/base.h"

/* The line of a cgroup mount has about 100 bytes. Those of overlays, whose options may fill a page,
 * can be longer than this; they are not needed. */
enum { PL_LINE_READER_BYTES = 4096 };

typedef struct pl_line_reader {
    int fd;
    size_t start, end; /* of the bytes read and not yet returned */
    bool passing_over;
    char buffer[PL_LINE_READER_BYTES];
} pl_line_reader;

PL_MUST_CHECK int pl_line_reader_init(pl_line_reader *lines, const char *path);

/* Returns 1 and the next line, without its newline, which the caller may change until the next
 * call; 0 at the end; or -errno. */
PL_MUST_CHECK int pl_line_reader_next(pl_line_reader *lines, char **ret_line);

void pl_line_reader_done(pl_line_reader *lines);

#endif
