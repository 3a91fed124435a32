/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of resize.h. Compiled once per instruction set: see strip.h. */
#include "kernels/resize_loops.h"

#include <string.h>

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

static void blend(const float *top, const float *bottom, float lerp, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = top[i] + (bottom[i] - top[i]) * lerp;
}

const pl_resize_loops PL_OF_ISA(pl_resize_loops) = {row_u8, row_f32, blend};
