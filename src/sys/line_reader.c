/* SPDX-License-Identifier: Apache-2.0 */
/* See line_reader.h. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sys/file.h"
#include "sys/line_reader.h"

int pl_line_reader_init(pl_line_reader *lines, const char *path)
{
    uint64_t ignored; /* 0 for the files of /proc */
    int fd = pl_file_open_regular(path, &ignored);
    lines->fd = fd < 0 ? -1 : fd;
    lines->start = lines->end = 0;
    lines->passing_over = false;
    return fd < 0 ? fd : 0;
}

void pl_line_reader_done(pl_line_reader *lines)
{
    if (lines->fd >= 0)
        close(lines->fd);
    lines->fd = -1;
}

/* Makes room and reads more. Returns 1 if there is more, 0 at the end, or -errno. */
static int fill(pl_line_reader *lines)
{
    memmove(lines->buffer, lines->buffer + lines->start, lines->end - lines->start);
    lines->end -= lines->start;
    lines->start = 0;
    if (lines->end == sizeof lines->buffer - 1) {
        lines->end = 0;
        lines->passing_over = true;
    }
    ssize_t got;
    do
        got = read(lines->fd, lines->buffer + lines->end, sizeof lines->buffer - 1 - lines->end);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    lines->end += (size_t)got;
    return got > 0;
}

/* Returns the bytes up to `length`, and removes `n_drop` in all. */
static char *take(pl_line_reader *lines, size_t length, size_t n_drop)
{
    char *line = lines->buffer + lines->start;
    line[length] = '\0';
    lines->start += n_drop;
    return line;
}

int pl_line_reader_next(pl_line_reader *lines, char **ret_line)
{
    for (;;) {
        size_t length = lines->end - lines->start;
        char *begin = lines->buffer + lines->start;
        char *newline = memchr(begin, '\n', length);
        if (newline) {
            char *line = take(lines, (size_t)(newline - begin), (size_t)(newline - begin) + 1);
            if (!lines->passing_over) {
                *ret_line = line;
                return 1;
            }
            lines->passing_over = false;
            continue;
        }
        int r = fill(lines);
        if (r > 0)
            continue;
        length = lines->end - lines->start;
        if (r < 0 || length == 0 || lines->passing_over)
            return r;
        *ret_line = take(lines, length, length); /* the last line, with no newline behind it */
        return 1;
    }
}
