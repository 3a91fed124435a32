/* SPDX-License-Identifier: Apache-2.0 */
/* See image.h. Recognises the format by the first bytes. */
#include "codec/image/image.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "codec/image/image_private.h"

/* Formats that users may well have, but that are not decoded. */
static const struct {
    const char *magic; /* may contain NULs */
    size_t n_magic, at;
    const char *name;
} foreign[] = {
    {"GIF8", 4, 0, "GIF"},
    {"WEBP", 4, 8, "WebP"},
    {"II*\0", 4, 0, "TIFF"},
    {"MM\0*", 4, 0, "TIFF"},
    {"ftypavif", 8, 4, "AVIF"},
    {"ftyphei", 7, 4, "HEIF"},
    {"\xff\x4f\xff\x51", 4, 0, "JPEG 2000"},
};

static bool begins(const uint8_t *bytes, size_t n, size_t at, const char *magic, size_t n_magic)
{
    return n >= at + n_magic && memcmp(bytes + at, magic, n_magic) == 0;
}

/* Returns NULL for any other format. */
static const char *foreign_name(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < PL_COUNT_OF(foreign); i++)
        if (begins(bytes, n, foreign[i].at, foreign[i].magic, foreign[i].n_magic))
            return foreign[i].name;
    return NULL;
}

bool pl_image_is_foreign(const void *bytes, size_t n)
{
    return foreign_name(bytes, n) != NULL;
}

static int refuse(const uint8_t *bytes, size_t n, pl_error *reterr)
{
    if (n == 0)
        return pl_error_set(reterr, PL_EFORMAT, "there are no bytes: an image is expected");
    if (foreign_name(bytes, n))
        return pl_error_set(reterr, -ENOTSUP,
                            "it is a %s file: JPEG, PNG and BMP are decoded; convert it",
                            foreign_name(bytes, n));
    return pl_error_set(reterr, PL_EFORMAT,
                        "its first bytes (%02x %02x) are those of no JPEG, PNG or BMP", bytes[0],
                        n > 1 ? bytes[1] : 0);
}

const char *pl_image_format_name(pl_image_format format)
{
    return format == PL_IMAGE_JPEG ? "JPEG" : format == PL_IMAGE_PNG ? "PNG" : "BMP";
}

static uint64_t sample_bytes(pl_image_samples samples)
{
    return samples == PL_IMAGE_F32 ? 4 : samples == PL_IMAGE_U16 ? 2 : 1;
}

int pl_image_header(const void *bytes, size_t n, int channels, pl_image *ret_image,
                    pl_error *reterr)
{
    return pl_image_header_of(bytes, n, channels, PL_IMAGE_U8, ret_image, reterr);
}

int pl_image_header_of(const void *bytes, size_t n, int channels, pl_image_samples samples,
                       pl_image *ret_image, pl_error *reterr)
{
    pl_image image = {.channels = channels, .samples = samples};
    int r;
    if (channels < 0 || channels > 4)
        return pl_error_set(reterr, -EINVAL, "an image cannot have %d channels: 0 to 4", channels);
    if (begins(bytes, n, 0, "\x89PNG", 4)) {
        image.format = PL_IMAGE_PNG;
        r = pl_png_header(bytes, n, &image, reterr);
    } else if (begins(bytes, n, 0, "\xff\xd8\xff", 3)) {
        image.format = PL_IMAGE_JPEG;
        r = pl_jpeg_header(bytes, n, &image, reterr);
    } else if (begins(bytes, n, 0, "BM", 2)) {
        image.format = PL_IMAGE_BMP;
        r = pl_bmp_header(bytes, n, &image, reterr);
    } else {
        return refuse(bytes, n, reterr);
    }
    if (r < 0)
        return r;
    image.pixel_bytes = pl_mul_sat_u64((uint64_t)image.height * (uint64_t)image.width, /* < 2^62 */
                                       (uint64_t)image.channels * sample_bytes(samples));
    *ret_image = image;
    return 0;
}

static int decode_as_it_is(const void *bytes, size_t n, const pl_image *image, void *pixels,
                           void *work, pl_error *reterr)
{
    if (image->format == PL_IMAGE_PNG)
        return pl_png_decode(bytes, n, image, pixels, work, reterr);
    if (image->format == PL_IMAGE_BMP)
        return pl_bmp_decode(bytes, n, image, pixels, reterr);
    return pl_jpeg_decode(bytes, n, image, NULL, pixels, work, reterr);
}

/* ---- other samples, in place ---- */

/* The narrow samples lie at the end of the pixels, so that writing never reaches samples that are
 * still to be read. */
static void widen(const pl_image *image, const uint8_t *from, uint16_t *to, uint64_t n)
{
    unsigned times = image->format == PL_IMAGE_PNG ? 257 : 256;
    for (uint64_t i = 0; i < n; i++)
        to[i] = (uint16_t)(from[i] * times);
}

static void bytes_to_floats(const uint8_t *from, float *to, uint64_t n)
{
    const float scale = (float)(1.0 / UINT8_MAX);
    for (uint64_t i = 0; i < n; i++)
        to[i] = (float)from[i] * scale;
}

static void words_to_floats(const uint16_t *from, float *to, uint64_t n)
{
    const float scale = (float)(1.0 / UINT16_MAX);
    for (uint64_t i = 0; i < n; i++)
        to[i] = (float)from[i] * scale;
}

static void convert(const pl_image *image, pl_image_samples from, uint8_t *pixels, uint64_t n)
{
    const uint8_t *narrow = pixels + image->pixel_bytes - n * sample_bytes(from);
    if (image->samples == PL_IMAGE_U16 && from == PL_IMAGE_U8)
        widen(image, narrow, (void *)pixels, n);
    else if (image->samples == PL_IMAGE_F32 && from == PL_IMAGE_U8)
        bytes_to_floats(narrow, (void *)pixels, n);
    else if (image->samples == PL_IMAGE_F32)
        words_to_floats((const void *)narrow, (void *)pixels, n);
}

int pl_image_decode(const void *bytes, size_t n, const pl_image *image, void *pixels, void *work,
                    pl_error *reterr)
{
    uint64_t n_samples = image->pixel_bytes / sample_bytes(image->samples);
    bool wide =
        image->samples != PL_IMAGE_U8 && image->format == PL_IMAGE_PNG && pl_png_is_wide(bytes, n);
    pl_image as_it_is = *image;
    as_it_is.samples = wide ? PL_IMAGE_U16 : PL_IMAGE_U8;
    as_it_is.pixel_bytes = n_samples * sample_bytes(as_it_is.samples);
    uint8_t *end = (uint8_t *)pixels + image->pixel_bytes;
    int r = decode_as_it_is(bytes, n, &as_it_is, end - as_it_is.pixel_bytes, work, reterr);
    if (r == 0)
        convert(image, as_it_is.samples, pixels, n_samples);
    return r;
}

static uint64_t row_bytes(const pl_image *image)
{
    return (uint64_t)image->width * (uint64_t)image->channels;
}

uint64_t pl_image_rows_bytes(const pl_image *image)
{
    return image->format == PL_IMAGE_JPEG ? pl_jpeg_rows_bytes(row_bytes(image))
                                          : image->pixel_bytes;
}

int pl_image_decode_rows(const void *bytes, size_t n, const pl_image *image,
                         const pl_image_rows *rows, void *room, void *work, pl_error *reterr)
{
    assert(image->samples == PL_IMAGE_U8);
    if (image->format == PL_IMAGE_JPEG)
        return pl_jpeg_decode(bytes, n, image, rows, room, work, reterr);
    int r = pl_image_decode(bytes, n, image, room, work, reterr);
    for (int64_t y = 0; r == 0 && y < image->height; y++)
        rows->take(rows->context, y, (const uint8_t *)room + (uint64_t)y * row_bytes(image));
    return r;
}
