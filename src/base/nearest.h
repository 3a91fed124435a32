/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the known word that a misspelt one probably means. Pure; never allocates. */
#ifndef PL_BASE_NEAREST_H
#define PL_BASE_NEAREST_H

#include "base/base.h"

typedef struct pl_nearest {
    const char *word;
    size_t n; /* of the word, in bytes; later bytes are ignored */
    const char *best;
    unsigned distance; /* of best */
} pl_nearest;

/* Looks for `word`, up to its end or to the first character that is in `ends`. */
pl_nearest pl_nearest_begin(const char *word, const char *ends);

/* Tries one more known word, which must live as long as the search. */
void pl_nearest_try(pl_nearest *nearest, const char *known);

enum { PL_NEAREST_TEXT_BYTES = 96 };

/* Writes ": did you mean 'explain'?", or "" when no known word is near: more than two letters, or a
 * third of them, would have to change. Returns `text`. */
const char *pl_nearest_text(const pl_nearest *nearest, char text[PL_NEAREST_TEXT_BYTES]);

#endif
