/* SPDX-License-Identifier: Apache-2.0 */
/* See npy_tensor.h and plimsoll/tensor.h. */
#include "exec/npy_tensor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/npy.h"
#include "exec/npy_strings.h"
#include "sys/file.h"
#include "tensor/dtype.h"
#include "tensor/runtime.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

/* Copied at a time, where something has to be copied. */
#define PIECE_BYTES PL_MIB

static int fail(pl_error *reterr, const char *what, const char *path, int code)
{
    return pl_error_set(reterr, code, "cannot %s '%s': %s", what, path, pl_error_text(code));
}

static int partial_name(const char *path, char name[PATH_MAX])
{
    return snprintf(name, PATH_MAX, "%s.partial", path) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* What would fail only when all is computed, or not with an error at all. */
static int check_place(const char *path, uint64_t header_bytes, uint64_t item_bytes,
                       const pl_shape *shape)
{
    struct stat info;
    int64_t bytes;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return -EISDIR;
    int r = pl_shape_bytes(shape, item_bytes, &bytes, NULL);
    return r < 0 ? r : pl_file_may_grow(pl_add_sat_u64((uint64_t)bytes, header_bytes));
}

int pl_npy_create(const char *path, pl_dtype dtype, const pl_shape *shape, int *ret_fd,
                  uint64_t *ret_offset, pl_error *reterr)
{
    return pl_npy_create_wide(path, dtype, 0, shape, ret_fd, ret_offset, reterr);
}

int pl_npy_create_wide(const char *path, pl_dtype dtype, uint32_t item_bytes, const pl_shape *shape,
                       int *ret_fd, uint64_t *ret_offset, pl_error *reterr)
{
    char header[PL_NPY_HEADER_BYTES], name[PATH_MAX];
    int n = pl_npy_format(dtype, item_bytes, shape, header, reterr);
    if (n < 0)
        return n;
    int r = partial_name(path, name);
    if (r == 0)
        r = check_place(path, (uint64_t)n,
                        item_bytes > 0 ? item_bytes : pl_dtype_info_of(dtype)->item_bytes, shape);
    int fd = r < 0 ? -1 : open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (r == 0 && fd < 0)
        r = -errno;
    if (r == 0)
        r = pl_file_write(fd, header, (size_t)n, 0);
    if (r < 0) {
        if (fd >= 0) {
            close(fd);
            unlink(name);
        }
        return fail(reterr, "write", path, r);
    }
    *ret_fd = fd;
    *ret_offset = (uint64_t)n;
    return 0;
}

int pl_npy_look(const char *path, pl_error *reterr)
{
    char name[PATH_MAX];
    int r = partial_name(path, name);
    if (r == 0 && access(name, F_OK) < 0)
        r = -errno;
    return r < 0 ? fail(reterr, "write", path, r) : 0;
}

int pl_npy_publish(const char *path, pl_error *reterr)
{
    char name[PATH_MAX];
    int r = partial_name(path, name);
    if (r == 0 && rename(name, path) < 0)
        r = -errno;
    return r < 0 ? fail(reterr, "write", path, r) : 0;
}

void pl_npy_discard(const char *path)
{
    char name[PATH_MAX];
    if (partial_name(path, name) == 0)
        unlink(name);
}

/* Big-endian elements, piece by piece into a buffer of our own. */
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
        return pl_error_set(reterr, fd, "cannot open '%s': it is not a regular file", path);
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
        r = pl_file_write(fd, piece, n, offset); /* tiles are in one piece, in order */
        if (r < 0)
            fail(reterr, "write", path, r);
        offset += n;
    }
    free(piece);
    return r;
}

int pl_npy_write(pl_tensor *tensor, const char *path, pl_error *reterr)
{
    int fd;
    uint64_t offset;
    if (tensor->dtype == PL_STRING)
        return pl_npy_write_strings(tensor, path, reterr);
    int r = pl_npy_create(path, tensor->dtype, &tensor->shape, &fd, &offset, reterr);
    if (r < 0)
        return r;
    r = save_pieces(tensor, fd, offset, path, reterr);
    if (close(fd) < 0 && r == 0)
        r = fail(reterr, "write", path, -errno);
    if (r < 0)
        pl_npy_discard(path);
    return r;
}

int pl_tensor_save_npy(pl_tensor *tensor, const char *path, pl_error *reterr)
{
    int r = pl_npy_write(tensor, path, reterr);
    if (r == 0)
        r = pl_npy_publish(path, reterr);
    if (r < 0)
        pl_npy_discard(path);
    return r;
}
