/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of text in a stream that is looked at through windows.
 *   line   bytes up to a line feed, which is not of the line, nor is one carriage return before it;
 *          what follows the last line feed is a line if it has any bytes
 *   taken  the line's bytes with its end
 *
 * A carriage return elsewhere is a byte like any other, and so is NUL. (TensorFlow drops every one
 * of them, also from the middle of a line.) No state is kept between calls: whoever has no whole
 * line in the window comes again with the same bytes and more behind them.
 *
 * Pure; borrows the bytes; safe from any thread. */
#ifndef PL_CODEC_TEXT_LINES_H
#define PL_CODEC_TEXT_LINES_H

#include <string.h>

#include "base/base.h"

/* Where something is in a text. */
typedef struct pl_text_place {
    uint64_t offset; /* of its first byte */
    uint64_t line;   /* 1: the first */
} pl_text_place;

typedef struct pl_line {
    size_t n;     /* bytes of the line */
    size_t taken; /* where the next one begins: n, n + 1 or n + 2 */
} pl_line;

/* The line that begins at `bytes`. False: `n` bytes do not have its end, it takes n + 1 of them at
 * least; or, with `is_last` (nothing is behind them), there is no line. */
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
