/* SPDX-License-Identifier: Apache-2.0 */
/* PNG's filters undone: samples of what was left of them when their neighbours were taken off.
 *   a, b, c  the samples to the left, above, and above to the left; 0 outside of the picture
 *   filters  0 none, 1 less a, 2 less b, 3 less the mean of a and b, 4 less what Paeth's predictor
 *            takes of a, b and c
 *
 * Never allocates; safe from any thread. */
#ifndef PL_CODEC_IMAGE_PNG_FILTER_H
#define PL_CODEC_IMAGE_PNG_FILTER_H

#include "base/base.h"

typedef struct pl_png_rows {
    uint32_t height;
    size_t row_bytes;   /* without the filter's number, which goes before each row */
    size_t pixel_bytes; /* from a sample to its a; 1 where pixels are smaller */
} pl_png_rows;

/* From `filtered`, one row after the other, to `pixels`. -1, or the first row whose filter is none
 * of these; those before it are done. */
PL_MUST_CHECK int64_t pl_png_unfilter(const pl_png_rows *rows, const uint8_t *filtered,
                                      uint8_t *pixels);

/* The same, and nothing but plain loops: what tests hold against it. */
PL_MUST_CHECK int64_t pl_png_unfilter_plainly(const pl_png_rows *rows, const uint8_t *filtered,
                                              uint8_t *pixels);

#endif
