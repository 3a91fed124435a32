/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz_tfrecord.c, fuzz_inflate.c and fuzz_example.c have in common. */
#ifndef TESTS_FUZZ_FUZZ_RECORDS_H
#define TESTS_FUZZ_FUZZ_RECORDS_H

#include "base/base.h"
#include "fuzz.h"

static long n_taken, n_refused; /* 0 of either would make the test worthless */

/* A failure has its code, and a message that a terminal can show. Counts. */
static inline void check_outcome(int r, const pl_error *error)
{
    n_taken += r >= 0;
    n_refused += r < 0;
    if (r < 0)
        check_message(r, error);
}

/* Some bytes changed, moved or cut off. */
static inline size_t damage(uint8_t *bytes, size_t n)
{
    for (long left = random() % 4; left >= 0 && n > 0; left--)
        switch (random() % 4) {
        case 0:
            bytes[(size_t)random() % n] = (uint8_t)random();
            break;
        case 1:
            bytes[(size_t)random() % n] ^= (uint8_t)(1 << random() % 8);
            break;
        case 2: {
            size_t from = (size_t)random() % n, to = (size_t)random() % n;
            size_t room = n - (from > to ? from : to);
            memmove(bytes + to, bytes + from, (size_t)random() % (room + 1));
            break;
        }
        default:
            n = random() % 4 ? n : (size_t)random() % n;
        }
    return n;
}

#endif
