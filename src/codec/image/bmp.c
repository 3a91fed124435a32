/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the common kinds of BMP: not compressed, with 8 bits and a palette, 24 bits, or 32 with
 * an alpha channel, which is used as it is (as in TensorFlow). Rows are padded to four bytes, and
 * go upwards unless the height is negative. All other kinds are refused. */
#include <errno.h>
#include <inttypes.h>

#include "codec/image/image_private.h"

enum { FILE_HEADER = 14, INFO_HEADER = 40, COLOURS_MAX = 256, ALIGNED_ROWS = 4 };

typedef struct bmp {
    int64_t width, height;
    bool downwards;
    int bits; /* per pixel */
    const uint8_t *palette;
    uint32_t n_colours;
    const uint8_t *rows; /* the first in the file */
    uint64_t row_bytes;
} bmp;

static uint32_t little_u16(const uint8_t *at)
{
    return (uint32_t)at[1] << 8 | at[0];
}

static uint32_t little_u32(const uint8_t *at)
{
    return little_u16(at + 2) << 16 | little_u16(at);
}

static int cut_off(size_t n, uint64_t wanted, pl_error *reterr)
{
    return pl_error_set(reterr, PL_ECORRUPT,
                        "the BMP is cut off: it has %zu bytes, and its header speaks of %" PRIu64,
                        n, wanted);
}

static int parse_size(const uint8_t *bytes, bmp *b, pl_error *reterr)
{
    int32_t width = (int32_t)little_u32(bytes + 18), height = (int32_t)little_u32(bytes + 22);
    b->width = width;
    b->downwards = height < 0;
    b->height = height < 0 ? -(int64_t)height : height;
    if (width < 1 || height == 0) {
        pl_error_set(reterr, PL_ECORRUPT,
                     "the BMP is corrupt at byte 18: it has %" PRId32 " x %" PRId32 " pixels",
                     height, width);
        pl_error_at_byte(reterr, 18);
        return PL_ECORRUPT;
    }
    return 0;
}

static int parse_kind(const uint8_t *bytes, bmp *b, pl_error *reterr)
{
    uint32_t compression = little_u32(bytes + 30);
    b->bits = (int)little_u16(bytes + 28);
    b->row_bytes = ((uint64_t)b->width * (uint64_t)b->bits / 8 + ALIGNED_ROWS - 1) / ALIGNED_ROWS *
                   ALIGNED_ROWS;
    if ((b->bits == 8 || b->bits == 24 || b->bits == 32) && compression == 0)
        return 0;
    return pl_error_set(reterr, -ENOTSUP,
                        "it is a BMP of %d bits a pixel, with compression %" PRIu32
                        ": those of 8, 24 and 32 bits without are decoded; convert it",
                        b->bits, compression);
}

/* Parses the palette after the header, whose own size is in it. */
static int parse_palette(const uint8_t *bytes, size_t n, uint32_t header, bmp *b, pl_error *reterr)
{
    uint32_t n_colours = little_u32(bytes + 46);
    if (b->bits != 8)
        return 0;
    b->n_colours = n_colours == 0 ? COLOURS_MAX : n_colours;
    if (b->n_colours > COLOURS_MAX) {
        pl_error_set(reterr, PL_ECORRUPT,
                     "the BMP is corrupt at byte 46: a palette of %" PRIu32 " colours", n_colours);
        pl_error_at_byte(reterr, 46);
        return PL_ECORRUPT;
    }
    uint64_t end = (uint64_t)FILE_HEADER + header + 4 * (uint64_t)b->n_colours;
    b->palette = bytes + FILE_HEADER + header;
    return end > n ? cut_off(n, end, reterr) : 0;
}

static int parse(const uint8_t *bytes, size_t n, bmp *b, pl_error *reterr)
{
    *b = (bmp){0};
    if (n < FILE_HEADER + INFO_HEADER)
        return cut_off(n, FILE_HEADER + INFO_HEADER, reterr);
    uint32_t offset = little_u32(bytes + 10), header = little_u32(bytes + 14);
    if (header < INFO_HEADER)
        return pl_error_set(
            reterr, -ENOTSUP,
            "it is a BMP with a header of %" PRIu32 " bytes, as OS/2 had: convert it", header);
    int r = parse_size(bytes, b, reterr);
    if (r == 0)
        r = parse_kind(bytes, b, reterr);
    if (r == 0)
        r = parse_palette(bytes, n, header, b, reterr);
    if (r < 0)
        return r;
    uint64_t end = offset + b->row_bytes * (uint64_t)b->height; /* < 2^36 x 2^31 */
    b->rows = bytes + offset;
    return offset < FILE_HEADER + INFO_HEADER || end > n ? cut_off(n, end, reterr) : 0;
}

static bool is_grey(const bmp *b)
{
    for (uint32_t i = 0; i < b->n_colours; i++) {
        const uint8_t *colour = b->palette + 4 * i;
        if (colour[0] != colour[1] || colour[1] != colour[2])
            return false;
    }
    return b->bits == 8;
}

int pl_bmp_header(const uint8_t *bytes, size_t n, pl_image *image, pl_error *reterr)
{
    bmp b;
    int r = parse(bytes, n, &b, reterr);
    if (r < 0)
        return r;
    image->height = b.height;
    image->width = b.width;
    image->file_channels = is_grey(&b) ? 1 : b.bits == 32 ? 4 : 3;
    image->channels = image->channels ? image->channels : image->file_channels;
    return 0;
}

/* Returns 1; 0: the palette has no such colour. */
static int read_pixel(const bmp *b, const uint8_t *at, uint8_t rgba[4])
{
    if (b->bits == 8 && *at >= b->n_colours)
        return 0;
    const uint8_t *bgr = b->bits == 8 ? b->palette + 4 * *at : at;
    rgba[0] = bgr[2];
    rgba[1] = bgr[1];
    rgba[2] = bgr[0];
    rgba[3] = b->bits == 32 ? bgr[3] : 255;
    return 1;
}

static void write_pixel(const uint8_t rgba[4], int channels, uint8_t *to)
{
    bool grey = channels < 3;
    to[0] = grey ? pl_grey_of(rgba) : rgba[0];
    for (int i = 1; i < 3 && !grey; i++)
        to[i] = rgba[i];
    if (channels % 2 == 0)
        to[channels - 1] = rgba[3];
}

int pl_bmp_decode(const uint8_t *bytes, size_t n, const pl_image *image, uint8_t *pixels,
                  pl_error *reterr)
{
    bmp b;
    int r = parse(bytes, n, &b, reterr);
    if (r < 0)
        return r;
    for (int64_t y = 0; y < b.height; y++) {
        const uint8_t *row = b.rows + (uint64_t)(b.downwards ? y : b.height - 1 - y) * b.row_bytes;
        for (int64_t x = 0; x < b.width; x++, pixels += image->channels) {
            const uint8_t *at = row + x * (b.bits / 8);
            uint8_t rgba[4];
            if (!read_pixel(&b, at, rgba)) {
                size_t byte = (size_t)(at - bytes);
                pl_error_set(reterr, PL_ECORRUPT,
                             "the BMP is corrupt at byte %zu: colour %d of %" PRIu32, byte, *at,
                             b.n_colours);
                pl_error_at_byte(reterr, byte);
                return PL_ECORRUPT;
            }
            write_pixel(rgba, image->channels, pixels);
        }
    }
    return 0;
}
