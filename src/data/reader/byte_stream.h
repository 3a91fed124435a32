/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file from its beginning to its end, unpacked on the way if it is packed.
 *   offset  of bytes as they are given: unpacked
 *   room    what unpacking needs, claimed from the account: 0 for a file that is not packed
 *
 * Nothing is read ahead but for the 64 KiB of packed bytes that are being unpacked, and the file is
 * never mapped: one that is cut off meanwhile is an error, not a signal. One thread at a time. */
#ifndef PL_DATA_READER_BYTE_STREAM_H
#define PL_DATA_READER_BYTE_STREAM_H

#include "base/base.h"
#include "codec/archive/inflate.h"
#include "tensor/memory.h"

typedef struct pl_byte_stream {
    const char *path; /* borrowed */
    int fd;
    pl_packing packing;
    uint64_t offset;      /* of the next byte that is given */
    uint64_t file_offset; /* of the next byte that is read */
    pl_memory *memory;    /* borrowed */
    pl_block room;
    pl_inflate *inflate;    /* NULL: not packed */
    pl_inflate_piece piece; /* what is read and not yet unpacked */
    bool ended;             /* all was unpacked */
    pl_error failure;       /* code 0: none; else told again by each call until a seek */
} pl_byte_stream;

/* A regular file, as if it were not packed. -ENOENT and so on. */
PL_MUST_CHECK int pl_byte_stream_init(pl_byte_stream *stream, const char *path, pl_memory *memory,
                                      pl_error *reterr);
void pl_byte_stream_done(pl_byte_stream *stream);

/* The first bytes of the file as they lie there, at most `n`; the stream stays where it is. */
PL_MUST_CHECK int pl_byte_stream_peek(pl_byte_stream *stream, void *bytes, size_t n, size_t *ret_n,
                                      pl_error *reterr);

/* Before anything is read: the file is packed so. PL_EBUDGET. */
PL_MUST_CHECK int pl_byte_stream_unpack(pl_byte_stream *stream, pl_packing packing,
                                        pl_error *reterr);

/* What that takes of the account. */
uint64_t pl_byte_stream_room_bytes(pl_packing packing);

/* The next `n` bytes; fewer at the end only, or before a fault, which the next call tells.
 * PL_ECORRUPT for what cannot be unpacked; -EIO and so on. */
PL_MUST_CHECK int pl_byte_stream_read(pl_byte_stream *stream, void *to, size_t n, size_t *ret_n,
                                      pl_error *reterr);

/* To any offset, the end included. Where the file is packed all before it is unpacked again, into
 * `scratch`, and again from the beginning to go back. PL_ECORRUPT if there are not so many bytes.
 */
PL_MUST_CHECK int pl_byte_stream_seek(pl_byte_stream *stream, uint64_t offset, void *scratch,
                                      size_t scratch_bytes, pl_error *reterr);

/* No more than this can follow: what is left of the file, or the most that it can be unpacked to.
 */
PL_MUST_CHECK int pl_byte_stream_most_left(pl_byte_stream *stream, uint64_t *ret_bytes,
                                           pl_error *reterr);

#endif
