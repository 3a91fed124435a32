/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is looked at from its beginning to its end, a piece at a time; unpacked on the way if
 * it is packed.
 *   window  memory of fixed size that the file passes through; claimed, and larger only while
 *           something that is to lie in it whole is
 *   at, n   what is in the window and not yet taken
 *   offset  of the byte at `at`, unpacked, from the beginning of the file
 *
 * Whoever finds too few bytes asks for more: what is not taken stays, and moves to the front.
 * Behind what cannot be read or unpacked there is nothing: it is told once, and then the window is
 * at the end, until another place is gone to. One thread at a time. */
#ifndef PL_DATA_READER_FILE_WINDOW_H
#define PL_DATA_READER_FILE_WINDOW_H

#include "data/reader/byte_stream.h"
#include "tensor/memory.h"

/* Stays in a core's cache between reading and parsing; reading more at a time gains nothing. */
#define PL_FILE_WINDOW_BYTES (256 * PL_KIB)

typedef struct pl_file_window {
    pl_byte_stream stream;
    uint64_t usual_bytes; /* of the window */
    uint64_t most_bytes;  /* it does not grow beyond, unless more are asked for; 0: it does */
    pl_block block;
    const char *at;
    size_t n;
    uint64_t offset;
    bool is_last; /* nothing is behind these */
} pl_file_window;

/* `path` and `memory` are borrowed. `window_bytes` 0: as above. PL_PACKING_AUTO knows gzip by how
 * the file begins; zlib has to be told, because some texts begin like it. PL_EBUDGET; -ENOENT and
 * so on; -EINVAL: no regular file. */
PL_MUST_CHECK int pl_file_window_init(pl_file_window *window, const char *path, pl_packing packing,
                                      uint64_t window_bytes, pl_memory *memory, pl_error *reterr);
void pl_file_window_done(pl_file_window *window); /* one that is all zero is left alone */

static inline const char *pl_file_window_path(const pl_file_window *window)
{
    return window->stream.path;
}

/* No more bytes than this are in the window and behind it. */
PL_MUST_CHECK int pl_file_window_most_left(pl_file_window *window, uint64_t *ret_bytes,
                                           pl_error *reterr);

/* At least `need` bytes are there then, or all that the file has left. PL_EBUDGET if they would be
 * too many; PL_ECORRUPT for what cannot be unpacked; -EIO and so on. */
PL_MUST_CHECK int pl_file_window_more(pl_file_window *window, uint64_t need, pl_error *reterr);

/* Goes on behind `n` bytes of those that are there. */
static inline void pl_file_window_take(pl_file_window *window, size_t n)
{
    window->at += n;
    window->n -= n;
    window->offset += n;
}

/* To any place of the file, its end included; near ones cost nothing, but where it is packed all
 * before that is unpacked again. PL_ECORRUPT if it ends before. */
PL_MUST_CHECK int pl_file_window_seek(pl_file_window *window, uint64_t offset, pl_error *reterr);

/* Takes the next `n` bytes, however many, to `to`. PL_ECORRUPT if there are fewer. */
PL_MUST_CHECK int pl_file_window_read(pl_file_window *window, void *to, uint64_t n,
                                      pl_error *reterr);

#endif
