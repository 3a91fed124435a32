/* SPDX-License-Identifier: Apache-2.0 */
/* See file_window.h. */
#include "data/reader/file_window.h"

#include <inttypes.h>
#include <string.h>

/* ---- its life ---- */

static int find_packing(pl_byte_stream *stream, pl_packing *packing, pl_error *reterr)
{
    uint8_t bytes[16];
    size_t n;
    if (*packing != PL_PACKING_AUTO)
        return 0;
    int r = pl_byte_stream_peek(stream, bytes, sizeof bytes, &n, reterr);
    if (r < 0)
        return r;
    bool is_gzip = pl_packing_guess(bytes, n) == PL_PACKING_GZIP;
    *packing = is_gzip ? PL_PACKING_GZIP : PL_PACKING_NONE;
    return 0;
}

static int open_stream(pl_byte_stream *stream, const char *path, pl_packing packing,
                       pl_memory *memory, pl_error *reterr)
{
    int r = pl_byte_stream_init(stream, path, memory, reterr);
    if (r < 0)
        return r;
    r = find_packing(stream, &packing, reterr);
    if (r == 0)
        r = pl_byte_stream_unpack(stream, packing, reterr);
    if (r < 0)
        pl_byte_stream_done(stream);
    return r;
}

int pl_file_window_init(pl_file_window *window, const char *path, pl_packing packing,
                        uint64_t window_bytes, pl_memory *memory, pl_error *reterr)
{
    pl_file_window made = {.usual_bytes = window_bytes ? window_bytes : PL_FILE_WINDOW_BYTES};
    int r = open_stream(&made.stream, path, packing, memory, reterr);
    if (r < 0)
        return r;
    r = pl_memory_take(memory, made.usual_bytes, "a window", &made.block, reterr);
    if (r < 0) {
        pl_error_in_file(reterr, path);
        pl_byte_stream_done(&made.stream);
        return r;
    }
    made.at = made.block.data;
    *window = made;
    return 0;
}

void pl_file_window_done(pl_file_window *window)
{
    if (!window->block.data)
        return;
    pl_memory_give(window->stream.memory, &window->block);
    pl_byte_stream_done(&window->stream);
    *window = (pl_file_window){0};
}

/* ---- reading ---- */

int pl_file_window_most_left(pl_file_window *window, uint64_t *ret_bytes, pl_error *reterr)
{
    uint64_t behind;
    int r = pl_byte_stream_most_left(&window->stream, &behind, reterr);
    if (r == 0)
        *ret_bytes = pl_add_sat_u64(window->n, behind);
    return r;
}

/* Chooses a window size for `need` bytes: twice the current size if that is too small, so that a
 * record of any length is copied only twice on the way; but not more than the rest of the file. A
 * block over a MiB is released as soon as possible. */
static int fitting_bytes(pl_file_window *window, uint64_t need, uint64_t *ret_bytes,
                         pl_error *reterr)
{
    uint64_t now = window->block.bytes, left;
    if (need <= window->usual_bytes) {
        *ret_bytes = now <= PL_MIB ? now : window->usual_bytes;
        return 0;
    }
    *ret_bytes = now;
    if (need <= now)
        return 0;
    int r = pl_file_window_most_left(window, &left, reterr);
    uint64_t larger = window->most_bytes ? pl_min_u64(2 * now, window->most_bytes) : 2 * now;
    if (r == 0) /* one byte more, to find the end */
        *ret_bytes = pl_clamp_u64(pl_add_sat_u64(left, 1), now, pl_max_u64(need, larger));
    return r;
}

/* Moves the unread bytes to the front, of another block if this one has the wrong size. A block
 * that is only too large is kept if there is no room for both. */
static int settle(pl_file_window *window, uint64_t bytes, pl_error *reterr)
{
    pl_block old = window->block;
    bool another = bytes != old.bytes;
    pl_memory *memory = window->stream.memory;
    if (another) {
        int r = pl_memory_take(memory, bytes, "a window", &window->block, reterr);
        if (r < 0 && bytes > old.bytes)
            return r;
        another = r == 0;
    }
    if (window->n > 0)
        memmove(window->block.data, window->at, window->n);
    window->at = window->block.data;
    if (another)
        pl_memory_give(memory, &old);
    return 0;
}

/* Fills the window, or finds the end. */
static int fill(pl_file_window *window, pl_error *reterr)
{
    size_t got = 0, room = window->block.bytes - window->n;
    if (room == 0)
        return 0;
    int r = pl_byte_stream_read(&window->stream, (char *)window->block.data + window->n, room, &got,
                                reterr);
    if (r < 0) { /* the first part is of no use without the rest */
        window->offset += window->n;
        window->n = 0;
    }
    window->n += got;
    window->is_last = got == 0;
    return r;
}

int pl_file_window_more(pl_file_window *window, uint64_t need, pl_error *reterr)
{
    while (window->n < need && !window->is_last) {
        uint64_t bytes;
        int r = fitting_bytes(window, need, &bytes, reterr);
        if (r == 0)
            r = settle(window, bytes, reterr);
        if (r == 0)
            r = fill(window, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

int pl_file_window_seek(pl_file_window *window, uint64_t offset, pl_error *reterr)
{
    /* After a failure the window is empty, wherever it stands. */
    bool is_empty = window->n == 0 && window->is_last;
    if (!is_empty && offset >= window->offset && offset - window->offset <= window->n) {
        pl_file_window_take(window, (size_t)(offset - window->offset));
        return 0;
    }
    window->n = 0;
    window->at = window->block.data;
    window->is_last = true; /* unless the place exists */
    int r = pl_byte_stream_seek(&window->stream, offset, window->block.data, window->block.bytes,
                                reterr);
    if (r < 0)
        return r;
    window->offset = offset;
    window->is_last = false;
    return 0;
}

static int refuse_end(const pl_file_window *window, uint64_t missing, pl_error *reterr)
{
    pl_error_set(reterr, PL_ECORRUPT, "it ends here, and %" PRIu64 " bytes are missing", missing);
    pl_error_in_file(reterr, pl_file_window_path(window));
    pl_error_at_offset(reterr, window->offset);
    return PL_ECORRUPT;
}

int pl_file_window_read(pl_file_window *window, void *to, uint64_t n, pl_error *reterr)
{
    if (n <= window->usual_bytes / 4) { /* several at a time */
        int r = pl_file_window_more(window, n, reterr);
        if (r < 0)
            return r;
    }
    uint64_t had = pl_min_u64(n, window->n);
    memcpy(to, window->at, had);
    pl_file_window_take(window, had);
    while (had < n) {
        size_t got = 0;
        int r = pl_byte_stream_read(&window->stream, (char *)to + had, n - had, &got, reterr);
        if (r == 0 && got == 0)
            r = refuse_end(window, n - had, reterr);
        window->is_last = r < 0;
        if (r < 0)
            return r;
        had += got;
        window->offset += got;
    }
    return 0;
}
