/* SPDX-License-Identifier: Apache-2.0 */
/* Undoes PNG's filters, which store a sample as the difference from a prediction by its neighbours.
 *   a, b, c  the samples to the left, above, and above to the left; 0 outside of the picture
 *   filters  0 none, 1 less a, 2 less b, 3 less the mean of a and b, 4 less Paeth's predictor of
 *            a, b and c
 *
 * Never allocates; safe from any thread. */
#ifndef PL_CODEC_IMAGE_PNG_FILTER_H
#define PL_CODEC_IMAGE_PNG_FILTER_H

#include "base/base.h"

typedef struct pl_png_rows {
    uint32_t height;
    size_t row_bytes;   /* without the filter number before each row */
    size_t pixel_bytes; /* from a sample to its a; 1 for smaller pixels */
} pl_png_rows;

/* Converts the rows of `filtered` to `pixels`. Returns -1, or the first row with an unknown filter;
 * the rows before it are done. */
PL_MUST_CHECK int64_t pl_png_unfilter(const pl_png_rows *rows, const uint8_t *filtered,
                                      uint8_t *pixels);

/* Does the same with plain loops only: tests compare the two. */
PL_MUST_CHECK int64_t pl_png_unfilter_plainly(const pl_png_rows *rows, const uint8_t *filtered,
                                              uint8_t *pixels);

#endif
