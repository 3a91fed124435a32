/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes PNG with libdeflate, which inflates twice as fast as zlib but only all at once. For most
 * pictures the inflated data is the pixels, apart from the filters: see png_filter.h. For the
 * others (passes, palettes, other bits or channels) libspng makes the pixels. No other file uses
 * either library.
 *
 *   file -> chunks, their checksums -> inflated -> unfiltered
 *                                               -> the same picture, not compressed -> libspng
 *
 * libspng inflates by itself. So we give it a PNG that is made while it reads: the chunks that it
 * needs, and the filtered rows as "stored" blocks, which costs it a copy. */
#include <errno.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <spng.h>
#include <string.h>

#include "codec/image/image_private.h"
#include "codec/image/png_chunks.h"
#include "codec/image/png_filter.h"

/* The objects of libspng and zlib, and libdeflate's tables. */
#define FIXED_BYTES (192 * PL_KIB)

/* Rows that libspng keeps: two filtered, one of up to 8 bytes a pixel, and the tables for it. */
enum { ROWS_KEPT = 4 };

/* Four samples of 16 bits. */
enum { WIDE_PIXEL_BYTES = 8 };

/* The most that a stored block holds. */
enum { BLOCK_BYTES = 65535 };

/* ---- memory ---- */

/* libspng cannot make grey from colours, or alpha beside grey: it makes RGB or RGBA of them, a row
 * at a time, but passes go over all rows again. */
static bool needs_rows(const pl_png *png, int channels)
{
    if (channels == 1)
        return png->colour != PL_PNG_GREY || png->bits > 8;
    return channels == 2;
}

/* Does the file have the requested samples? */
static bool is_plain(const pl_png *png, int channels, pl_image_samples samples)
{
    static const int by_colour[] = {
        [PL_PNG_GREY] = 1, [PL_PNG_RGB] = 3, [PL_PNG_GREY_ALPHA] = 2, [PL_PNG_RGBA] = 4};
    int bits = samples == PL_IMAGE_U8 ? 8 : 16;
    return png->bits == bits && !png->interlaced && channels == by_colour[png->colour];
}

/* libspng makes only RGBA from 16 bits. */
static bool needs_wide_rows(const pl_png *png, int channels)
{
    return !is_plain(png, channels, PL_IMAGE_U16) && channels != 4;
}

static uint64_t rows_bytes(const pl_png *png, int channels, pl_image_samples samples)
{
    uint64_t n_pixels = (png->interlaced ? png->height : UINT64_C(1)) * png->width;
    if (samples != PL_IMAGE_U8 && png->bits == 16)
        return needs_wide_rows(png, channels) ? pl_mul_sat_u64(n_pixels, WIDE_PIXEL_BYTES) : 0;
    return needs_rows(png, channels) ? n_pixels * (channels == 1 ? 3 : 4) : 0;
}

static uint64_t gathered_bytes(const pl_png *png)
{
    return png->n_data > 1 ? png->data_bytes : 0;
}

int pl_png_header(const uint8_t *bytes, size_t n, pl_image *image, pl_error *reterr)
{
    pl_png png;
    int r = pl_png_parse(bytes, n, &png, reterr);
    if (r < 0)
        return r;
    image->height = png.height;
    image->width = png.width;
    image->file_channels = png.channels;
    image->channels = image->channels ? image->channels : png.channels;
    image->work_bytes = pl_add_sat_u64(png.filtered_bytes + gathered_bytes(&png),
                                       rows_bytes(&png, image->channels, image->samples));
    image->library_bytes = FIXED_BYTES + ROWS_KEPT * (png.row_bytes + 8 * (uint64_t)png.width);
    return 0;
}

bool pl_png_is_wide(const uint8_t *bytes, size_t n)
{
    pl_png png;
    return pl_png_parse(bytes, n, &png, NULL) == 0 && png.bits == 16;
}

/* ---- inflating ---- */

static int check_sums(const uint8_t *bytes, size_t n, pl_error *reterr)
{
    pl_png_chunk chunk = {0};
    while (pl_png_next(bytes, n, &chunk)) {
        uint32_t sum = libdeflate_crc32(0, chunk.at + 4, (size_t)chunk.n + 4);
        if (sum != pl_big_u32(pl_png_data_of(chunk) + chunk.n)) {
            size_t at = (size_t)(chunk.at - bytes);
            pl_error_set(reterr, PL_ECORRUPT,
                         "the PNG is corrupt: the checksum of the chunk at byte %zu does not match",
                         at);
            pl_error_at_byte(reterr, at);
            return PL_ECORRUPT;
        }
        if (pl_png_is(chunk, "IEND"))
            break;
    }
    return 0;
}

/* Joins the data chunks. */
static const uint8_t *gather(const uint8_t *bytes, size_t n, const pl_png *png, uint8_t *room)
{
    pl_png_chunk chunk = png->first_data;
    if (png->n_data == 1)
        return pl_png_data_of(chunk);
    uint8_t *to = room;
    for (int64_t i = 0; i < png->n_data; i++) {
        memcpy(to, pl_png_data_of(chunk), chunk.n);
        to += chunk.n;
        if (!pl_png_next(bytes, n, &chunk))
            break; /* cannot happen: it was parsed before */
    }
    return room;
}

static int inflate_all(const uint8_t *data, const pl_png *png, uint8_t *filtered, pl_error *reterr)
{
    static const char *const why[] = {[LIBDEFLATE_BAD_DATA] = "its data cannot be inflated",
                                      [LIBDEFLATE_SHORT_OUTPUT] = "its data is too short",
                                      [LIBDEFLATE_INSUFFICIENT_SPACE] = "its data is too long"};
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    if (!d)
        return pl_error_set(reterr, -ENOMEM, "no memory to decode a PNG");
    enum libdeflate_result result = libdeflate_zlib_decompress(
        d, data, (size_t)png->data_bytes, filtered, (size_t)png->filtered_bytes, NULL);
    libdeflate_free_decompressor(d);
    if (result == LIBDEFLATE_SUCCESS)
        return 0;
    return pl_error_set(reterr, PL_ECORRUPT,
                        "the PNG is corrupt: %s for %" PRIu32 " x %" PRIu32 " pixels", why[result],
                        png->height, png->width);
}

/* ---- the picture as libspng reads it ---- */

/* A sequence of pieces: the rest of the current one, and the next ones. */
typedef struct stream {
    const uint8_t *at;
    size_t left;
    const pl_png *png;
    const uint8_t *bytes, *filtered;
    uint64_t done;     /* of the filtered bytes */
    uint8_t small[24]; /* holds a piece that is made here */
    enum { HEAD, PALETTE, TRANSPARENCY, BLOCK_HEAD, BLOCK, BLOCK_END, LAST } next;
} stream;

static void put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static size_t block_bytes(const stream *s)
{
    return (size_t)pl_min_u64(BLOCK_BYTES, s->png->filtered_bytes - s->done);
}

/* Writes a chunk with one stored block: the length and, in the first chunk, the zlib header. */
static void make_block_head(stream *s)
{
    size_t n = block_bytes(s), used = 8;
    bool first = s->done == 0, last = s->done + n == s->png->filtered_bytes;
    put_u32(s->small, (uint32_t)(n + 5 + (first ? 2 : 0) + (last ? 4 : 0)));
    memcpy(s->small + 4, "IDAT", 4);
    if (first) {
        s->small[used++] = 0x78;
        s->small[used++] = 0x01;
    }
    s->small[used++] = last;
    s->small[used++] = (uint8_t)n;
    s->small[used++] = (uint8_t)(n >> 8);
    s->small[used++] = (uint8_t)~n;
    s->small[used++] = (uint8_t)(~n >> 8);
    s->at = s->small;
    s->left = used;
}

/* Writes checksums that nobody reads: the originals were checked before. */
static void make_block_end(stream *s)
{
    bool last = s->done == s->png->filtered_bytes;
    memset(s->small, 0, sizeof s->small);
    s->at = s->small;
    s->left = last ? 8 : 4;
    s->next = last ? LAST : BLOCK_HEAD;
}

static void take_chunk(stream *s, pl_png_chunk chunk)
{
    s->at = chunk.at;
    s->left = chunk.at ? (size_t)chunk.n + PL_PNG_CHUNK_BYTES : 0;
}

static bool next_piece(stream *s)
{
    static const uint8_t end[] = "\0\0\0\0IEND\xae\x42\x60\x82";
    switch (s->next) {
    case HEAD:
        s->at = s->bytes;
        s->left = PL_PNG_SIGNATURE_BYTES + PL_PNG_CHUNK_BYTES + 13;
        s->next = PALETTE;
        return true;
    case PALETTE:
        take_chunk(s, s->png->palette);
        s->next = TRANSPARENCY;
        return true;
    case TRANSPARENCY:
        take_chunk(s, s->png->transparency);
        s->next = BLOCK_HEAD;
        return true;
    case BLOCK_HEAD:
        make_block_head(s);
        s->next = BLOCK;
        return true;
    case BLOCK:
        s->at = s->filtered + s->done;
        s->left = block_bytes(s);
        s->done += s->left;
        s->next = BLOCK_END;
        return true;
    case BLOCK_END:
        make_block_end(s);
        return true;
    case LAST:
        if (s->at == end + sizeof end - 1)
            return false;
        s->at = end;
        s->left = sizeof end - 1;
        return true;
    }
    return false;
}

static int read_stream(spng_ctx *spng, void *user, void *to, size_t n)
{
    stream *s = user;
    (void)spng;
    while (n > 0) {
        if (s->left == 0) {
            if (!next_piece(s))
                return SPNG_IO_EOF;
            continue;
        }
        size_t some = n < s->left ? n : s->left;
        memcpy(to, s->at, some);
        to = (char *)to + some;
        s->at += some;
        s->left -= some;
        n -= some;
    }
    return 0;
}

/* ---- pixels ---- */

static int failed(int code, pl_error *reterr)
{
    if (code == SPNG_EMEM)
        return pl_error_set(reterr, -ENOMEM, "no memory to decode a PNG");
    return pl_error_set(reterr, PL_ECORRUPT, "the PNG is corrupt: %s", spng_strerror(code));
}

/* Reduces a row of RGB or RGBA to the requested channels. */
static void reduce_row(const pl_png *png, const uint8_t *row, int channels, uint8_t *to)
{
    bool colour = (png->colour & 2) != 0;
    int n_from = channels == 1 ? 3 : 4;
    for (uint32_t x = 0; x < png->width; x++, row += n_from, to += channels) {
        to[0] = colour ? pl_grey_of(row) : row[0];
        if (channels == 2)
            to[1] = row[3];
    }
}

/* Does the same for RGBA of 16 bits each. */
static void reduce_wide_row(const pl_png *png, const uint16_t *row, int channels, uint16_t *to)
{
    bool colour = (png->colour & 2) != 0;
    for (uint32_t x = 0; x < png->width; x++, row += 4, to += channels) {
        to[0] =
            channels == 3 || !colour ? row[0] : (uint16_t)pl_grey_of_values(row[0], row[1], row[2]);
        if (channels == 2)
            to[1] = row[3];
        if (channels == 3) {
            to[1] = row[1];
            to[2] = row[2];
        }
    }
}

static int decode_wide_rows(spng_ctx *spng, const pl_png *png, int channels, uint16_t *rows,
                            uint16_t *pixels)
{
    struct spng_row_info info;
    size_t row_bytes = (size_t)png->width * WIDE_PIXEL_BYTES;
    int code = spng_decode_image(spng, NULL, 0, SPNG_FMT_RGBA16,
                                 SPNG_DECODE_TRNS | SPNG_DECODE_PROGRESSIVE);
    while (code == 0 && (code = spng_get_row_info(spng, &info)) == 0) {
        uint16_t *row = rows + (png->interlaced ? info.row_num * (row_bytes / 2) : 0);
        code = spng_decode_row(spng, row, row_bytes);
        if (code == 0 || code == SPNG_EOI)
            reduce_wide_row(png, row, channels,
                            pixels + (size_t)info.row_num * png->width * (size_t)channels);
    }
    return code == SPNG_EOI ? 0 : code;
}

static int decode_wide(spng_ctx *spng, const pl_png *png, const pl_image *image, uint8_t *rows,
                       uint8_t *pixels)
{
    if (needs_wide_rows(png, image->channels))
        return decode_wide_rows(spng, png, image->channels, (void *)rows, (void *)pixels);
    return spng_decode_image(spng, pixels, (size_t)image->pixel_bytes, SPNG_FMT_RGBA16,
                             SPNG_DECODE_TRNS);
}

static int decode_rows(spng_ctx *spng, const pl_png *png, int channels, uint8_t *rows,
                       uint8_t *pixels)
{
    struct spng_row_info info;
    size_t row_bytes = (size_t)png->width * (channels == 1 ? 3 : 4);
    int code = spng_decode_image(spng, NULL, 0, channels == 1 ? SPNG_FMT_RGB8 : SPNG_FMT_RGBA8,
                                 SPNG_DECODE_TRNS | SPNG_DECODE_PROGRESSIVE);
    while (code == 0 && (code = spng_get_row_info(spng, &info)) == 0) {
        uint8_t *row = rows + (png->interlaced ? info.row_num * row_bytes : 0);
        code = spng_decode_row(spng, row, row_bytes);
        if (code == 0 || code == SPNG_EOI)
            reduce_row(png, row, channels,
                       pixels + (size_t)info.row_num * png->width * (size_t)channels);
    }
    return code == SPNG_EOI ? 0 : code;
}

static int decode(spng_ctx *spng, const pl_png *png, const pl_image *image, uint8_t *rows,
                  uint8_t *pixels)
{
    if (image->samples != PL_IMAGE_U8)
        return decode_wide(spng, png, image, rows, pixels);
    if (needs_rows(png, image->channels))
        return decode_rows(spng, png, image->channels, rows, pixels);
    int format = image->channels == 1   ? SPNG_FMT_G8
                 : image->channels == 3 ? SPNG_FMT_RGB8
                                        : SPNG_FMT_RGBA8;
    return spng_decode_image(spng, pixels, (size_t)image->pixel_bytes, format,
                             image->channels == 4 ? SPNG_DECODE_TRNS : 0);
}

static int decode_by_library(const uint8_t *bytes, const pl_png *png, const pl_image *image,
                             const uint8_t *filtered, uint8_t *rows, uint8_t *pixels,
                             pl_error *reterr)
{
    spng_ctx *spng = spng_ctx_new(SPNG_CTX_IGNORE_ADLER32);
    stream s = {.png = png, .bytes = bytes, .filtered = filtered};
    int code = spng ? spng_set_crc_action(spng, SPNG_CRC_USE, SPNG_CRC_USE) : SPNG_EMEM;
    if (code == 0)
        code = spng_set_png_stream(spng, read_stream, &s);
    if (code == 0)
        code = decode(spng, png, image, rows, pixels);
    spng_ctx_free(spng);
    return code == 0 ? 0 : failed(code, reterr);
}

/* Swaps bytes, because a file has the upper byte first. */
static void swap_words(uint8_t *pixels, size_t n_bytes)
{
    uint16_t *words = (void *)pixels;
    for (size_t i = 0; i < n_bytes / 2; i++)
        words[i] = (uint16_t)pl_big_u16(pixels + 2 * i);
}

static int decode_plain(const pl_png *png, const pl_image *image, const uint8_t *filtered,
                        uint8_t *pixels, pl_error *reterr)
{
    size_t pixel_bytes = (size_t)image->channels * (image->samples == PL_IMAGE_U8 ? 1 : 2);
    const pl_png_rows rows = {.height = png->height,
                              .row_bytes = (size_t)png->width * pixel_bytes,
                              .pixel_bytes = pixel_bytes};
    int64_t bad = pl_png_unfilter(&rows, filtered, pixels);
    if (bad < 0 && image->samples != PL_IMAGE_U8)
        swap_words(pixels, (size_t)image->pixel_bytes);
    if (bad < 0)
        return 0;
    return pl_error_set(reterr, PL_ECORRUPT,
                        "the PNG is corrupt: row %" PRId64 " has a filter that there is not", bad);
}

int pl_png_decode(const uint8_t *bytes, size_t n, const pl_image *image, uint8_t *pixels,
                  uint8_t *work, pl_error *reterr)
{
    pl_png png;
    int r = pl_png_parse(bytes, n, &png, reterr);
    if (r == 0)
        r = check_sums(bytes, n, reterr);
    if (r < 0)
        return r;
    uint8_t *rows = work; /* aligned for 16-bit samples */
    uint8_t *filtered = rows + rows_bytes(&png, image->channels, image->samples);
    uint8_t *gathered = filtered + png.filtered_bytes;
    r = inflate_all(gather(bytes, n, &png, gathered), &png, filtered, reterr);
    if (r < 0)
        return r;
    if (is_plain(&png, image->channels, image->samples))
        return decode_plain(&png, image, filtered, pixels, reterr);
    return decode_by_library(bytes, &png, image, filtered, rows, pixels, reterr);
}
