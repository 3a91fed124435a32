/* SPDX-License-Identifier: Apache-2.0 */
/* See png_filter.h. A sample needs the one to its left first, so a row is done pixel by pixel: all
 * samples of a pixel are in one vector, with as few steps as possible from a pixel to the next.
 * Apart from inflating, decoding a PNG spends most of its time here. */
#include "codec/image/png_filter.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { NONE, SUB, UP, MEAN, PAETH, FILTERS };

/* Undoes the filter of a row: `above` is NULL for the first. */
typedef void undo(const uint8_t *in, const uint8_t *above, uint8_t *out, size_t n,
                  size_t pixel_bytes);
typedef undo *const undo_table[FILTERS];

/* ---- plain loops ---- */

static void undo_none(const uint8_t *in, const uint8_t *above, uint8_t *out, size_t n,
                      size_t pixel_bytes)
{
    (void)above, (void)pixel_bytes;
    memcpy(out, in, n);
}

static void undo_sub(const uint8_t *in, const uint8_t *above, uint8_t *out, size_t n,
                     size_t pixel_bytes)
{
    (void)above;
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(in[i] + (i < pixel_bytes ? 0 : out[i - pixel_bytes]));
}

static void undo_up(const uint8_t *in, const uint8_t *above, uint8_t *out, size_t n,
                    size_t pixel_bytes)
{
    if (!above) {
        undo_none(in, NULL, out, n, pixel_bytes);
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(in[i] + above[i]);
}

static void undo_mean(const uint8_t *in, const uint8_t *above, uint8_t *out, size_t n,
                      size_t pixel_bytes)
{
    for (size_t i = 0; i < n; i++) {
        int a = i < pixel_bytes ? 0 : out[i - pixel_bytes], b = above ? above[i] : 0;
        out[i] = (uint8_t)(in[i] + (a + b) / 2);
    }
}

static uint8_t predict(int a, int b, int c)
{
    int pa = b - c, pb = a - c, pc = pa + pb;
    pa = pa < 0 ? -pa : pa;
    pb = pb < 0 ? -pb : pb;
    pc = pc < 0 ? -pc : pc;
    return (uint8_t)(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

static void undo_paeth(const uint8_t *in, const uint8_t *above, uint8_t *out, size_t n,
                       size_t pixel_bytes)
{
    if (!above) { /* for a and two zeros it gives a */
        undo_sub(in, NULL, out, n, pixel_bytes);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        bool first = i < pixel_bytes;
        int a = first ? 0 : out[i - pixel_bytes], c = first ? 0 : above[i - pixel_bytes];
        out[i] = (uint8_t)(in[i] + predict(a, above[i], c));
    }
}

static undo_table plain = {undo_none, undo_sub, undo_up, undo_mean, undo_paeth};

/* ---- vectors ---- */

#if defined(__x86_64__)

#define TARGET __attribute__((target("sse4.1")))

/* Three-byte pixels are read and written as four bytes, except the last of a row: the bytes after
 * it may not exist, or belong to someone else. The next pixel overwrites the extra byte. */
TARGET static inline __m128i load(const uint8_t *at, size_t n)
{
    int32_t pixel = 0;
    memcpy(&pixel, at, n);
    return _mm_cvtsi32_si128(pixel);
}

TARGET static inline void store(uint8_t *to, __m128i bytes, size_t n)
{
    int32_t pixel = _mm_cvtsi128_si32(bytes);
    memcpy(to, &pixel, n);
}

/* The position in a row: the pixel at `at`, of which `n` bytes are read and written, and the
 * finished pixels beside it. */
typedef struct place {
    const uint8_t *in, *above;
    uint8_t *out;
    size_t at, n;
    __m128i a, c;
} place;

TARGET static inline void step_sub(place *p)
{
    p->a = _mm_add_epi8(load(p->in + p->at, p->n), p->a);
    store(p->out + p->at, p->a, p->n);
}

/* The instruction rounds the mean up. */
TARGET static inline void step_mean(place *p)
{
    __m128i b = load(p->above + p->at, p->n);
    __m128i odd = _mm_and_si128(_mm_xor_si128(p->a, b), _mm_set1_epi8(1));
    __m128i mean = _mm_sub_epi8(_mm_avg_epu8(p->a, b), odd);
    p->a = _mm_add_epi8(load(p->in + p->at, p->n), mean);
    store(p->out + p->at, p->a, p->n);
}

/* Does the same as predict(), on words, for all of a, b and c, in fewer steps after a:
 *   t = 3 c - a - b;  max(a, b) <= t: the smaller of them;  t <= min(a, b): the larger;  else c */
TARGET static inline __m128i predict_words(__m128i a, __m128i b, __m128i c)
{
    __m128i rest = _mm_sub_epi16(_mm_add_epi16(_mm_add_epi16(c, c), c), b);
    __m128i t = _mm_sub_epi16(rest, a), low = _mm_min_epi16(a, b), high = _mm_max_epi16(a, b);
    __m128i low_or_c = _mm_blendv_epi8(low, c, _mm_cmpgt_epi16(high, t));
    return _mm_blendv_epi8(high, low_or_c, _mm_cmpgt_epi16(t, low));
}

TARGET static inline void step_paeth(place *p)
{
    __m128i in = _mm_cvtepu8_epi16(load(p->in + p->at, p->n));
    __m128i b = _mm_cvtepu8_epi16(load(p->above + p->at, p->n));
    __m128i made = _mm_add_epi16(in, predict_words(p->a, b, p->c));
    p->a = _mm_and_si128(made, _mm_set1_epi16(0xff));
    p->c = b;
    store(p->out + p->at, _mm_packus_epi16(p->a, p->a), p->n);
}

TARGET static inline void walk(place *p, void (*step)(place *p), size_t n, size_t pixel_bytes)
{
    for (p->n = 4; p->at + pixel_bytes < n; p->at += pixel_bytes)
        step(p);
    p->n = pixel_bytes;
    step(p);
}

/* Defines the functions above for pixels of three and of four bytes. */
#define DEFINE_FOR(pixel)                                                                          \
    TARGET static void sub_##pixel(const uint8_t *in, const uint8_t *above, uint8_t *out,          \
                                   size_t n, size_t pixel_bytes)                                   \
    {                                                                                              \
        (void)above, (void)pixel_bytes;                                                            \
        place p = {.in = in, .out = out};                                                          \
        walk(&p, step_sub, n, pixel);                                                              \
    }                                                                                              \
    TARGET static void mean_##pixel(const uint8_t *in, const uint8_t *above, uint8_t *out,         \
                                    size_t n, size_t pixel_bytes)                                  \
    {                                                                                              \
        place p = {.in = in, .above = above, .out = out};                                          \
        if (above)                                                                                 \
            walk(&p, step_mean, n, pixel);                                                         \
        else                                                                                       \
            undo_mean(in, above, out, n, pixel_bytes);                                             \
    }                                                                                              \
    TARGET static void paeth_##pixel(const uint8_t *in, const uint8_t *above, uint8_t *out,        \
                                     size_t n, size_t pixel_bytes)                                 \
    {                                                                                              \
        place p = {.in = in, .above = above, .out = out};                                          \
        if (above)                                                                                 \
            walk(&p, step_paeth, n, pixel);                                                        \
        else                                                                                       \
            sub_##pixel(in, above, out, n, pixel_bytes);                                           \
    }                                                                                              \
    static undo_table of_##pixel = {undo_none, sub_##pixel, undo_up, mean_##pixel, paeth_##pixel};

DEFINE_FOR(3)
DEFINE_FOR(4)

static undo *const *fastest(size_t pixel_bytes)
{
    if (!__builtin_cpu_supports("sse4.1"))
        return plain;
    return pixel_bytes == 3 ? of_3 : pixel_bytes == 4 ? of_4 : plain;
}

#else

static undo *const *fastest(size_t pixel_bytes)
{
    (void)pixel_bytes;
    return plain;
}

#endif

/* ---- pictures ---- */

static int64_t unfilter(const pl_png_rows *rows, undo *const *table, const uint8_t *filtered,
                        uint8_t *pixels)
{
    size_t n = rows->row_bytes;
    for (uint32_t y = 0; y < rows->height; y++, filtered += n + 1, pixels += n) {
        if (filtered[0] >= FILTERS)
            return y;
        table[filtered[0]](filtered + 1, y > 0 ? pixels - n : NULL, pixels, n, rows->pixel_bytes);
    }
    return -1;
}

int64_t pl_png_unfilter(const pl_png_rows *rows, const uint8_t *filtered, uint8_t *pixels)
{
    return unfilter(rows, fastest(rows->pixel_bytes), filtered, pixels);
}

int64_t pl_png_unfilter_plainly(const pl_png_rows *rows, const uint8_t *filtered, uint8_t *pixels)
{
    return unfilter(rows, plain, filtered, pixels);
}
