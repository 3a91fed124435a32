/* SPDX-License-Identifier: Apache-2.0 */
/* See utf8.h. ASCII is skipped 16 bytes at a time; other characters are checked one by one, with
 * table 3-7 of the Unicode standard: the second byte's range depends on the first, all later ones
 * are 80..bf. */
#include "codec/text/utf8.h"

#include <string.h>

typedef struct sequence {
    int n;             /* bytes; 0: no sequence begins like this */
    uint8_t low, high; /* of the second byte */
} sequence;

static sequence sequence_of(uint8_t first)
{
    if (first < 0x80)
        return (sequence){1, 0, 0};
    if (first < 0xc2)
        return (sequence){0};
    if (first < 0xe0)
        return (sequence){2, 0x80, 0xbf};
    if (first < 0xf0)
        return (sequence){3, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf};
    if (first < 0xf5)
        return (sequence){4, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf};
    return (sequence){0};
}

static bool are_ascii(const uint8_t *at)
{
    uint64_t words[2];
    memcpy(words, at, sizeof words);
    return ((words[0] | words[1]) & UINT64_C(0x8080808080808080)) == 0;
}

/* Returns the bytes of the sequence at `at`: 0 if it is bad, -1 if it is cut off. */
static int check_one(const uint8_t *at, const uint8_t *end)
{
    sequence s = sequence_of(*at);
    for (int i = 1; i < s.n; i++) {
        if (at + i == end)
            return -1;
        if (at[i] < (i == 1 ? s.low : 0x80) || at[i] > (i == 1 ? s.high : 0xbf))
            return 0;
    }
    return s.n;
}

size_t pl_utf8_valid_bytes(const void *bytes, size_t n, bool *ret_cut)
{
    const uint8_t *begin = bytes, *at = begin, *end = begin + n;
    int taken = 1;
    while (at < end && taken > 0) {
        if (end - at >= 16 && are_ascii(at)) {
            at += 16;
            continue;
        }
        if (end - at < 16 && n >= 16 && are_ascii(end - 16)) { /* repeats some of them */
            at = end;
            continue;
        }
        taken = check_one(at, end);
        at += taken > 0 ? taken : 0;
    }
    if (ret_cut)
        *ret_cut = taken < 0;
    return (size_t)(at - begin);
}
