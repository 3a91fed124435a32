/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the bytes with a meaning in CSV (delimiter, line feed, carriage return, quote), 64 at a
 * time. For csv.c only.
 *   block  64 bytes that were scanned, fewer at the end
 *   bits   one for each of them: is it a mark?
 * Never reads past the end. */
#ifndef PL_CODEC_TEXT_CSV_MARKS_H
#define PL_CODEC_TEXT_CSV_MARKS_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/base.h"

enum { PL_CSV_BLOCK_BYTES = 64 };

typedef struct pl_csv_marks {
    const char *block, *end;
    uint64_t bits;
    char delimiter, quote; /* quote: a line feed if quotes have no meaning */
} pl_csv_marks;

static inline uint64_t pl_csv_marks_each(const pl_csv_marks *m, const char *at, size_t n)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_mark = at[i] == m->delimiter || at[i] == '\n' || at[i] == '\r' || at[i] == m->quote;
        bits |= (uint64_t)is_mark << i;
    }
    return bits;
}

#ifdef __SSE2__

/* SSE2, which every x86-64 processor has; wider registers give no measurable gain here. */
static inline uint64_t pl_csv_marks_of_16(const pl_csv_marks *m, const char *at)
{
    __m128i bytes = _mm_loadu_si128((const void *)at);
    __m128i is_delimiter = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(m->delimiter));
    __m128i is_quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(m->quote));
    __m128i is_feed = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'));
    __m128i is_return = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r'));
    __m128i marks =
        _mm_or_si128(_mm_or_si128(is_delimiter, is_quote), _mm_or_si128(is_feed, is_return));
    return (uint64_t)(uint32_t)_mm_movemask_epi8(marks);
}

static inline uint64_t pl_csv_marks_of_block(const pl_csv_marks *m, const char *at)
{
    return pl_csv_marks_of_16(m, at) | pl_csv_marks_of_16(m, at + 16) << 16 |
           pl_csv_marks_of_16(m, at + 32) << 32 | pl_csv_marks_of_16(m, at + 48) << 48;
}

#else

static inline uint64_t pl_csv_marks_of_block(const pl_csv_marks *m, const char *at)
{
    return pl_csv_marks_each(m, at, PL_CSV_BLOCK_BYTES);
}

#endif

static inline void pl_csv_marks_look(pl_csv_marks *m, const char *at)
{
    size_t left = (size_t)(m->end - at);
    m->block = at;
    m->bits =
        left >= PL_CSV_BLOCK_BYTES ? pl_csv_marks_of_block(m, at) : pl_csv_marks_each(m, at, left);
}

static inline void pl_csv_marks_begin(pl_csv_marks *m, const char *at, const char *end,
                                      char delimiter, bool quotes)
{
    *m = (pl_csv_marks){.end = end, .delimiter = delimiter, .quote = quotes ? '"' : '\n'};
    pl_csv_marks_look(m, at);
}

/* Returns the first mark from `at` on, or the end. `at` must not move back between calls. */
static inline const char *pl_csv_marks_next(pl_csv_marks *m, const char *at)
{
    for (;;) {
        size_t passed = (size_t)(at - m->block);
        uint64_t bits = passed < PL_CSV_BLOCK_BYTES ? m->bits >> passed : 0;
        if (bits)
            return at + __builtin_ctzll(bits);
        if (m->end - m->block <= PL_CSV_BLOCK_BYTES)
            return m->end;
        if (passed < PL_CSV_BLOCK_BYTES)
            at = m->block + PL_CSV_BLOCK_BYTES;
        pl_csv_marks_look(m, at);
    }
}

#endif
