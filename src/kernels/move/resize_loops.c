/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of resize.h. Compiled once per instruction set: see strip.h. */
#include "kernels/move/resize_loops.h"

#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "kernels/strip.h"

typedef float four __attribute__((vector_size(16)));
typedef float eight __attribute__((vector_size(32)));

#ifdef __SSE2__
/* Written by hand: compilers vectorize four bytes one number at a time. */
static inline four load_u8(const uint8_t *at)
{
    int32_t bytes;
    memcpy(&bytes, at, sizeof bytes);
    __m128i words = _mm_unpacklo_epi8(_mm_cvtsi32_si128(bytes), _mm_setzero_si128());
    return (four)_mm_cvtepi32_ps(_mm_unpacklo_epi16(words, _mm_setzero_si128()));
}
#else
typedef uint8_t four_bytes __attribute__((vector_size(4)));

static inline four load_u8(const uint8_t *at)
{
    four_bytes bytes;
    memcpy(&bytes, at, sizeof bytes);
    return __builtin_convertvector(bytes, four);
}
#endif

static inline four load_f32(const float *at)
{
    four values;
    memcpy(&values, at, sizeof values);
    return values;
}

/* Computes one pixel of up to four channels at a time: four are read and written, and the next
 * pixel overwrites the surplus. For the input's last pixel that would read past the end, so there,
 * and for more channels, elements go one by one. */
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

/* Computes two pixels at a time: eight bytes hold a pixel and its neighbour. With a lerp of 0 the
 * neighbour does not matter; at the edges both taps are the same pixel and lerp is not 0, so it
 * does. */
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

/* Spans: like pixels above, four channels at a time where that does not read past the row. */
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

#ifdef __AVX2__

/* Computes two results at a time, places in groups: 16 bytes hold five pixels of three channels, or
 * four of four, and order[i] converts the i-th to numbers. Places after a span's last have weights
 * of 0, which change no sum: so all spans are equally long, and no branch is mispredicted. */
typedef struct group {
    int64_t n_channels, n;
    __m256i order[5];
} group;

static inline __m256 of_two(float a, float b)
{
    return _mm256_blend_ps(_mm256_set1_ps(a), _mm256_set1_ps(b), 0xf0);
}

static inline __m256 weighed(const group *g, __m256i bytes, int64_t i, const float *weights,
                             int64_t places)
{
    __m256 values = _mm256_cvtepi32_ps(_mm256_shuffle_epi8(bytes, g->order[i]));
    return _mm256_mul_ps(values, of_two(weights[0], weights[places]));
}

static inline void two_spans(const group *g, const uint8_t *row, const pl_resize_span *spans,
                             const float *weights, int64_t places, float *out)
{
    const uint8_t *first = row + spans[0].begin * g->n_channels;
    const uint8_t *second = row + spans[1].begin * g->n_channels;
    __m256 sum = _mm256_setzero_ps();
    for (int64_t k = 0; k < places; k += g->n) {
        __m128i low = _mm_loadu_si128((const __m128i *)(first + k * g->n_channels));
        __m128i high = _mm_loadu_si128((const __m128i *)(second + k * g->n_channels));
        __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
        if (k + g->n <= places)
            for (int64_t i = 0; i < g->n; i++)
                sum = _mm256_add_ps(sum, weighed(g, bytes, i, weights + k + i, places));
        else
            for (int64_t i = 0; k + i < places; i++)
                sum = _mm256_add_ps(sum, weighed(g, bytes, i, weights + k + i, places));
    }
    _mm_storeu_ps(out, _mm256_castps256_ps128(sum));
    _mm_storeu_ps(out + g->n_channels, _mm256_extractf128_ps(sum, 1));
}

static inline void paired_spans(const group *g, const uint8_t *row, int64_t n_in,
                                const pl_resize_span *spans, const float *weights, int64_t places,
                                int64_t n_out, float *out)
{
    int64_t n_channels = g->n_channels, x = 0, end = n_out;
    int64_t read_bytes = (places - 1) / g->n * g->n * n_channels + 16; /* from a span's begin */
    while (end > 0 && spans[end - 1].begin * n_channels + read_bytes > n_in * n_channels)
        end--;
    for (; x + 2 <= end; x += 2)
        two_spans(g, row, &spans[x], weights + x * places, places, out + x * n_channels);
    for (; x < n_out; x++)
        span_u8(row + spans[x].begin * n_channels, n_channels, weights + x * places, spans[x].n,
                out + x * n_channels);
}

/* The i-th pixel of 16 bytes, its channels as numbers; 0 for a missing fourth. */
static inline __m256i order_of(int64_t i, int64_t n_channels)
{
    int at = (int)(i * n_channels);
    int fourth = n_channels == 4 ? at + 3 : -1;
    return _mm256_broadcastsi128_si256(_mm_setr_epi8((char)at, -1, -1, -1, (char)(at + 1), -1, -1,
                                                     -1, (char)(at + 2), -1, -1, -1, (char)fourth,
                                                     -1, -1, -1));
}

static void fast_span_row_u8(const uint8_t *row, int64_t n_in, int64_t n_channels,
                             const pl_resize_span *spans, const float *weights, int64_t places,
                             int64_t n_out, float *out)
{
    if (n_channels == 3) {
        const group g = {
            3, 5, {order_of(0, 3), order_of(1, 3), order_of(2, 3), order_of(3, 3), order_of(4, 3)}};
        paired_spans(&g, row, n_in, spans, weights, places, n_out, out);
    } else if (n_channels == 4) {
        const group g = {4, 4, {order_of(0, 4), order_of(1, 4), order_of(2, 4), order_of(3, 4)}};
        paired_spans(&g, row, n_in, spans, weights, places, n_out, out);
    } else {
        span_row_u8(row, n_in, n_channels, spans, weights, places, n_out, out);
    }
}

#else
#define fast_span_row_u8 span_row_u8
#endif

static inline eight load_eight(const float *at)
{
    eight values;
    memcpy(&values, at, sizeof values);
    return values;
}

/* Sums a piece at a time that stays in registers while the rows go by. */
static void sum(const float *const *rows, const float *weights, int n_rows, bool first, float *out,
                int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        eight a = {0}, b = {0};
        int k = first ? 1 : 0;
        if (first) {
            a = load_eight(rows[0] + i) * weights[0];
            b = load_eight(rows[0] + i + 8) * weights[0];
        } else {
            a = load_eight(out + i);
            b = load_eight(out + i + 8);
        }
        for (; k < n_rows; k++) {
            a += load_eight(rows[k] + i) * weights[k];
            b += load_eight(rows[k] + i + 8) * weights[k];
        }
        memcpy(out + i, &a, sizeof a);
        memcpy(out + i + 8, &b, sizeof b);
    }
    for (; i < n; i++) {
        float made = first ? rows[0][i] * weights[0] : out[i];
        for (int k = first ? 1 : 0; k < n_rows; k++)
            made += rows[k][i] * weights[k];
        out[i] = made;
    }
}

const pl_resize_loops PL_OF_ISA(pl_resize_loops) = {
    .row_u8 = fast_row_u8,
    .row_f32 = row_f32,
    .span_row_u8 = fast_span_row_u8,
    .span_row_f32 = span_row_f32,
    .sum = sum,
    .blend = blend,
};
