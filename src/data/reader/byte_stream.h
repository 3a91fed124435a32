/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bytes of a file from beginning to end, and unpacks them if the file is packed.
 *   offset  counts unpacked bytes
 *   room    the memory that unpacking needs, claimed from the account: 0 if the file is not packed
 *
 * Reads no more ahead than the 64 KiB of packed bytes that are being unpacked, and never maps the
 * file: one that is truncated meanwhile causes an error, not a signal. One thread at a time. */
#ifndef PL_DATA_READER_BYTE_STREAM_H
#define PL_DATA_READER_BYTE_STREAM_H

#include "base/base.h"
#include "codec/archive/inflate.h"
#include "tensor/memory.h"

typedef struct pl_byte_stream {
    const char *path; /* borrowed */
    int fd;
    pl_packing packing;
    uint64_t offset;      /* of the next byte to return */
    uint64_t file_offset; /* of the next byte to read */
    pl_memory *memory;    /* borrowed */
    pl_block room;
    pl_inflate *inflate;    /* NULL: not packed */
    pl_inflate_piece piece; /* bytes read and not yet unpacked */
    bool ended;             /* everything is unpacked */
    pl_error failure;       /* code 0: none; else each call reports it again, until a seek */
} pl_byte_stream;

/* Opens a regular file as if it were not packed. -ENOENT and so on. */
PL_MUST_CHECK int pl_byte_stream_init(pl_byte_stream *stream, const char *path, pl_memory *memory,
                                      pl_error *reterr);
void pl_byte_stream_done(pl_byte_stream *stream);

/* Reads the first bytes of the file as stored, at most `n`; the stream does not move. */
PL_MUST_CHECK int pl_byte_stream_peek(pl_byte_stream *stream, void *bytes, size_t n, size_t *ret_n,
                                      pl_error *reterr);

/* Says that the file is packed. Call it before reading. PL_EBUDGET. */
PL_MUST_CHECK int pl_byte_stream_unpack(pl_byte_stream *stream, pl_packing packing,
                                        pl_error *reterr);

/* Returns the bytes that unpacking claims from the account. */
uint64_t pl_byte_stream_room_bytes(pl_packing packing);

/* Reads the next `n` bytes; fewer only at the end, or before an error, which the next call reports.
 * PL_ECORRUPT if the data cannot be unpacked; -EIO and so on. */
PL_MUST_CHECK int pl_byte_stream_read(pl_byte_stream *stream, void *to, size_t n, size_t *ret_n,
                                      pl_error *reterr);

/* Moves to any offset, including the end. A packed file is unpacked up to there into `scratch`; to
 * move back, from the beginning. PL_ECORRUPT if the file is shorter. */
PL_MUST_CHECK int pl_byte_stream_seek(pl_byte_stream *stream, uint64_t offset, void *scratch,
                                      size_t scratch_bytes, pl_error *reterr);

/* Gives an upper bound on the bytes left: the rest of the file, or the most that it can unpack
 * to. */
PL_MUST_CHECK int pl_byte_stream_most_left(pl_byte_stream *stream, uint64_t *ret_bytes,
                                           pl_error *reterr);

#endif
