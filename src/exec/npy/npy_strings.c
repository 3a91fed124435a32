/* SPDX-License-Identifier: Apache-2.0 */
/* See npy_strings.h. */
#include "exec/npy/npy_strings.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "exec/npy/npy_tensor.h"
#include "sys/file.h"
#include "tensor/shape.h"
#include "tensor/strings.h"

/* Bytes read or written at a time; more if one element is larger. */
#define PIECE_BYTES (256 * PL_KIB)

/* ---- reading ---- */

/* A file that is read twice: to count, and to copy. */
typedef struct reader {
    int fd;
    const char *path;
    const pl_npy *npy;
    int64_t n, n_at_once; /* elements */
    char *piece;
    int64_t *positions; /* of the piece */
} reader;

static int64_t n_in_piece(uint32_t width)
{
    return width >= PIECE_BYTES ? 1 : (int64_t)(PIECE_BYTES / (width < 8 ? 8 : width));
}

static size_t length_of(const char *element, size_t width)
{
    while (width > 0 && element[width - 1] == '\0')
        width--;
    return width;
}

/* Reads elements [first, first + *ret_n). */
static int read_piece(const reader *r, int64_t first, int64_t *ret_n, pl_error *reterr)
{
    int64_t n = r->n - first < r->n_at_once ? r->n - first : r->n_at_once;
    uint64_t width = r->npy->item_bytes;
    int code = pl_file_read(r->fd, r->piece, (size_t)n * width,
                            r->npy->data_offset + (uint64_t)first * width);
    if (code < 0)
        return pl_error_set(reterr, code, "cannot read '%s': %s", r->path, pl_error_text(code));
    *ret_n = n;
    return 0;
}

static int count_bytes(const reader *r, uint64_t *ret_bytes, pl_error *reterr)
{
    uint64_t bytes = 0;
    size_t width = r->npy->item_bytes;
    for (int64_t first = 0, n = 0; first < r->n; first += n) {
        int code = read_piece(r, first, &n, reterr);
        if (code < 0)
            return code;
        for (int64_t i = 0; i < n; i++)
            bytes += length_of(r->piece + (size_t)i * width, width);
    }
    *ret_bytes = bytes;
    return 0;
}

/* Packs the piece's elements without their padding. Returns their bytes. */
static size_t pack(const reader *r, int64_t n, int64_t position)
{
    size_t used = 0, width = r->npy->item_bytes;
    for (int64_t i = 0; i < n; i++) {
        const char *element = r->piece + (size_t)i * width;
        size_t length = length_of(element, width);
        memmove(r->piece + used, element, length);
        used += length;
        r->positions[i] = position + (int64_t)used; /* its end */
    }
    return used;
}

/* Refuses a file that has changed since it was counted. */
static int copy(const reader *r, uint64_t n_bytes, pl_buffer *buffer, pl_error *reterr)
{
    int64_t begin = (r->n + 1) * (int64_t)PL_STRING_ITEM_BYTES, at = begin;
    int code = pl_buffer_write(buffer, 0, &begin, sizeof begin, reterr);
    for (int64_t first = 0, n = 0; code == 0 && first < r->n; first += n) {
        code = read_piece(r, first, &n, reterr);
        if (code < 0)
            return code;
        size_t used = pack(r, n, at);
        if ((uint64_t)(at - begin) + used > n_bytes)
            return pl_error_set(reterr, PL_ECORRUPT, "'%s' is being written to: read it again",
                                r->path);
        code = pl_buffer_write(buffer, (uint64_t)(first + 1) * PL_STRING_ITEM_BYTES, r->positions,
                               (size_t)n * PL_STRING_ITEM_BYTES, reterr);
        if (code == 0 && used > 0)
            code = pl_buffer_write(buffer, (uint64_t)at, r->piece, used, reterr);
        at += (int64_t)used;
    }
    return code;
}

static int make_buffer(pl_runtime *runtime, const char *path, uint64_t bytes, bool spilled,
                       pl_buffer **ret_buffer, pl_error *reterr)
{
    void *data;
    int r = spilled ? pl_buffer_new_spilled(runtime->pool, bytes, path, ret_buffer, reterr) : 0;
    if (spilled && (r == 0 || r == -ENOMEM))
        return r;
    r = pl_buffer_new(runtime->pool, bytes, path, ret_buffer, &data, reterr);
    if (r == 0)
        pl_buffer_unpin(*ret_buffer);
    else if (r == PL_EBUDGET && !spilled)
        r = pl_buffer_new_spilled(runtime->pool, bytes, path, ret_buffer, reterr);
    return r;
}

static int read_buffer(pl_runtime *runtime, reader *r, bool spilled, pl_buffer **ret_buffer,
                       pl_error *reterr)
{
    uint64_t n_bytes = 0;
    pl_block block = {0};
    uint64_t piece_bytes = (uint64_t)r->n_at_once * r->npy->item_bytes;
    int code = pl_memory_take(runtime->memory, piece_bytes + (uint64_t)r->n_at_once * 8 + 8,
                              r->path, &block, reterr);
    if (code < 0)
        return code;
    r->positions = block.data;
    r->piece = (char *)(r->positions + r->n_at_once);
    code = r->npy->item_bytes > 0 ? count_bytes(r, &n_bytes, reterr) : 0;
    pl_buffer *buffer = NULL;
    if (code == 0)
        code = make_buffer(runtime, r->path, pl_strings_buffer_bytes(r->n, n_bytes), spilled,
                           &buffer, reterr);
    if (code == 0)
        code = copy(r, n_bytes, buffer, reterr);
    pl_memory_give(runtime->memory, &block);
    if (code < 0)
        pl_buffer_unref(buffer);
    else
        *ret_buffer = buffer;
    return code;
}

int pl_npy_open_strings(pl_runtime *runtime, int fd, const char *path, const pl_npy *npy,
                        bool spilled, pl_tensor **ret_tensor, pl_error *reterr)
{
    int64_t strides[PL_RANK_MAX], bytes;
    pl_buffer *buffer;
    reader r = {.fd = fd, .path = path, .npy = npy, .n_at_once = n_in_piece(npy->item_bytes)};
    int code = pl_shape_bytes(&npy->shape, PL_STRING_ITEM_BYTES, &bytes, reterr);
    if (code < 0)
        return code;
    r.n = bytes / (int64_t)PL_STRING_ITEM_BYTES;
    code = read_buffer(runtime, &r, spilled, &buffer, reterr);
    if (code < 0)
        return code;
    if (npy->fortran_order)
        pl_shape_strides_fortran(&npy->shape, PL_STRING_ITEM_BYTES, strides);
    else
        pl_shape_strides(&npy->shape, PL_STRING_ITEM_BYTES, strides);
    return pl_tensor_wrap(buffer, PL_STRING, &npy->shape, strides, 0, ret_tensor, reterr);
}

/* ---- writing ---- */

static int find_width(const pl_strings *strings, const char *path, uint32_t *ret_width,
                      pl_error *reterr)
{
    size_t width = 1;
    for (int64_t i = 0; i < strings->n; i++) {
        pl_string s = pl_strings_at(strings, i);
        if (s.n > 0 && ((const char *)s.data)[s.n - 1] == '\0')
            return pl_error_set(reterr, -EINVAL,
                                "cannot write '%s': string %" PRId64 " ends with NUL, which an "
                                ".npy file does not keep: save it as uint8",
                                path, i);
        width = s.n > width ? s.n : width;
    }
    if (width > INT32_MAX)
        return pl_error_set(reterr, -EINVAL,
                            "cannot write '%s': a string has %zu bytes; an .npy file takes 2^31",
                            path, width);
    *ret_width = (uint32_t)width;
    return 0;
}

/* Fills in as many as fit; returns how many. */
static int64_t fill_piece(const pl_strings *strings, int64_t first, uint32_t width, char *piece,
                          size_t room)
{
    int64_t n = (int64_t)(room / width);
    n = n < strings->n - first ? n : strings->n - first;
    memset(piece, 0, (size_t)n * width);
    for (int64_t i = 0; i < n; i++) {
        pl_string s = pl_strings_at(strings, first + i);
        if (s.n > 0)
            memcpy(piece + (size_t)i * width, s.data, s.n);
    }
    return n;
}

static int write_all(const pl_strings *strings, int fd, uint64_t offset, uint32_t width)
{
    char piece[16 * PL_KIB];
    int r = 0;
    uint64_t end = offset + (uint64_t)strings->n * width;
    for (int64_t i = 0, n; r == 0 && i < strings->n; i += n, offset += (uint64_t)n * width) {
        n = width > sizeof piece ? 1 : fill_piece(strings, i, width, piece, sizeof piece);
        pl_string s = pl_strings_at(strings, i);
        if (width <= sizeof piece)
            r = pl_file_write(fd, piece, (size_t)n * width, offset);
        else if (s.n > 0)
            r = pl_file_write(fd, s.data, s.n, offset);
    }
    if (r == 0 && ftruncate(fd, (off_t)end) < 0) /* the unwritten rest is 0 */
        r = -errno;
    return r;
}

static int save(const pl_strings *strings, const char *path, pl_npy_file *ret_file,
                pl_error *reterr)
{
    uint64_t offset;
    uint32_t width = 1;
    int r = find_width(strings, path, &width, reterr);
    if (r == 0)
        r = pl_npy_create_wide(path, PL_STRING, width, &strings->tensor->shape, ret_file, &offset,
                               reterr);
    if (r < 0)
        return r;
    r = write_all(strings, ret_file->fd, offset, width);
    if (r < 0) {
        pl_error_set(reterr, r, "cannot write '%s': %s", path, pl_error_text(r));
        pl_npy_discard(ret_file);
    }
    return r;
}

int pl_npy_write_strings(pl_tensor *tensor, const char *path, pl_npy_file *ret_file,
                         pl_error *reterr)
{
    pl_strings strings;
    int r = pl_strings_pin(&strings, tensor, reterr);
    if (r < 0)
        return r;
    r = save(&strings, path, ret_file, reterr);
    pl_strings_unpin(&strings);
    return r;
}
