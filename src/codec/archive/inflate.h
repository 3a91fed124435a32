/* SPDX-License-Identifier: Apache-2.0 */
/* gzip and zlib data, inflated a piece at a time: from whatever input there is, to whatever room
 * there is.
 *   packing  how a file is packed
 *   member   a gzip file is one or several of them behind each other, and zeros behind the last
 *   room     what inflating keeps: given by the caller, about 90 KB whatever the data is
 *
 * The pieces may have any length, so data that promises to become huge costs time only, and only as
 * far as somebody asks for it. All checksums are checked; the data before a checksum has been given
 * out by then. Behind the first fault there is nothing more, and up to 64 KiB before it may be
 * missing: they were not yet given out. What is only cut off gives all that it has, and the fault
 * then.
 *
 * Messages say what is wrong, at which byte of the packed data (where reading had come to) and of
 * the unpacked data; the caller says in which file. Never allocates. One thread at a time for each;
 * no globals. */
#ifndef PL_CODEC_ARCHIVE_INFLATE_H
#define PL_CODEC_ARCHIVE_INFLATE_H

#include "base/base.h"

typedef enum pl_packing {
    PL_PACKING_NONE,
    PL_PACKING_GZIP,
    PL_PACKING_ZLIB,
    PL_PACKING_AUTO, /* to be found out by whoever opens the file; pl_inflate_begin() takes none */
} pl_packing;

/* By how the file begins. Of text that is not packed, some lines begin as zlib data does ("x^2"):
 * whoever knows better what the file would be looks at that first. */
pl_packing pl_packing_guess(const void *bytes, size_t n);

const char *pl_packing_name(pl_packing packing);

/* Data of `n` packed bytes has at most so many. UINT64_MAX if that is over 2^64. */
uint64_t pl_packing_most_bytes(pl_packing packing, uint64_t n);

typedef struct pl_inflate pl_inflate;

size_t pl_inflate_bytes(void);

/* In a room of pl_inflate_bytes(), aligned to 64; the same room may be begun in again. There is
 * nothing to end. */
pl_inflate *pl_inflate_begin(void *room, pl_packing packing);

typedef struct pl_inflate_piece {
    const uint8_t *in; /* moved on by what was taken */
    size_t n_in;
    uint8_t *out; /* moved on by what was given */
    size_t n_out;
    bool last; /* there is no input behind this one */
} pl_inflate_piece;

/* 1: either all input is taken, or all room is filled: call again with more; 0: all data has been
 * given. PL_ECORRUPT; `out` then has moved by what came before the fault. */
PL_MUST_CHECK int pl_inflate_go_on(pl_inflate *inflate, pl_inflate_piece *piece, pl_error *reterr);

#endif
