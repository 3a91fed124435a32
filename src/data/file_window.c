/* SPDX-License-Identifier: Apache-2.0 */
/* See file_window.h. */
#include "data/file_window.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "sys/file.h"

static int fail(const pl_file_window *window, int code, uint64_t offset, pl_error *reterr)
{
    return pl_error_set(reterr, code, "cannot read '%s' at byte %" PRIu64 ": %s", window->path,
                        offset, pl_error_text(code));
}

int pl_file_window_tell(const pl_file_window *window, const pl_error *why, pl_error *reterr)
{
    return pl_error_set(reterr, why->code, "'%.200s': %.270s", window->path, why->message);
}

/* ---- its life ---- */

static int open_file(pl_file_window *window, pl_error *reterr)
{
    window->fd = pl_file_open_regular(window->path, &window->file_bytes);
    if (window->fd == -EINVAL)
        return pl_error_set(reterr, -EINVAL, "cannot read '%s': it is not a regular file",
                            window->path);
    if (window->fd < 0)
        return pl_error_set(reterr, window->fd, "cannot read '%s': %s", window->path,
                            pl_error_text(window->fd));
    (void)posix_fadvise(window->fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* it helps, or it does not */
    return 0;
}

int pl_file_window_init(pl_file_window *window, const char *path, uint64_t window_bytes,
                        pl_memory *memory, pl_error *reterr)
{
    pl_file_window made = {.path = path,
                           .memory = memory,
                           .usual_bytes = window_bytes ? window_bytes : PL_FILE_WINDOW_BYTES};
    int r = open_file(&made, reterr);
    if (r < 0)
        return r;
    r = pl_memory_take(memory, made.usual_bytes, path, &made.block, reterr);
    if (r < 0) {
        close(made.fd);
        return r;
    }
    made.at = made.block.data;
    made.is_last = made.file_bytes == 0;
    *window = made;
    return 0;
}

void pl_file_window_done(pl_file_window *window)
{
    if (!window->block.data)
        return;
    close(window->fd);
    pl_memory_give(window->memory, &window->block);
    *window = (pl_file_window){0};
}

/* ---- reading ---- */

/* The file's bytes at an offset, fewer at its end only. */
static int read_file(const pl_file_window *window, char *to, size_t n, uint64_t offset,
                     size_t *ret_n, pl_error *reterr)
{
    size_t got = 0;
    while (got < n) {
        ssize_t now = pread(window->fd, to + got, n - got, (off_t)(offset + got));
        if (now < 0 && errno == EINTR)
            continue;
        if (now < 0)
            return fail(window, -errno, offset + got, reterr);
        if (now == 0)
            break;
        got += (size_t)now;
    }
    *ret_n = got;
    return 0;
}

/* How large the window should be for `need` bytes: twice what it is if it is too small, so that a
 * record of any length is copied only twice on the way; but not larger than all that is left. What
 * is over a MiB goes back as soon as it can. */
static uint64_t fitting_bytes(const pl_file_window *window, uint64_t need)
{
    if (need <= window->usual_bytes)
        return window->block.bytes <= PL_MIB ? window->block.bytes : window->usual_bytes;
    uint64_t left = pl_sub_sat_u64(window->file_bytes, window->offset);
    uint64_t wanted = need <= window->block.bytes ? window->block.bytes
                                                  : pl_max_u64(need, 2 * window->block.bytes);
    return pl_clamp_u64(left, window->usual_bytes, wanted);
}

/* Moves what is not taken to the front, of another block if this one has the wrong size. */
static int settle(pl_file_window *window, uint64_t bytes, pl_error *reterr)
{
    pl_block old = window->block;
    bool another = bytes != old.bytes && bytes >= window->n;
    if (another) {
        int r = pl_memory_take(window->memory, bytes, window->path, &window->block, reterr);
        if (r < 0)
            return r;
    }
    if (window->n > 0)
        memmove(window->block.data, window->at, window->n);
    window->at = window->block.data;
    if (another)
        pl_memory_give(window->memory, &old);
    return 0;
}

int pl_file_window_more(pl_file_window *window, uint64_t need, pl_error *reterr)
{
    if (window->n >= need || window->is_last)
        return 0;
    int r = settle(window, fitting_bytes(window, need), reterr);
    if (r < 0)
        return r;
    size_t got = 0, room = window->block.bytes - window->n;
    r = read_file(window, (char *)window->block.data + window->n, room, window->offset + window->n,
                  &got, reterr);
    if (r < 0)
        return r;
    window->n += got;
    window->is_last = got < room || window->offset + window->n == window->file_bytes;
    return 0;
}

int pl_file_window_seek(pl_file_window *window, uint64_t offset, pl_error *reterr)
{
    if (offset >= window->offset && offset - window->offset <= window->n) {
        pl_file_window_take(window, (size_t)(offset - window->offset));
        return 0;
    }
    if (offset > window->file_bytes)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "cannot go on at byte %" PRIu64 " of '%s': it ends at byte %" PRIu64,
                            offset, window->path, window->file_bytes);
    window->at = window->block.data;
    window->n = 0;
    window->offset = offset;
    window->is_last = offset == window->file_bytes;
    return 0;
}

int pl_file_window_read(pl_file_window *window, void *to, uint64_t n, pl_error *reterr)
{
    size_t here = (size_t)pl_min_u64(n, window->n), got = 0;
    memcpy(to, window->at, here);
    int r =
        read_file(window, (char *)to + here, (size_t)n - here, window->offset + here, &got, reterr);
    if (r < 0)
        return r;
    if (here + got < n)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "'%s' ends at byte %" PRIu64 ", %" PRIu64 " before what it should have",
                            window->path, window->offset + here + got, n - here - got);
    return pl_file_window_seek(window, window->offset + n, reterr);
}
