/* SPDX-License-Identifier: Apache-2.0 */
/* Resizes images like TensorFlow's tf.image.resize(): pixel centres lie at halves, and a pixel of
 * the result is made of the two (or one) nearest on each axis; antialiased, of all within one
 * result pixel, weighted by nearness.
 *   tap    for one place of the result: two places of the input, and the distance from the lower
 *   span   the same for antialiasing: consecutive places, each with a weight
 *   picks  the taps of a row of bytes, tabulated for many elements at a time
 *
 *   in = (out + 0.5) * (n_in / n_out) - 0.5, in f32;  lower = floor(in), upper = ceil(in), both
 *   inside of the input;  bilinear: lower + (upper - lower) * (in - floor(in)), across, then down
 *   nearest: floor((out + 0.5) * (n_in / n_out))
 *   antialiased: width = max(n_in / n_out, 1);  weight = max(1 - |place - in| / width, 0), over
 * their sum; across, then down, added up from the lowest place on
 *
 * Computes in f32 whatever the dtype; gives the same bits on every machine. Never allocates; safe
 * from any thread. */
#ifndef PL_KERNELS_MOVE_RESIZE_H
#define PL_KERNELS_MOVE_RESIZE_H

#include "base/base.h"
#include "plimsoll/tensor.h"

typedef struct pl_resize_tap {
    int64_t lower, upper;
    float lerp;
} pl_resize_tap;

/* Rows that pl_resize_row() writes have room for this many more elements, because it writes whole
 * vectors. */
#define PL_RESIZE_EXTRA 16

/* Computes the taps of one axis; n_in is not 0. */
void pl_resize_taps(int64_t n_in, int64_t n_out, pl_resize_tap *taps);

int64_t pl_resize_nearest(int64_t n_in, int64_t n_out, int64_t at);

/* Resizes a row of `n_in` pixels, u8 or f32. */
void pl_resize_row(pl_dtype dtype, const void *row, int64_t n_in, int64_t n_channels,
                   const pl_resize_tap *taps, int64_t n_out, float *out);

/* For every 16 elements of a result: the bytes of a window of the row that they are made of. The
 * caller owns `table`, and leaves it unchanged while the picks are in use. */
typedef struct pl_resize_picks {
    void (*row)(const struct pl_resize_picks *picks, const uint8_t *row, float *out);
    void *table;
    int64_t n;
} pl_resize_picks;

#define PL_RESIZE_PICK_BYTES 256 /* of the table, which begins at a multiple of 64 */

/* Returns 0 if such rows do not use picks, because a table larger than the nearest caches gains
 * nothing. */
uint64_t pl_resize_picks_bytes(int64_t n_out, int64_t n_channels);

/* Returns false if this machine has no picks for such rows, or a window does not hold the bytes, as
 * in results less than a fourth as wide: use pl_resize_row() then. */
bool pl_resize_picks_set(pl_resize_picks *picks, const pl_resize_tap *taps, int64_t n_in,
                         int64_t n_channels, int64_t n_out, void *table);

/* pl_resize_row() for u8; gives the same bits. */
static inline void pl_resize_picked_row(const pl_resize_picks *picks, const uint8_t *row,
                                        float *out)
{
    picks->row(picks, row, out);
}

typedef struct pl_resize_span {
    int64_t begin;
    int64_t n;
} pl_resize_span;

/* Returns the most places that a span of this axis has. */
int64_t pl_resize_span_places(int64_t n_in, int64_t n_out);

/* Computes the spans of one axis; n_in is not 0. Span i's weights begin at weights[i * places];
 * after its last they are 0. */
void pl_resize_spans(int64_t n_in, int64_t n_out, pl_resize_span *spans, float *weights);

/* pl_resize_row() with spans, whose weights are `places` apart. */
void pl_resize_span_row(pl_dtype dtype, const void *row, int64_t n_in, int64_t n_channels,
                        const pl_resize_span *spans, const float *weights, int64_t places,
                        int64_t n_out, float *out);

/* out += rows[k] * weights[k], one after the other; if they are the first, sets out instead. At
 * least one row. */
void pl_resize_sum(const float *const *rows, const float *weights, int n_rows, bool first,
                   float *out, int64_t n);

/* out = top + (bottom - top) * lerp */
void pl_resize_blend(const float *top, const float *bottom, float lerp, float *out, int64_t n);

#endif
