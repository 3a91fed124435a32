/* SPDX-License-Identifier: Apache-2.0 */
/* See png_chunks.h. */
#include "codec/image/png_chunks.h"

#include <errno.h>
#include <string.h>

#include "codec/image/image_private.h"

static int corrupt(size_t at, const char *what, pl_error *reterr)
{
    pl_error_set(reterr, PL_ECORRUPT, "the PNG is corrupt at byte %zu: %s", at, what);
    pl_error_at_byte(reterr, at);
    return PL_ECORRUPT;
}

static int cut_off(size_t n, pl_error *reterr)
{
    pl_error_set(reterr, PL_ECORRUPT, "the PNG is cut off: it ends after %zu bytes", n);
    pl_error_at_byte(reterr, n);
    return PL_ECORRUPT;
}

bool pl_png_is(pl_png_chunk chunk, const char type[4])
{
    return memcmp(chunk.at + 4, type, 4) == 0;
}

bool pl_png_next(const uint8_t *bytes, size_t n, pl_png_chunk *chunk)
{
    size_t at = chunk->at ? (size_t)(chunk->at - bytes) + chunk->n + PL_PNG_CHUNK_BYTES
                          : PL_PNG_SIGNATURE_BYTES;
    if (at > n || n - at < PL_PNG_CHUNK_BYTES)
        return false;
    uint32_t length = pl_big_u32(bytes + at);
    if (length > n - at - PL_PNG_CHUNK_BYTES)
        return false;
    *chunk = (pl_png_chunk){bytes + at, length};
    return true;
}

/* ---- the header ---- */

static bool bits_fit(uint8_t colour, uint8_t bits)
{
    bool power = bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16;
    switch (colour) {
    case PL_PNG_GREY:
        return power;
    case PL_PNG_PALETTE:
        return power && bits <= 8;
    case PL_PNG_RGB:
    case PL_PNG_GREY_ALPHA:
    case PL_PNG_RGBA:
        return bits == 8 || bits == 16;
    default:
        return false;
    }
}

static int n_samples(uint8_t colour)
{
    static const int n[] = {[PL_PNG_GREY] = 1,
                            [PL_PNG_RGB] = 3,
                            [PL_PNG_PALETTE] = 1,
                            [PL_PNG_GREY_ALPHA] = 2,
                            [PL_PNG_RGBA] = 4};
    return n[colour];
}

static uint64_t row_bytes_of(const pl_png *png, uint64_t width)
{
    return 1 + (width * (uint64_t)n_samples(png->colour) * png->bits + 7) / 8;
}

/* Counts the seven passes of an interlaced picture: each takes every step-th pixel from its first
 * on. */
static void count_filtered(pl_png *png)
{
    static const uint8_t x0[] = {0, 4, 0, 2, 0, 1, 0}, x_step[] = {8, 8, 4, 4, 2, 2, 1};
    static const uint8_t y0[] = {0, 0, 4, 0, 2, 0, 1}, y_step[] = {8, 8, 8, 4, 4, 2, 2};
    png->row_bytes = row_bytes_of(png, png->width);
    png->filtered_bytes = png->row_bytes * png->height;
    if (!png->interlaced)
        return;
    png->filtered_bytes = 0;
    for (int i = 0; i < 7; i++) {
        uint64_t w = ((uint64_t)png->width + x_step[i] - 1 - x0[i]) / x_step[i];
        uint64_t h = ((uint64_t)png->height + y_step[i] - 1 - y0[i]) / y_step[i];
        if (w > 0)
            png->filtered_bytes += h * row_bytes_of(png, w);
    }
}

static int read_header(pl_png *png, pl_error *reterr)
{
    const uint8_t *p = pl_png_data_of(png->header);
    enum { AT = PL_PNG_SIGNATURE_BYTES };
    if (!pl_png_is(png->header, "IHDR") || png->header.n != 13)
        return corrupt(AT, "its first chunk is not a header", reterr);
    png->width = pl_big_u32(p);
    png->height = pl_big_u32(p + 4);
    png->bits = p[8];
    png->colour = p[9];
    png->interlaced = p[12];
    if (png->width == 0 || png->height == 0 || png->width > INT32_MAX || png->height > INT32_MAX)
        return corrupt(AT + 8, "its height or width is 0, or over 2^31", reterr);
    if (!bits_fit(png->colour, png->bits))
        return corrupt(AT + 16, "it has a kind of colours that there is not", reterr);
    if (p[10] != 0 || p[11] != 0 || p[12] > 1)
        return corrupt(AT + 18, "it is packed in a way that there is not", reterr);
    count_filtered(png);
    return 0;
}

/* ---- all of it ---- */

static bool is_before_data(const pl_png *png)
{
    return png->n_data == 0;
}

/* done: it was the last chunk. */
static int take_chunk(pl_png *png, pl_png_chunk chunk, size_t at, bool after_data, bool *done,
                      pl_error *reterr)
{
    bool critical = !(chunk.at[4] & 0x20);
    if (pl_png_is(chunk, "IDAT")) {
        if (after_data)
            return corrupt(at, "its data has other chunks within", reterr);
        png->first_data = is_before_data(png) ? chunk : png->first_data;
        png->data_bytes += chunk.n;
        png->n_data++;
    } else if (pl_png_is(chunk, "PLTE") && is_before_data(png)) {
        if (png->palette.at || chunk.n == 0 || chunk.n % 3 != 0 || chunk.n > 768)
            return corrupt(at, "its palette has no whole colours, or there are two", reterr);
        png->palette = chunk;
    } else if (pl_png_is(chunk, "tRNS") && is_before_data(png)) {
        png->transparency = chunk;
    } else if (pl_png_is(chunk, "IEND")) {
        *done = true;
    } else if (critical && !pl_png_is(chunk, "PLTE")) {
        return corrupt(at, "it has a chunk that must be understood, and is not", reterr);
    }
    return 0;
}

/* Transparency that cannot be applied would be corrupt; TensorFlow's reader ignores it with
 * alpha. */
static int check_transparency(pl_png *png, size_t at, pl_error *reterr)
{
    uint32_t n = png->transparency.n;
    if (!png->transparency.at)
        return 0;
    bool fits = png->colour == PL_PNG_GREY      ? n == 2
                : png->colour == PL_PNG_RGB     ? n == 6
                : png->colour == PL_PNG_PALETTE ? n > 0 && n <= png->palette.n / 3
                                                : false;
    return fits ? 0 : corrupt(at, "its transparency does not fit its colours", reterr);
}

static int check_all(pl_png *png, const uint8_t *bytes, size_t n, pl_error *reterr)
{
    if (png->n_data == 0)
        return corrupt(n, "it has no data", reterr);
    if (png->colour == PL_PNG_PALETTE && !png->palette.at)
        return corrupt((size_t)(png->first_data.at - bytes), "its palette is missing", reterr);
    if (png->transparency.at) {
        int r = check_transparency(png, (size_t)(png->transparency.at - bytes), reterr);
        if (r < 0)
            return r;
    }
    png->channels =
        png->colour == PL_PNG_PALETTE ? 3 + (png->transparency.at != NULL) : n_samples(png->colour);
    return 0;
}

int pl_png_parse(const uint8_t *bytes, size_t n, pl_png *ret_png, pl_error *reterr)
{
    static const uint8_t signature[PL_PNG_SIGNATURE_BYTES] = {0x89, 'P',  'N',  'G',
                                                              '\r', '\n', 0x1a, '\n'};
    pl_png png = {0};
    pl_png_chunk chunk = {0};
    bool done = false, after_data = false;
    if (n < sizeof signature)
        return cut_off(n, reterr);
    if (memcmp(bytes, signature, sizeof signature) != 0)
        return corrupt(4, "its signature was changed, as by a transfer in text mode", reterr);
    if (!pl_png_next(bytes, n, &chunk))
        return cut_off(n, reterr);
    png.header = chunk;
    int r = read_header(&png, reterr);
    while (r == 0 && !done) {
        if (!pl_png_next(bytes, n, &chunk))
            return cut_off(n, reterr);
        after_data = after_data || (png.n_data > 0 && !pl_png_is(chunk, "IDAT"));
        r = take_chunk(&png, chunk, (size_t)(chunk.at - bytes), after_data, &done, reterr);
    }
    if (r == 0)
        r = check_all(&png, bytes, n, reterr);
    if (r == 0)
        *ret_png = png;
    return r;
}
