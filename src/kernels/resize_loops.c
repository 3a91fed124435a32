/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of resize.h. Compiled once per instruction set: see strip.h. */
#include "kernels/resize_loops.h"

#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "kernels/strip.h"

typedef float four __attribute__((vector_size(16)));
typedef uint8_t four_bytes __attribute__((vector_size(4)));

static inline four load_u8(const uint8_t *at)
{
    four_bytes bytes;
    memcpy(&bytes, at, sizeof bytes);
    return __builtin_convertvector(bytes, four);
}

static inline four load_f32(const float *at)
{
    four values;
    memcpy(&values, at, sizeof values);
    return values;
}

/* One pixel of up to four channels at a time: four are read and written, and what is too many is
 * overwritten by the next. In the last pixel of the input that would read behind it, so there, and
 * where a pixel has more channels, elements go one by one. */
#define DEFINE_ROW(suffix, T)                                                                      \
    static inline void pixel_##suffix(const T *row, int64_t n_channels, const pl_resize_tap *tap,  \
                                      float *out)                                                  \
    {                                                                                              \
        const T *lower = row + tap->lower * n_channels, *upper = row + tap->upper * n_channels;    \
        for (int64_t i = 0; i < n_channels; i++) {                                                 \
            float a = (float)lower[i], b = (float)upper[i];                                        \
            out[i] = a + (b - a) * tap->lerp;                                                      \
        }                                                                                          \
    }                                                                                              \
    static inline void pixels_##suffix(const T *row, int64_t n_in, int64_t n_channels,             \
                                       const pl_resize_tap *taps, int64_t n_out, float *out)       \
    {                                                                                              \
        int64_t x = 0, last = n_in - (4 + n_channels - 1) / n_channels;                            \
        for (; x < n_out && taps[x].upper <= last; x++) {                                          \
            four a = load_##suffix(row + taps[x].lower * n_channels);                              \
            four b = load_##suffix(row + taps[x].upper * n_channels);                              \
            four made = a + (b - a) * taps[x].lerp;                                                \
            memcpy(out + x * n_channels, &made, sizeof made);                                      \
        }                                                                                          \
        for (; x < n_out; x++)                                                                     \
            pixel_##suffix(row, n_channels, &taps[x], out + x * n_channels);                       \
    }                                                                                              \
    static void row_##suffix(const T *row, int64_t n_in, int64_t n_channels,                       \
                             const pl_resize_tap *taps, int64_t n_out, float *out)                 \
    {                                                                                              \
        if (n_channels == 3)                                                                       \
            pixels_##suffix(row, n_in, 3, taps, n_out, out);                                       \
        else if (n_channels == 4)                                                                  \
            pixels_##suffix(row, n_in, 4, taps, n_out, out);                                       \
        else                                                                                       \
            for (int64_t x = 0; x < n_out; x++)                                                    \
                pixel_##suffix(row, n_channels, &taps[x], out + x * n_channels);                   \
    }

DEFINE_ROW(u8, uint8_t)
DEFINE_ROW(f32, float)

#ifdef __AVX2__

/* Two pixels at a time: eight bytes hold a pixel and its neighbour. With a lerp of 0 the neighbour
 * does not matter; where both taps are the same pixel and it is not 0, at the edges, it does. */
static inline bool are_neighbours(const pl_resize_tap *tap)
{
    return tap->upper == tap->lower + 1 || tap->lerp == 0;
}

static inline __m256 lerps_of(const pl_resize_tap *taps)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_broadcast_ss(&taps[0].lerp)),
                                _mm_broadcast_ss(&taps[1].lerp), 1);
}

/* `order` puts the two lower pixels before the two upper ones, four bytes each. */
static inline void two_pixels(const uint8_t *row, int64_t n_channels, const pl_resize_tap *taps,
                              __m128i order, float *out)
{
    __m128i first = _mm_loadl_epi64((const __m128i *)(row + taps[0].lower * n_channels));
    __m128i second = _mm_loadl_epi64((const __m128i *)(row + taps[1].lower * n_channels));
    __m128i bytes = _mm_shuffle_epi8(_mm_unpacklo_epi64(first, second), order);
    __m256 a = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    __m256 b = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes)));
    __m256 made = _mm256_add_ps(a, _mm256_mul_ps(_mm256_sub_ps(b, a), lerps_of(taps)));
    _mm_storeu_ps(out, _mm256_castps256_ps128(made));
    _mm_storeu_ps(out + n_channels, _mm256_extractf128_ps(made, 1));
}

static inline void pairs_u8(const uint8_t *row, int64_t n_in, int64_t n_channels,
                            const pl_resize_tap *taps, int64_t n_out, __m128i order, float *out)
{
    int64_t x = 0, end = n_out, last = n_in - (8 + n_channels - 1) / n_channels;
    for (; x < n_out && !are_neighbours(&taps[x]); x++)
        pixel_u8(row, n_channels, &taps[x], out + x * n_channels);
    while (end > x && (taps[end - 1].lower > last || !are_neighbours(&taps[end - 1])))
        end--;
    for (; x + 2 <= end; x += 2)
        two_pixels(row, n_channels, &taps[x], order, out + x * n_channels);
    for (; x < n_out; x++)
        pixel_u8(row, n_channels, &taps[x], out + x * n_channels);
}

static void fast_row_u8(const uint8_t *row, int64_t n_in, int64_t n_channels,
                        const pl_resize_tap *taps, int64_t n_out, float *out)
{
    const __m128i of_three = _mm_setr_epi8(0, 1, 2, -1, 8, 9, 10, -1, 3, 4, 5, -1, 11, 12, 13, -1);
    const __m128i of_four = _mm_setr_epi8(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15);
    if (n_channels == 3)
        pairs_u8(row, n_in, 3, taps, n_out, of_three, out);
    else if (n_channels == 4)
        pairs_u8(row, n_in, 4, taps, n_out, of_four, out);
    else
        row_u8(row, n_in, n_channels, taps, n_out, out);
}

#else
#define fast_row_u8 row_u8
#endif

static void blend(const float *top, const float *bottom, float lerp, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = top[i] + (bottom[i] - top[i]) * lerp;
}

/* Spans: as pixels above, four channels at a time where nothing is read behind the row. */
#define DEFINE_SPAN_ROW(suffix, T)                                                                 \
    static inline void span_##suffix(const T *at, int64_t n_channels, const float *weights,        \
                                     int64_t n, float *out)                                        \
    {                                                                                              \
        for (int64_t i = 0; i < n_channels; i++) {                                                 \
            float sum = 0;                                                                         \
            for (int64_t k = 0; k < n; k++)                                                        \
                sum += (float)at[k * n_channels + i] * weights[k];                                 \
            out[i] = sum;                                                                          \
        }                                                                                          \
    }                                                                                              \
    static inline void spans_##suffix(const T *row, int64_t n_in, int64_t n_channels,              \
                                      const pl_resize_span *spans, const float *weights,           \
                                      int64_t places, int64_t n_out, float *out)                   \
    {                                                                                              \
        int64_t x = 0, last = n_in - (4 + n_channels - 1) / n_channels;                            \
        for (; x < n_out && spans[x].begin + spans[x].n - 1 <= last; x++) {                        \
            const T *at = row + spans[x].begin * n_channels;                                       \
            const float *w = weights + x * places;                                                 \
            four sum = {0};                                                                        \
            for (int64_t k = 0; k < spans[x].n; k++)                                               \
                sum += load_##suffix(at + k * n_channels) * w[k];                                  \
            memcpy(out + x * n_channels, &sum, sizeof sum);                                        \
        }                                                                                          \
        for (; x < n_out; x++)                                                                     \
            span_##suffix(row + spans[x].begin * n_channels, n_channels, weights + x * places,     \
                          spans[x].n, out + x * n_channels);                                       \
    }                                                                                              \
    static void span_row_##suffix(const T *row, int64_t n_in, int64_t n_channels,                  \
                                  const pl_resize_span *spans, const float *weights,               \
                                  int64_t places, int64_t n_out, float *out)                       \
    {                                                                                              \
        if (n_channels == 3)                                                                       \
            spans_##suffix(row, n_in, 3, spans, weights, places, n_out, out);                      \
        else if (n_channels == 4)                                                                  \
            spans_##suffix(row, n_in, 4, spans, weights, places, n_out, out);                      \
        else                                                                                       \
            for (int64_t x = 0; x < n_out; x++)                                                    \
                span_##suffix(row + spans[x].begin * n_channels, n_channels, weights + x * places, \
                              spans[x].n, out + x * n_channels);                                   \
    }

DEFINE_SPAN_ROW(u8, uint8_t)
DEFINE_SPAN_ROW(f32, float)

static void add(const float *row, float weight, bool first, float *out, int64_t n)
{
    if (first)
        for (int64_t i = 0; i < n; i++)
            out[i] = row[i] * weight;
    else
        for (int64_t i = 0; i < n; i++)
            out[i] += row[i] * weight;
}

const pl_resize_loops PL_OF_ISA(pl_resize_loops) = {
    .row_u8 = fast_row_u8,
    .row_f32 = row_f32,
    .span_row_u8 = span_row_u8,
    .span_row_f32 = span_row_f32,
    .add = add,
    .blend = blend,
};
