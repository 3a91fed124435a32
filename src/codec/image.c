/* SPDX-License-Identifier: Apache-2.0 */
/* See image.h: which format it is, by the first bytes. */
#include "codec/image.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "codec/image_private.h"

/* Formats that users may well have, and that are not decoded. */
static const struct {
    const char *magic; /* NULs may be part of it */
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

static int refuse(const uint8_t *bytes, size_t n, pl_error *reterr)
{
    if (n == 0)
        return pl_error_set(reterr, PL_EFORMAT, "there are no bytes: an image is expected");
    for (size_t i = 0; i < PL_COUNT_OF(foreign); i++)
        if (begins(bytes, n, foreign[i].at, foreign[i].magic, foreign[i].n_magic))
            return pl_error_set(reterr, -ENOTSUP,
                                "it is a %s file: JPEG, PNG and BMP are decoded; convert it",
                                foreign[i].name);
    return pl_error_set(reterr, PL_EFORMAT,
                        "its first bytes (%02x %02x) are those of no JPEG, PNG or BMP", bytes[0],
                        n > 1 ? bytes[1] : 0);
}

const char *pl_image_format_name(pl_image_format format)
{
    return format == PL_IMAGE_JPEG ? "JPEG" : format == PL_IMAGE_PNG ? "PNG" : "BMP";
}

int pl_image_header(const void *bytes, size_t n, int channels, pl_image *ret_image,
                    pl_error *reterr)
{
    pl_image image = {.channels = channels};
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
    image.pixel_bytes =
        (uint64_t)image.height * (uint64_t)image.width * (uint64_t)image.channels; /* < 2^64 */
    *ret_image = image;
    return 0;
}

int pl_image_decode(const void *bytes, size_t n, const pl_image *image, void *pixels, void *work,
                    pl_error *reterr)
{
    if (image->format == PL_IMAGE_PNG)
        return pl_png_decode(bytes, n, image, pixels, work, reterr);
    if (image->format == PL_IMAGE_BMP)
        return pl_bmp_decode(bytes, n, image, pixels, reterr);
    return pl_jpeg_decode(bytes, n, image, pixels, work, reterr);
}
