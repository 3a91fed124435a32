/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a PNG file into chunks, and finds those that the picture is made of.
 *   chunk     length, type, data, checksum of type and data
 *   filtered  the inflated data: for each row (of each pass, if it is interlaced) the number of its
 *             filter, and its samples
 *
 * Checks lengths against the file, but not checksums: the reader of the data does. Parses no data
 * but the header's. Borrows the bytes; never allocates. */
#ifndef PL_CODEC_IMAGE_PNG_CHUNKS_H
#define PL_CODEC_IMAGE_PNG_CHUNKS_H

#include "base/base.h"
#include "plimsoll/error.h"

enum {
    PL_PNG_GREY = 0,
    PL_PNG_RGB = 2,
    PL_PNG_PALETTE = 3,
    PL_PNG_GREY_ALPHA = 4,
    PL_PNG_RGBA = 6
};

/* The bytes of length, type and checksum. */
enum { PL_PNG_CHUNK_BYTES = 12, PL_PNG_SIGNATURE_BYTES = 8 };

typedef struct pl_png_chunk {
    const uint8_t *at; /* its length field; NULL: no chunk */
    uint32_t n;        /* bytes of its data */
} pl_png_chunk;

typedef struct pl_png {
    pl_png_chunk header, palette, transparency, first_data;
    uint32_t width, height;
    uint8_t bits, colour, interlaced;
    int channels;            /* of pixels: palette applied, transparency as alpha */
    uint64_t data_bytes;     /* of all data chunks */
    int64_t n_data;          /* number of data chunks */
    uint64_t filtered_bytes; /* of the whole picture */
    uint64_t row_bytes;      /* of the longest row, filtered */
} pl_png;

/* PL_ECORRUPT, or -ENOTSUP. */
PL_MUST_CHECK int pl_png_parse(const uint8_t *bytes, size_t n, pl_png *ret_png, pl_error *reterr);

static inline const uint8_t *pl_png_data_of(pl_png_chunk chunk)
{
    return chunk.at + 8;
}

/* Moves from a chunk found by pl_png_parse() to the next one: false at the end. */
bool pl_png_next(const uint8_t *bytes, size_t n, pl_png_chunk *chunk);

bool pl_png_is(pl_png_chunk chunk, const char type[4]);

#endif
