/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an excerpt of a file's bytes for a message: at most 60, without terminal control
 * characters. */
#ifndef PL_CODEC_TEXT_EXCERPT_H
#define PL_CODEC_TEXT_EXCERPT_H

#include <string.h>

#include "base/base.h"

enum { PL_EXCERPT_BYTES = 64 };

typedef struct pl_excerpt {
    char text[PL_EXCERPT_BYTES];
} pl_excerpt;

/* Marks a cut with "..."; replaces all but printable ASCII by '?'. */
static inline pl_excerpt pl_excerpt_of(const void *bytes, size_t n)
{
    pl_excerpt some = {{0}};
    const char *from = bytes;
    size_t most = sizeof some.text - 4, kept = n < most ? n : most;
    for (size_t i = 0; i < kept; i++)
        some.text[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    if (kept < n)
        memcpy(some.text + kept, "...", 3);
    return some;
}

#endif
