/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures to files; the way back is graph.h's, by decode_image and its like.
 * Safe from any thread. */
#ifndef PLIMSOLL_PICTURE_H
#define PLIMSOLL_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PL_JPEG_SIDE_MAX 65500 /* libjpeg's, for either side */

typedef struct pl_jpeg_options {
    size_t size; /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    int quality; /* 0 to 100 */
    bool progressive;
    bool small;       /* takes longer, and is some percent smaller */
    bool full_colour; /* else colours are of half the width and height */
    bool per_cm;      /* densities; else per inch */
    int x_density, y_density;
    const void *xmp; /* a packet of so many bytes; none if 0 */
    size_t xmp_bytes;
} pl_jpeg_options;

/* A JPEG of height x width pixels of 1 or 3 channels, row by row. *ret_bytes is the caller's, to be
 * given back with free(). -EINVAL for what is no picture or no option, -ENOMEM. */
PL_API PL_MUST_CHECK int pl_jpeg_encode(const uint8_t *pixels, int64_t height, int64_t width,
                                        int channels, const pl_jpeg_options *options,
                                        void **ret_bytes, size_t *ret_n, pl_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
