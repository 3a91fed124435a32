/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file from beginning to end through a window, and unpacks it if it is packed.
 *   window  memory of fixed size that moves over the file; claimed, and larger only while one item
 *           that must be whole does not fit
 *   at, n   the bytes in the window that are not yet taken
 *   offset  of the byte at `at`, unpacked, from the beginning of the file
 *
 * A caller that needs more bytes asks for them: those not yet taken stay, and move to the front. An
 * error in reading or unpacking is reported once; the window is then at the end, until a seek to
 * another place. One thread at a time. */
#ifndef PL_DATA_READER_FILE_WINDOW_H
#define PL_DATA_READER_FILE_WINDOW_H

#include "data/reader/byte_stream.h"
#include "tensor/memory.h"

/* Fits into a core's cache between reading and parsing; reading more at a time gains nothing. */
#define PL_FILE_WINDOW_BYTES (256 * PL_KIB)

typedef struct pl_file_window {
    pl_byte_stream stream;
    uint64_t usual_bytes; /* of the window */
    uint64_t most_bytes;  /* limit on its growth, unless a call asks for more; 0: no limit */
    pl_block block;
    const char *at;
    size_t n;
    uint64_t offset;
    bool is_last; /* these are the last bytes */
} pl_file_window;

/* Borrows `path` and `memory`. `window_bytes` 0: as above. PL_PACKING_AUTO recognises gzip by the
 * first bytes; zlib must be named, because some texts begin like it. PL_EBUDGET; -ENOENT and so on;
 * -EINVAL: not a regular file. */
PL_MUST_CHECK int pl_file_window_init(pl_file_window *window, const char *path, pl_packing packing,
                                      uint64_t window_bytes, pl_memory *memory, pl_error *reterr);
void pl_file_window_done(pl_file_window *window); /* leaves an all-zero one alone */

static inline const char *pl_file_window_path(const pl_file_window *window)
{
    return window->stream.path;
}

/* Gives an upper bound on the bytes in the window and after it. */
PL_MUST_CHECK int pl_file_window_most_left(pl_file_window *window, uint64_t *ret_bytes,
                                           pl_error *reterr);

/* Reads until the window has `need` bytes, or the rest of the file. PL_EBUDGET if that is too many;
 * PL_ECORRUPT if the data cannot be unpacked; -EIO and so on. */
PL_MUST_CHECK int pl_file_window_more(pl_file_window *window, uint64_t need, pl_error *reterr);

/* Takes `n` of the bytes in the window. */
static inline void pl_file_window_take(pl_file_window *window, size_t n)
{
    window->at += n;
    window->n -= n;
    window->offset += n;
}

/* Moves to any place of the file, including its end. A near place costs nothing, but a packed file
 * is unpacked again up to there. PL_ECORRUPT if the file is shorter. */
PL_MUST_CHECK int pl_file_window_seek(pl_file_window *window, uint64_t offset, pl_error *reterr);

/* Copies the next `n` bytes, any number, to `to`. PL_ECORRUPT if the file is shorter. */
PL_MUST_CHECK int pl_file_window_read(pl_file_window *window, void *to, uint64_t n,
                                      pl_error *reterr);

#endif
