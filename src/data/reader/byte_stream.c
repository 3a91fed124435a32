/* SPDX-License-Identifier: Apache-2.0 */
/* See byte_stream.h. */
#include "data/reader/byte_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/file.h"

/* Packed bytes to read at a time. */
#define INPUT_BYTES (64 * PL_KIB)

/* The bytes that the inflater may have taken and not yet given out: 64 KiB unpacked, and the header
 * of a block, up to 336 bytes packed. */
#define HELD_BYTES (512 * PL_KIB)

static uint64_t inflate_room_bytes(void)
{
    return (pl_inflate_bytes() + PL_MEMORY_ALIGN_BYTES - 1) / PL_MEMORY_ALIGN_BYTES *
           PL_MEMORY_ALIGN_BYTES;
}

uint64_t pl_byte_stream_room_bytes(pl_packing packing)
{
    return packing == PL_PACKING_NONE ? 0 : inflate_room_bytes() + INPUT_BYTES;
}

static int fail(pl_byte_stream *stream, int code, pl_error *reterr)
{
    pl_error_set(reterr, code, "cannot read it: %s", pl_error_text(code));
    pl_error_in_file(reterr, stream->path);
    pl_error_at_offset(reterr, stream->file_offset);
    return code;
}

/* ---- its life ---- */

int pl_byte_stream_init(pl_byte_stream *stream, const char *path, pl_memory *memory,
                        pl_error *reterr)
{
    uint64_t file_bytes = 0;
    int fd = pl_file_open_regular(path, &file_bytes);
    if (fd < 0) {
        pl_error_set(reterr, fd, "cannot read '%.200s': %s", path,
                     fd == -EINVAL ? "it is not a regular file" : pl_error_text(fd));
        pl_error_names_file(reterr, path);
        return fd;
    }
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* lets the kernel read further ahead */
    *stream = (pl_byte_stream){.path = path, .fd = fd, .memory = memory};
    return 0;
}

void pl_byte_stream_done(pl_byte_stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
    if (stream->inflate)
        pl_memory_give(stream->memory, &stream->room);
    stream->inflate = NULL;
}

static void begin(pl_byte_stream *stream)
{
    stream->offset = stream->file_offset = 0;
    stream->ended = false;
    stream->piece = (pl_inflate_piece){0};
    if (stream->inflate)
        stream->inflate = pl_inflate_begin(stream->room.data, stream->packing);
}

int pl_byte_stream_unpack(pl_byte_stream *stream, pl_packing packing, pl_error *reterr)
{
    if (packing == PL_PACKING_NONE)
        return 0;
    int r = pl_memory_take(stream->memory, pl_byte_stream_room_bytes(packing), "unpacking",
                           &stream->room, reterr);
    if (r < 0) {
        pl_error_in_file(reterr, stream->path);
        return r;
    }
    stream->packing = packing;
    stream->inflate = pl_inflate_begin(stream->room.data, packing);
    return 0;
}

/* ---- reading ---- */

/* Reads the file's own bytes: fewer only at its end, or before an error. */
static int read_file(const pl_byte_stream *stream, void *to, size_t n, uint64_t offset,
                     size_t *ret_n)
{
    for (*ret_n = 0; *ret_n < n;) {
        ssize_t got = pread(stream->fd, (char *)to + *ret_n, n - *ret_n, (off_t)(offset + *ret_n));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        *ret_n += (size_t)got;
    }
    return 0;
}

int pl_byte_stream_peek(pl_byte_stream *stream, void *bytes, size_t n, size_t *ret_n,
                        pl_error *reterr)
{
    int r = read_file(stream, bytes, n, 0, ret_n);
    return r < 0 ? fail(stream, r, reterr) : 0;
}

static int read_plain(pl_byte_stream *stream, void *to, size_t n, size_t *ret_n, pl_error *reterr)
{
    int r = read_file(stream, to, n, stream->file_offset, ret_n);
    stream->file_offset += *ret_n;
    return r < 0 ? fail(stream, r, reterr) : 0;
}

static int refill(pl_byte_stream *stream, pl_error *reterr)
{
    pl_inflate_piece *piece = &stream->piece;
    uint8_t *input = (uint8_t *)stream->room.data + inflate_room_bytes();
    piece->in = input;
    int r = read_plain(stream, input, INPUT_BYTES, &piece->n_in, reterr);
    piece->last = r == 0 && piece->n_in < INPUT_BYTES;
    return r;
}

static int inflate_more(pl_byte_stream *stream, pl_error *reterr)
{
    int r = pl_inflate_go_on(stream->inflate, &stream->piece, reterr);
    stream->ended = r == 0;
    if (r < 0)
        pl_error_in_file(reterr, stream->path);
    return r < 0 ? r : 0;
}

static int read_packed(pl_byte_stream *stream, void *to, size_t n, size_t *ret_n, pl_error *reterr)
{
    pl_inflate_piece *piece = &stream->piece;
    int r = 0;
    piece->out = to;
    piece->n_out = n;
    while (r == 0 && piece->n_out > 0 && !stream->ended) {
        if (piece->n_in == 0 && !piece->last)
            r = refill(stream, reterr);
        if (r == 0)
            r = inflate_more(stream, reterr);
    }
    *ret_n = n - piece->n_out;
    return r;
}

/* Reports the earlier failure again. */
static int fail_again(const pl_byte_stream *stream, pl_error *reterr)
{
    return pl_error_copy(reterr, &stream->failure);
}

int pl_byte_stream_read(pl_byte_stream *stream, void *to, size_t n, size_t *ret_n, pl_error *reterr)
{
    size_t got;
    if (stream->failure.code != 0)
        return fail_again(stream, reterr);
    int r = stream->inflate ? read_packed(stream, to, n, &got, &stream->failure)
                            : read_plain(stream, to, n, &got, &stream->failure);
    stream->offset += got;
    if (r < 0 && got == 0)
        return fail_again(stream, reterr);
    *ret_n = got;
    return 0;
}

/* ---- other places ---- */

static int file_bytes_of(pl_byte_stream *stream, uint64_t *ret_bytes, pl_error *reterr)
{
    struct stat info;
    if (fstat(stream->fd, &info) < 0)
        return fail(stream, -errno, reterr);
    *ret_bytes = (uint64_t)info.st_size;
    return 0;
}

int pl_byte_stream_most_left(pl_byte_stream *stream, uint64_t *ret_bytes, pl_error *reterr)
{
    uint64_t file_bytes = 0;
    int r = file_bytes_of(stream, &file_bytes, reterr);
    if (r < 0)
        return r;
    uint64_t left = pl_sub_sat_u64(file_bytes, stream->file_offset);
    if (stream->ended)
        left = 0;
    else if (stream->inflate)
        left = pl_add_sat_u64(pl_packing_most_bytes(stream->packing, left + stream->piece.n_in),
                              HELD_BYTES);
    *ret_bytes = left;
    return 0;
}

static int refuse_end(pl_byte_stream *stream, uint64_t offset, uint64_t end, pl_error *reterr)
{
    pl_error_set(reterr, PL_ECORRUPT, "cannot go on here: it ends at byte %" PRIu64, end);
    pl_error_in_file(reterr, stream->path);
    pl_error_at_offset(reterr, offset);
    return PL_ECORRUPT;
}

static int seek_plain(pl_byte_stream *stream, uint64_t offset, pl_error *reterr)
{
    uint64_t file_bytes = 0;
    int r = file_bytes_of(stream, &file_bytes, reterr);
    if (r < 0)
        return r;
    if (offset > file_bytes)
        return refuse_end(stream, offset, file_bytes, reterr);
    stream->offset = stream->file_offset = offset;
    return 0;
}

static int seek_packed(pl_byte_stream *stream, uint64_t offset, void *scratch, size_t scratch_bytes,
                       pl_error *reterr)
{
    if (offset < stream->offset)
        begin(stream);
    while (stream->offset < offset) {
        size_t got, n = pl_min_u64(offset - stream->offset, scratch_bytes);
        int r = pl_byte_stream_read(stream, scratch, n, &got, reterr);
        if (r < 0)
            return r;
        if (got == 0)
            return refuse_end(stream, offset, stream->offset, reterr);
    }
    return 0;
}

int pl_byte_stream_seek(pl_byte_stream *stream, uint64_t offset, void *scratch,
                        size_t scratch_bytes, pl_error *reterr)
{
    if (stream->failure.code != 0)
        begin(stream);
    stream->failure.code = 0;
    return stream->inflate ? seek_packed(stream, offset, scratch, scratch_bytes, reterr)
                           : seek_plain(stream, offset, reterr);
}
