/* SPDX-License-Identifier: Apache-2.0 */
/* See nearest.h. The distance is the number of letters to insert, delete, change, or swap with a
 * neighbour. */
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 48, MISTAKES = 2 };

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

/* Row i of the table holds the distance of the first i letters of `a` from each prefix of `b`. */
static unsigned distance_of(const char *a, size_t n_a, const char *b, size_t n_b)
{
    unsigned rows[3][LONGEST + 1];
    for (unsigned j = 0; j <= n_b; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= n_a; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            unsigned change = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = smallest(above[j] + 1, row[j - 1] + 1, change);
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && two_above[j - 2] + 1 < row[j])
                row[j] = two_above[j - 2] + 1;
        }
    }
    return rows[n_a % 3][n_b];
}

pl_nearest pl_nearest_begin(const char *word, const char *ends)
{
    return (pl_nearest){.word = word, .n = strcspn(word, ends)};
}

void pl_nearest_try(pl_nearest *nearest, const char *known)
{
    size_t n = strlen(known);
    if (n > LONGEST || nearest->n > LONGEST)
        return;
    unsigned distance = distance_of(nearest->word, nearest->n, known, n);
    if (!nearest->best || distance < nearest->distance) {
        nearest->best = known;
        nearest->distance = distance;
    }
}

const char *pl_nearest_text(const pl_nearest *nearest, char text[PL_NEAREST_TEXT_BYTES])
{
    text[0] = '\0';
    if (nearest->best && nearest->distance <= MISTAKES &&
        nearest->distance * 3 <= strlen(nearest->best))
        snprintf(text, PL_NEAREST_TEXT_BYTES, ": did you mean '%s'?", nearest->best);
    return text;
}
