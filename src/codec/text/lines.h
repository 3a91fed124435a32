/* SPDX-License-Identifier: Apache-2.0 */
/* Finds lines of text in a stream that the caller shows in windows.
 *   line   bytes up to a line feed; the line feed, and one carriage return before it, do not belong
 *          to the line; bytes after the last line feed are a line too
 *   taken  the line's bytes including its end
 *
 * A carriage return elsewhere is an ordinary byte, and so is NUL. (TensorFlow drops all carriage
 * returns, even from the middle of a line.) Keeps no state between calls: a caller without a whole
 * line in its window calls again with the same bytes and more after them.
 *
 * Pure; borrows the bytes; safe from any thread. */
#ifndef PL_CODEC_TEXT_LINES_H
#define PL_CODEC_TEXT_LINES_H

#include <string.h>

#include "base/base.h"

/* A place in a text. */
typedef struct pl_text_place {
    uint64_t offset; /* of its first byte */
    uint64_t line;   /* from 1 */
} pl_text_place;

typedef struct pl_line {
    size_t n;     /* bytes in the line */
    size_t taken; /* start of the next line: n, n + 1 or n + 2 */
} pl_line;

/* Finds the line that begins at `bytes`. False: `n` bytes do not contain its end, and at least n +
 * 1 are needed; or, with `is_last` (nothing follows them), there is no line. */
static inline bool pl_line_next(const char *bytes, size_t n, bool is_last, pl_line *ret_line)
{
    if (n == 0)
        return false;
    const char *feed = memchr(bytes, '\n', n);
    if (!feed && !is_last)
        return false;
    size_t length = feed ? (size_t)(feed - bytes) : n;
    ret_line->taken = length + (feed != NULL);
    ret_line->n = length - (length > 0 && bytes[length - 1] == '\r');
    return true;
}

#endif
