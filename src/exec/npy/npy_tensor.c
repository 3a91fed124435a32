/* SPDX-License-Identifier: Apache-2.0 */
/* See npy_tensor.h and plimsoll/tensor.h. */
#include "exec/npy/npy_tensor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/npy/npy.h"
#include "exec/npy/npy_strings.h"
#include "sys/file.h"
#include "tensor/dtype.h"
#include "tensor/runtime.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

/* Bytes copied at a time, where a copy is needed. */
#define PIECE_BYTES PL_MIB

static int fail(pl_error *reterr, const char *what, const char *path, int code)
{
    return pl_error_set(reterr, code, "cannot %s '%s': %s", what, path, pl_error_text(code));
}

static int not_regular(pl_error *reterr, const char *what, const char *path)
{
    return pl_error_set(reterr, -EINVAL, "cannot %s '%s': it is not a regular file", what, path);
}

/* Finds problems now that would otherwise show only after everything is computed, or never. */
static int check_place(const char *path, uint64_t header_bytes, uint64_t item_bytes,
                       const pl_shape *shape, pl_error *reterr)
{
    struct stat info;
    int64_t bytes;
    bool there = stat(path, &info) == 0;
    if (there && S_ISDIR(info.st_mode))
        return fail(reterr, "write", path, -EISDIR);
    if (there && !S_ISREG(info.st_mode))
        return not_regular(reterr, "write", path);
    int r = pl_shape_bytes(shape, item_bytes, &bytes, NULL);
    if (r == 0)
        r = pl_file_may_grow(pl_add_sat_u64((uint64_t)bytes, header_bytes));
    return r < 0 ? fail(reterr, "write", path, r) : 0;
}

static int open_one(const char *path, bool *ret_found)
{
    int fd = pl_file_open_locked(path, ret_found);
    if (fd == -ENOLCK || fd == -EOPNOTSUPP) /* a file system without locks */
        fd = pl_file_open_own(path, ret_found);
    return fd;
}

/* A file begins with this mark until it is complete. Every header is longer. */
static const char mark[] = "plimsoll: not complete";

static_assert(sizeof mark < 64, "longer than the shortest header");

/* Returns whether a process that was killed left it. Any other file may be the user's own. */
static bool is_marked(int fd)
{
    char start[sizeof mark];
    struct stat info;
    if (fstat(fd, &info) < 0)
        return false;
    size_t n = (size_t)pl_min_u64((uint64_t)info.st_size, sizeof mark);
    return pl_file_read(fd, start, n, 0) == 0 && memcmp(start, mark, n) == 0;
}

static int put_mark(int fd)
{
    int r = pl_file_cut(fd, 0);
    return r < 0 ? r : pl_file_write(fd, mark, sizeof mark, 0);
}

/* Opens the first free name that no process is writing to; takes over a file that a killed process
 * left. */
static int open_partial(pl_npy_file *file)
{
    size_t room = strlen(file->path) + 32;
    file->partial = malloc(room);
    if (!file->partial)
        return -ENOMEM;
    for (int i = 0;; i++) {
        if (i == 0)
            snprintf(file->partial, room, "%s.partial", file->path);
        else
            snprintf(file->partial, room, "%s.partial-%d", file->path, i);
        bool found;
        int fd = open_one(file->partial, &found);
        if (fd >= 0 && found && !is_marked(fd)) {
            close(fd);
            fd = -EEXIST;
        }
        file->fd = fd;
        if (fd >= 0)
            return put_mark(fd);
        if (fd != -EBUSY && fd != -EEXIST)
            return fd;
    }
}

static int begin_file(const char *path, pl_npy_file *ret_file)
{
    char name[PATH_MAX];
    int r = pl_file_follow_links(path, name);
    if (r < 0)
        return r;
    *ret_file = (pl_npy_file){.path = strdup(name), .fd = -1};
    return ret_file->path ? open_partial(ret_file) : -ENOMEM;
}

int pl_npy_create(const char *path, pl_dtype dtype, const pl_shape *shape, pl_npy_file *ret_file,
                  uint64_t *ret_offset, pl_error *reterr)
{
    return pl_npy_create_wide(path, dtype, 0, shape, ret_file, ret_offset, reterr);
}

int pl_npy_create_wide(const char *path, pl_dtype dtype, uint32_t item_bytes, const pl_shape *shape,
                       pl_npy_file *ret_file, uint64_t *ret_offset, pl_error *reterr)
{
    char header[PL_NPY_HEADER_BYTES];
    *ret_file = (pl_npy_file){0};
    int n = pl_npy_format(dtype, item_bytes, shape, header, reterr);
    if (n < 0)
        return n;
    int r = check_place(path, (uint64_t)n,
                        item_bytes > 0 ? item_bytes : pl_dtype_info_of(dtype)->item_bytes, shape,
                        reterr);
    if (r < 0)
        return r;
    r = begin_file(path, ret_file);
    if (r < 0) {
        pl_npy_discard(ret_file);
        return fail(reterr, "write", path, r);
    }
    memcpy(ret_file->header, header, (size_t)n);
    ret_file->n_header = n;
    *ret_offset = (uint64_t)n;
    return 0;
}

/* Closes a duplicate descriptor, because some file systems report write errors only on close; the
 * lock stays with the other one. */
static int look_closed(int fd)
{
    int other = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return other < 0 || close(other) < 0 ? -errno : 0;
}

int pl_npy_look(const pl_npy_file *file, pl_error *reterr)
{
    if (!file->partial)
        return 0;
    int r = pl_file_write(file->fd, file->header, (size_t)file->n_header, 0);
    if (r == 0)
        r = access(file->partial, F_OK) < 0 ? -errno : look_closed(file->fd);
    return r < 0 ? fail(reterr, "write", file->path, r) : 0;
}

static void forget(pl_npy_file *file)
{
    if (file->partial && file->fd >= 0)
        close(file->fd);
    free(file->partial);
    free(file->path);
    *file = (pl_npy_file){0};
}

int pl_npy_publish(pl_npy_file *file, pl_error *reterr)
{
    if (!file->partial)
        return 0;
    if (rename(file->partial, file->path) < 0) {
        int r = fail(reterr, "write", file->path, -errno);
        pl_npy_discard(file);
        return r;
    }
    forget(file);
    return 0;
}

void pl_npy_discard(pl_npy_file *file)
{
    if (file->partial && file->fd >= 0)
        unlink(file->partial);
    forget(file);
}

/* Swaps big-endian elements, piece by piece, into our own buffer. */
static int copy_swapped(int fd, const char *path, const pl_npy *npy, pl_buffer *buffer,
                        pl_error *reterr)
{
    size_t room = (size_t)pl_min_u64(npy->data_bytes, PIECE_BYTES);
    char *piece = malloc(room + 1);
    int r = piece ? 0 : fail(reterr, "read", path, -ENOMEM);
    for (uint64_t at = 0; r == 0 && at < npy->data_bytes; at += room) {
        size_t n = (size_t)pl_min_u64(room, npy->data_bytes - at);
        r = pl_file_read(fd, piece, n, npy->data_offset + at);
        if (r < 0) {
            fail(reterr, "read", path, r);
            break;
        }
        pl_bytes_swap(piece, n / npy->item_bytes, npy->item_bytes);
        r = pl_buffer_write(buffer, at, piece, n, reterr);
    }
    free(piece);
    return r;
}

static int new_resident(pl_runtime *runtime, uint64_t bytes, const char *path,
                        pl_buffer **ret_buffer, pl_error *reterr)
{
    void *data;
    int r = pl_buffer_new(runtime->pool, bytes, path, ret_buffer, &data, reterr);
    if (r == 0)
        pl_buffer_unpin(*ret_buffer);
    return r;
}

static int open_swapped(pl_runtime *runtime, int fd, const char *path, const pl_npy *npy,
                        bool spilled, pl_buffer **ret_buffer, pl_error *reterr)
{
    pl_buffer *buffer;
    uint64_t bytes = npy->data_bytes;
    int r = spilled ? pl_buffer_new_spilled(runtime->pool, bytes, path, &buffer, reterr)
                    : new_resident(runtime, bytes, path, &buffer, reterr);
    if (!spilled && r == PL_EBUDGET)
        r = pl_buffer_new_spilled(runtime->pool, bytes, path, &buffer, reterr);
    else if (spilled && r < 0 && r != -ENOMEM)
        r = new_resident(runtime, bytes, path, &buffer, reterr);
    if (r < 0)
        return r;
    r = copy_swapped(fd, path, npy, buffer, reterr);
    if (r < 0)
        pl_buffer_unref(buffer);
    else
        *ret_buffer = buffer;
    return r;
}

static int open_buffer(pl_runtime *runtime, int fd, const char *path, const pl_npy *npy,
                       bool spilled, pl_buffer **ret_buffer, pl_error *reterr)
{
    if (npy->swap && npy->data_bytes > 0)
        return open_swapped(runtime, fd, path, npy, spilled, ret_buffer, reterr);
    return pl_buffer_open_window(runtime->pool, path, npy->data_offset, npy->data_bytes, path,
                                 ret_buffer, reterr);
}

int pl_npy_open(pl_runtime *runtime, const char *path, bool spilled, pl_tensor **ret_tensor,
                pl_error *reterr)
{
    pl_npy npy;
    uint64_t file_bytes;
    pl_buffer *buffer = NULL;
    int64_t strides[PL_RANK_MAX];
    int fd = pl_file_open_regular(path, &file_bytes);
    if (fd == -EINVAL)
        return not_regular(reterr, "open", path);
    if (fd < 0)
        return fail(reterr, "open", path, fd);
    int r = pl_npy_read(fd, path, &npy, reterr);
    if (r == 0 && npy.dtype == PL_STRING) {
        r = pl_npy_open_strings(runtime, fd, path, &npy, spilled, ret_tensor, reterr);
        close(fd);
        return r;
    }
    if (r == 0)
        r = open_buffer(runtime, fd, path, &npy, spilled, &buffer, reterr);
    close(fd);
    if (r < 0)
        return r;
    if (npy.fortran_order)
        pl_shape_strides_fortran(&npy.shape, npy.item_bytes, strides);
    else
        pl_shape_strides(&npy.shape, npy.item_bytes, strides);
    return pl_tensor_wrap(buffer, npy.dtype, &npy.shape, strides, 0, ret_tensor, reterr);
}

int pl_tensor_open_npy(pl_runtime *runtime, const char *path, pl_tensor **ret_tensor,
                       pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(path, reterr);
    PL_NOT_NULL(ret_tensor, reterr);
    return pl_npy_open(runtime, path, false, ret_tensor, reterr);
}

static int save_pieces(pl_tensor *tensor, int fd, uint64_t offset, const char *path,
                       pl_error *reterr)
{
    uint64_t item_bytes = pl_dtype_info_of(tensor->dtype)->item_bytes;
    pl_region whole = pl_region_whole(&tensor->shape), tile;
    pl_region_tiles tiles;
    int r = pl_region_tiles_init(&tiles, &whole, item_bytes, PIECE_BYTES);
    char *piece = malloc(PIECE_BYTES);
    if (r == 0 && !piece)
        r = fail(reterr, "write", path, -ENOMEM);
    while (r == 0 && pl_region_tiles_next(&tiles, &tile)) {
        size_t n = (size_t)((uint64_t)pl_region_count(&tile) * item_bytes);
        r = pl_tensor_read(tensor, tile.begin, tile.extent, piece, reterr);
        if (r < 0)
            break;
        r = pl_file_write(fd, piece, n, offset); /* tiles are contiguous and in order */
        if (r < 0)
            fail(reterr, "write", path, r);
        offset += n;
    }
    free(piece);
    return r;
}

int pl_npy_write(pl_tensor *tensor, const char *path, pl_npy_file *ret_file, pl_error *reterr)
{
    uint64_t offset;
    if (tensor->dtype == PL_STRING)
        return pl_npy_write_strings(tensor, path, ret_file, reterr);
    int r = pl_npy_create(path, tensor->dtype, &tensor->shape, ret_file, &offset, reterr);
    if (r == 0)
        r = save_pieces(tensor, ret_file->fd, offset, path, reterr);
    if (r < 0)
        pl_npy_discard(ret_file);
    return r;
}

int pl_tensor_save_npy(pl_tensor *tensor, const char *path, pl_error *reterr)
{
    PL_NOT_NULL(tensor, reterr);
    PL_NOT_NULL(path, reterr);
    pl_npy_file file = {0};
    int r = pl_npy_write(tensor, path, &file, reterr);
    if (r == 0)
        r = pl_npy_look(&file, reterr);
    if (r == 0)
        r = pl_npy_publish(&file, reterr);
    if (r < 0)
        pl_npy_discard(&file);
    return r;
}
