/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes pictures; graph.h decodes them, with decode_image and similar ops. Safe from any thread.
 */
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
    size_t size; /* sizeof this struct; 0: as in version 0.1; see libplimsoll(3) */
    int quality; /* 0 to 100 */
    bool progressive;
    bool small;       /* takes longer; some percent smaller */
    bool full_colour; /* else colours have half the width and height */
    bool per_cm;      /* densities are per cm; else per inch */
    int x_density, y_density;
    const void *xmp; /* an XMP packet; none if xmp_bytes is 0 */
    size_t xmp_bytes;
} pl_jpeg_options;

/* Encodes height x width pixels of 1 or 3 channels, row by row, as JPEG. The caller frees
 * *ret_bytes with free(). -EINVAL for an invalid picture or option, -ENOMEM. */
PL_API PL_MUST_CHECK int pl_jpeg_encode(const uint8_t *pixels, int64_t height, int64_t width,
                                        int channels, const pl_jpeg_options *options,
                                        void **ret_bytes, size_t *ret_n, pl_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
