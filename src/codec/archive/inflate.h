/* SPDX-License-Identifier: Apache-2.0 */
/* Inflates gzip and zlib data piece by piece, with any amount of input and output space.
 *   packing  how a file is packed
 *   member   a gzip file has one or more, one after the other, and zeros after the last
 *   room     the inflater's memory: from the caller, about 90 KB for any data
 *
 * The pieces may have any length, so data that expands enormously costs only time, and only as far
 * as the caller asks for it. All checksums are checked; the data before a checksum has been given
 * out by then. The first error ends the output, and up to 64 KiB before it may be missing: they
 * were not yet given out. Truncated data is given out in full, followed by the error.
 *
 * Messages say what is wrong, at which byte of the packed data (where reading was) and of the
 * unpacked data; the caller adds the file. Never allocates. One thread at a time for each; no
 * globals. */
#ifndef PL_CODEC_ARCHIVE_INFLATE_H
#define PL_CODEC_ARCHIVE_INFLATE_H

#include "base/base.h"

typedef enum pl_packing {
    PL_PACKING_NONE,
    PL_PACKING_GZIP,
    PL_PACKING_ZLIB,
    PL_PACKING_AUTO, /* the reader of the file finds out; not for pl_inflate_begin() */
} pl_packing;

/* Guesses by the first bytes of the file. Some lines of plain text begin as zlib data does ("x^2"):
 * a caller that expects a certain format should look for that first. */
pl_packing pl_packing_guess(const void *bytes, size_t n);

const char *pl_packing_name(pl_packing packing);

/* Returns the most bytes that `n` packed bytes can unpack to; UINT64_MAX if over 2^64. */
uint64_t pl_packing_most_bytes(pl_packing packing, uint64_t n);

typedef struct pl_inflate pl_inflate;

size_t pl_inflate_bytes(void);

/* Begins in a room of pl_inflate_bytes(), aligned to 64; may begin again in the same room. Needs no
 * end. */
pl_inflate *pl_inflate_begin(void *room, pl_packing packing);

typedef struct pl_inflate_piece {
    const uint8_t *in; /* moved past the bytes taken */
    size_t n_in;
    uint8_t *out; /* moved past the bytes given */
    size_t n_out;
    bool last; /* no input follows this piece */
} pl_inflate_piece;

/* Returns 1 when all input is taken, or all room is filled: call again with more; 0 when all data
 * has been given. PL_ECORRUPT; `out` is then past the data before the error. */
PL_MUST_CHECK int pl_inflate_go_on(pl_inflate *inflate, pl_inflate_piece *piece, pl_error *reterr);

#endif
