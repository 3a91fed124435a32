/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between image.c and the formats; each library is used in one file only. See
 * image.h. */
#ifndef PL_CODEC_IMAGE_IMAGE_PRIVATE_H
#define PL_CODEC_IMAGE_IMAGE_PRIVATE_H

#include "codec/image/image.h"

/* Parse a header. They fill in all fields but the format, the samples and the bytes of the pixels;
 * image->channels is the requested number, and may be 0 before. Decoded samples are bytes; those of
 * a PNG may have 16 bits. */
PL_MUST_CHECK int pl_jpeg_header(const uint8_t *bytes, size_t n, pl_image *image, pl_error *reterr);
PL_MUST_CHECK int pl_png_header(const uint8_t *bytes, size_t n, pl_image *image, pl_error *reterr);

/* With `rows`, `pixels` holds only PL_JPEG_ROWS rows at a time. */
enum { PL_JPEG_ROWS = 8 };
uint64_t pl_jpeg_rows_bytes(uint64_t row_bytes);
PL_MUST_CHECK int pl_jpeg_decode(const uint8_t *bytes, size_t n, const pl_image *image,
                                 const pl_image_rows *rows, uint8_t *pixels, uint8_t *work,
                                 pl_error *reterr);
PL_MUST_CHECK int pl_png_decode(const uint8_t *bytes, size_t n, const pl_image *image,
                                uint8_t *pixels, uint8_t *work, pl_error *reterr);

/* Does a PNG that pl_png_header() accepted have 16 bits per sample? */
bool pl_png_is_wide(const uint8_t *bytes, size_t n);

PL_MUST_CHECK int pl_bmp_header(const uint8_t *bytes, size_t n, pl_image *image, pl_error *reterr);
PL_MUST_CHECK int pl_bmp_decode(const uint8_t *bytes, size_t n, const pl_image *image,
                                uint8_t *pixels, pl_error *reterr);

/* Multiplies sizes from a header: a product that is too large to count stays at the maximum, and is
 * refused for its size. */
static inline uint64_t pl_mul_sat_u64(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static inline uint32_t pl_big_u16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static inline uint32_t pl_big_u32(const uint8_t *at)
{
    return pl_big_u16(at) << 16 | pl_big_u16(at + 2);
}

/* Returns the luminance of a colour (ITU-R 601), equal to Pillow's in every bit, also for 16
 * bits. */
static inline uint32_t pl_grey_of_values(uint32_t red, uint32_t green, uint32_t blue)
{
    return (red * 19595u + green * 38470u + blue * 7471u + 0x8000u) >> 16;
}

static inline uint8_t pl_grey_of(const uint8_t rgb[3])
{
    return (uint8_t)pl_grey_of_values(rgb[0], rgb[1], rgb[2]);
}

#endif
