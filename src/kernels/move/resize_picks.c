/* SPDX-License-Identifier: Apache-2.0 */
/* The picks of resize.h. Compiled once per instruction set: see strip.h. Nothing is read past a
 * row's end: a window that would end there begins earlier. */
#include "kernels/move/resize_loops.h"

#ifdef __AVX2__

#include <assert.h>
#include <immintrin.h>
#include <string.h>

#include "kernels/strip.h"

/* Elements of 8 results, each lane of 16 bytes from its own window. The lowest byte of an element
 * has the place of its byte; the others mark zeros. */
typedef struct pick_8 {
    _Alignas(32) uint8_t lower[32];
    uint8_t upper[32];
    float lerps[8];
    int32_t at[2]; /* where the windows begin, in bytes */
} pick_8;

/* The picks of 16 results from one window of 64 bytes. */
typedef struct pick_16 {
    _Alignas(64) uint8_t lower[64];
    uint8_t upper[64];
    float lerps[16];
    int32_t at;
} pick_16;

static_assert(sizeof(pick_8) * 2 == PL_RESIZE_PICK_BYTES, "room is for both");
static_assert(sizeof(pick_16) == PL_RESIZE_PICK_BYTES, "room is for both");

/* The row's elements for the results from `first` on; past the last, the last is repeated. */
typedef struct wanted {
    int n;
    int64_t lower[16], upper[16]; /* bytes of the row */
    float lerps[16];
} wanted;

static void want(const pl_resize_tap *taps, int64_t n_channels, int64_t n_out, int64_t first, int n,
                 wanted *w)
{
    int64_t x = first / n_channels, channel = first % n_channels;
    w->n = n;
    for (int i = 0; i < n; i++) {
        w->lower[i] = taps[x].lower * n_channels + channel;
        w->upper[i] = taps[x].upper * n_channels + channel;
        w->lerps[i] = taps[x].lerp;
        if (++channel == n_channels && x + 1 < n_out) {
            channel = 0;
            x++;
        } else if (channel == n_channels) {
            channel--;
        }
    }
}

/* Returns where a window of the row begins that has all of them; -1: there is none. */
static int64_t window_of(const wanted *w, int64_t row_bytes, int64_t window_bytes)
{
    int64_t begin = row_bytes - window_bytes, last = 0;
    for (int i = 0; i < w->n; i++) {
        begin = w->lower[i] < begin ? w->lower[i] : begin;
        last = w->upper[i] > last ? w->upper[i] : last;
    }
    return begin >= 0 && last - begin < window_bytes ? begin : -1;
}

static bool set_window(const wanted *w, int64_t row_bytes, int64_t window_bytes, uint8_t *lower,
                       uint8_t *upper, float *lerps, int32_t *ret_at)
{
    int64_t begin = window_of(w, row_bytes, window_bytes);
    if (begin < 0)
        return false;
    *ret_at = (int32_t)begin;
    memset(lower, 0x80, (size_t)w->n * 4);
    memset(upper, 0x80, (size_t)w->n * 4);
    for (int i = 0; i < w->n; i++) {
        lower[4 * i] = (uint8_t)(w->lower[i] - begin);
        upper[4 * i] = (uint8_t)(w->upper[i] - begin);
        lerps[i] = w->lerps[i];
    }
    return true;
}

/* ---- AVX2 ---- */

static void row_by_8(const pl_resize_picks *picks, const uint8_t *row, float *out)
{
    const pick_8 *pick = picks->table;
    for (int64_t i = 0; i < picks->n; i++, pick++) {
        __m128i first = _mm_loadu_si128((const __m128i *)(row + pick->at[0]));
        __m128i second = _mm_loadu_si128((const __m128i *)(row + pick->at[1]));
        __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
        __m256i lower = _mm256_load_si256((const __m256i *)pick->lower);
        __m256i upper = _mm256_load_si256((const __m256i *)pick->upper);
        __m256 a = _mm256_cvtepi32_ps(_mm256_shuffle_epi8(bytes, lower));
        __m256 b = _mm256_cvtepi32_ps(_mm256_shuffle_epi8(bytes, upper));
        __m256 part = _mm256_mul_ps(_mm256_sub_ps(b, a), _mm256_load_ps(pick->lerps));
        _mm256_storeu_ps(out + 8 * i, _mm256_add_ps(a, part));
    }
}

static bool set_8(pl_resize_picks *picks, const pl_resize_tap *taps, int64_t n_in,
                  int64_t n_channels, int64_t n_out)
{
    pick_8 *pick = picks->table;
    picks->row = row_by_8;
    picks->n = (n_out * n_channels + 7) / 8;
    for (int64_t i = 0; i < 2 * picks->n; i++) {
        wanted w;
        int64_t first = 4 * i < n_out * n_channels ? 4 * i : n_out * n_channels - 1;
        int lane = (int)(i % 2);
        want(taps, n_channels, n_out, first, 4, &w);
        if (!set_window(&w, n_in * n_channels, 16, pick->lower + 16 * lane, pick->upper + 16 * lane,
                        pick->lerps + 4 * lane, &pick->at[lane]))
            return false;
        pick += lane;
    }
    return true;
}

/* ---- AVX-512 ---- */

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))

TARGET static void row_by_16(const pl_resize_picks *picks, const uint8_t *row, float *out)
{
    const __mmask64 lowest = 0x1111111111111111; /* bytes of elements; the others are zero */
    const pick_16 *pick = picks->table;
    for (int64_t i = 0; i < picks->n; i++, pick++) {
        __m512i bytes = _mm512_loadu_si512(row + pick->at);
        __m512i lower = _mm512_load_si512(pick->lower), upper = _mm512_load_si512(pick->upper);
        __m512 a = _mm512_cvtepi32_ps(_mm512_maskz_permutexvar_epi8(lowest, lower, bytes));
        __m512 b = _mm512_cvtepi32_ps(_mm512_maskz_permutexvar_epi8(lowest, upper, bytes));
        __m512 part = _mm512_mul_ps(_mm512_sub_ps(b, a), _mm512_load_ps(pick->lerps));
        _mm512_storeu_ps(out + 16 * i, _mm512_add_ps(a, part));
    }
}

static bool set_16(pl_resize_picks *picks, const pl_resize_tap *taps, int64_t n_in,
                   int64_t n_channels, int64_t n_out)
{
    pick_16 *pick = picks->table;
    picks->row = row_by_16;
    picks->n = (n_out * n_channels + 15) / 16;
    for (int64_t i = 0; i < picks->n; i++, pick++) {
        wanted w;
        want(taps, n_channels, n_out, 16 * i, 16, &w);
        if (!set_window(&w, n_in * n_channels, 64, pick->lower, pick->upper, pick->lerps,
                        &pick->at))
            return false;
    }
    return true;
}

bool pl_resize_set_picks_avx2(pl_isa isa, pl_resize_picks *picks, const pl_resize_tap *taps,
                              int64_t n_in, int64_t n_channels, int64_t n_out)
{
    if (isa >= PL_ISA_AVX512 && set_16(picks, taps, n_in, n_channels, n_out))
        return true;
    return set_8(picks, taps, n_in, n_channels, n_out);
}

#endif
