/* SPDX-License-Identifier: Apache-2.0 */
/* Images in another size, as TensorFlow's tf.image.resize() without antialiasing: pixels have their
 * centres at halves, and a result's pixel is made of the two (or one) nearest on each axis.
 *   tap  for one place of the result: the two places of the input, and how far it is from the lower
 *
 *   in = (out + 0.5) * (n_in / n_out) - 0.5, in f32;  lower = floor(in), upper = ceil(in), both
 *   inside of the input;  bilinear: lower + (upper - lower) * (in - floor(in)), across, then down
 *   nearest: floor((out + 0.5) * (n_in / n_out))
 *
 * In f32 whatever the dtype; the same bits on every machine. Never allocates; safe from any thread.
 */
#ifndef PL_KERNELS_RESIZE_H
#define PL_KERNELS_RESIZE_H

#include "base/base.h"
#include "plimsoll/tensor.h"

typedef struct pl_resize_tap {
    int64_t lower, upper;
    float lerp;
} pl_resize_tap;

/* Rows that pl_resize_row() writes have room for so many elements more: it writes whole vectors. */
#define PL_RESIZE_EXTRA 4

/* Of one axis; n_in is not 0. */
void pl_resize_taps(int64_t n_in, int64_t n_out, pl_resize_tap *taps);

int64_t pl_resize_nearest(int64_t n_in, int64_t n_out, int64_t at);

/* A row of `n_in` pixels, u8 or f32, in another width. */
void pl_resize_row(pl_dtype dtype, const void *row, int64_t n_in, int64_t n_channels,
                   const pl_resize_tap *taps, int64_t n_out, float *out);

/* out = top + (bottom - top) * lerp */
void pl_resize_blend(const float *top, const float *bottom, float lerp, float *out, int64_t n);

#endif
