/* SPDX-License-Identifier: Apache-2.0 */
/* See resize.h. */
#include "kernels/move/resize.h"

#include <assert.h>
#include <math.h>

#include "kernels/isa_table.h"
#include "kernels/move/resize_loops.h"

static int64_t inside(int64_t at, int64_t n)
{
    return at < 0 ? 0 : at < n ? at : n - 1;
}

void pl_resize_taps(int64_t n_in, int64_t n_out, pl_resize_tap *taps)
{
    float scale = (float)n_in / (float)n_out;
    for (int64_t i = 0; i < n_out; i++) {
        float in = ((float)i + 0.5f) * scale - 0.5f, whole = floorf(in);
        taps[i] = (pl_resize_tap){inside((int64_t)whole, n_in), inside((int64_t)ceilf(in), n_in),
                                  in - whole};
    }
}

static float span_width(int64_t n_in, int64_t n_out)
{
    float scale = (float)n_in / (float)n_out;
    return scale > 1 ? scale : 1;
}

int64_t pl_resize_span_places(int64_t n_in, int64_t n_out)
{
    int64_t n = 2 * (int64_t)ceilf(span_width(n_in, n_out)) + 1;
    return n < n_in ? n : n_in;
}

void pl_resize_spans(int64_t n_in, int64_t n_out, pl_resize_span *spans, float *weights)
{
    float scale = (float)n_in / (float)n_out, width = span_width(n_in, n_out);
    int64_t places = pl_resize_span_places(n_in, n_out);
    for (int64_t i = 0; i < n_out; i++, weights += places) {
        float in = ((float)i + 0.5f) * scale - 0.5f, sum = 0;
        int64_t begin = inside((int64_t)ceilf(in - width), n_in);
        int64_t last = inside((int64_t)floorf(in + width), n_in);
        spans[i] = (pl_resize_span){begin, last - begin + 1 < places ? last - begin + 1 : places};
        for (int64_t k = 0; k < spans[i].n; k++) {
            float weight = 1 - fabsf((float)(begin + k) - in) / width;
            weights[k] = weight > 0 ? weight : 0;
            sum += weights[k];
        }
        for (int64_t k = 0; k < spans[i].n; k++)
            weights[k] /= sum;
        for (int64_t k = spans[i].n; k < places; k++)
            weights[k] = 0;
    }
}

int64_t pl_resize_nearest(int64_t n_in, int64_t n_out, int64_t at)
{
    float scale = (float)n_in / (float)n_out;
    return inside((int64_t)floorf(((float)at + 0.5f) * scale), n_in);
}

uint64_t pl_resize_picks_bytes(int64_t n_out, int64_t n_channels)
{
    enum { PICKS_MOST = 256 };
    int64_t n;
    if (__builtin_mul_overflow(n_out, n_channels, &n) || n <= 0 || n > 16 * PICKS_MOST)
        return 0;
    return (uint64_t)(n + 15) / 16 * PL_RESIZE_PICK_BYTES;
}

bool pl_resize_picks_set(pl_resize_picks *picks, const pl_resize_tap *taps, int64_t n_in,
                         int64_t n_channels, int64_t n_out, void *table)
{
    *picks = (pl_resize_picks){.table = table};
#if PL_HAS_X86_BUILDS
    pl_isa isa = pl_isa_used();
    int64_t row_bytes;
    return isa >= PL_ISA_AVX2 && pl_resize_picks_bytes(n_out, n_channels) > 0 &&
           !__builtin_mul_overflow(n_in, n_channels, &row_bytes) && row_bytes <= INT32_MAX &&
           pl_resize_set_picks_avx2(isa, picks, taps, n_in, n_channels, n_out);
#else
    (void)taps, (void)n_in, (void)n_channels, (void)n_out;
    return false;
#endif
}

void pl_resize_row(pl_dtype dtype, const void *row, int64_t n_in, int64_t n_channels,
                   const pl_resize_tap *taps, int64_t n_out, float *out)
{
    const pl_resize_loops *loops = PL_ISA_TABLE(pl_resize_loops);
    assert(dtype == PL_U8 || dtype == PL_F32);
    if (dtype == PL_U8)
        loops->row_u8(row, n_in, n_channels, taps, n_out, out);
    else
        loops->row_f32(row, n_in, n_channels, taps, n_out, out);
}

void pl_resize_span_row(pl_dtype dtype, const void *row, int64_t n_in, int64_t n_channels,
                        const pl_resize_span *spans, const float *weights, int64_t places,
                        int64_t n_out, float *out)
{
    const pl_resize_loops *loops = PL_ISA_TABLE(pl_resize_loops);
    assert(dtype == PL_U8 || dtype == PL_F32);
    if (dtype == PL_U8)
        loops->span_row_u8(row, n_in, n_channels, spans, weights, places, n_out, out);
    else
        loops->span_row_f32(row, n_in, n_channels, spans, weights, places, n_out, out);
}

void pl_resize_sum(const float *const *rows, const float *weights, int n_rows, bool first,
                   float *out, int64_t n)
{
    PL_ISA_TABLE(pl_resize_loops)->sum(rows, weights, n_rows, first, out, n);
}

void pl_resize_blend(const float *top, const float *bottom, float lerp, float *out, int64_t n)
{
    PL_ISA_TABLE(pl_resize_loops)->blend(top, bottom, lerp, out, n);
}
