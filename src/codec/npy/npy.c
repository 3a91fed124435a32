/* SPDX-License-Identifier: Apache-2.0 */
/* See npy.h. npy_header.c parses the text of the header. */
#include "codec/npy/npy.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/npy/npy_header.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "'<' is this machine's order");

static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* NumPy leaves room for the first dimension to grow in place: len(repr(8 * 2**64 - 1)). */
enum { ALIGN_BYTES = 64, GROWTH_DIGITS = 21 };

static int check_magic(const uint8_t *bytes, size_t n, pl_error *reterr)
{
    if (n >= 4 && memcmp(bytes, "PK\3\4", 4) == 0)
        return pl_error_set(
            reterr, PL_EFORMAT,
            "it is a zip archive, probably an .npz file: unpack it, and give the .npy "
            "files in it");
    if (n < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        return pl_error_set(reterr, PL_EFORMAT,
                            "it is not an .npy file: it does not begin with \\x93NUMPY");
    return 0;
}

/* Finds where the header's text begins and ends. */
static int find_header(const uint8_t *bytes, size_t n, uint64_t file_bytes, size_t *ret_begin,
                       size_t *ret_end, pl_error *reterr)
{
    size_t begin = n > 6 && bytes[6] == 1 ? 10 : 12;
    if (n > 7 && (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0))
        return pl_error_set(reterr, PL_EVERSION,
                            "it is an .npy file of version %u.%u: 1.0, 2.0 and 3.0 can be read",
                            bytes[6], bytes[7]);
    if (n < begin)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "it is truncated: it ends after %zu bytes, within its header", n);

    uint64_t length = bytes[8] | (uint64_t)bytes[9] << 8;
    if (begin == 12)
        length |= (uint64_t)bytes[10] << 16 | (uint64_t)bytes[11] << 24;
    if (begin + length > file_bytes)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "it is truncated: %" PRIu64 " of the %" PRIu64 " bytes of its header",
                            file_bytes, begin + length);
    if (begin + length > n)
        return pl_error_set(reterr, PL_EFORMAT,
                            "it has a header of %" PRIu64 " bytes: at most %d are read", length,
                            PL_NPY_READ_BYTES);
    *ret_begin = begin;
    *ret_end = begin + length;
    return 0;
}

static int check_size(const pl_npy *npy, uint64_t file_bytes, pl_error *reterr)
{
    uint64_t needed_bytes = npy->data_offset + npy->data_bytes; /* 2^63 + 64 KiB at most */
    if (needed_bytes <= file_bytes)
        return 0;
    return pl_error_set(
        reterr, PL_ECORRUPT,
        "it is truncated: %" PRIu64 " of %" PRIu64 " bytes; its header promises %s of %s",
        file_bytes, needed_bytes, PL_SHAPE_TEXT(&npy->shape), pl_dtype_info_of(npy->dtype)->name);
}

static int parse(const void *bytes, size_t n, uint64_t file_bytes, pl_npy *ret_npy,
                 pl_error *reterr)
{
    size_t begin = 0, end = 0;
    const uint8_t *at = bytes;
    int r = check_magic(at, n, reterr);
    if (r == 0)
        r = find_header(at, n, file_bytes, &begin, &end, reterr);
    if (r < 0)
        return r;

    pl_npy npy = {.version = at[6], .data_offset = end};
    r = pl_npy_header_parse((const char *)at + begin, end - begin, &npy, reterr);
    if (r < 0)
        return r;

    int64_t data_bytes;
    pl_error too_large = {0};
    r = pl_shape_bytes(&npy.shape, npy.item_bytes, &data_bytes, &too_large);
    if (r < 0)
        return pl_error_set(reterr, PL_ECORRUPT, "its header cannot be true: %s",
                            too_large.message);
    npy.data_bytes = (uint64_t)data_bytes;
    r = check_size(&npy, file_bytes, reterr);
    if (r == 0)
        *ret_npy = npy;
    return r;
}

int pl_npy_parse(const void *bytes, size_t n, uint64_t file_bytes, const char *path,
                 pl_npy *ret_npy, pl_error *reterr)
{
    int r = parse(bytes, n, file_bytes, ret_npy, reterr);
    if (r < 0 && path)
        pl_error_in_file(reterr, path);
    return r;
}

/* Reads up to `room` bytes from the start of the file. Returns how many there are, or -errno. */
static ssize_t read_start(int fd, uint8_t *buffer, size_t room)
{
    size_t n = 0;
    while (n < room) {
        ssize_t got = pread(fd, buffer + n, room - n, (off_t)n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

static int cannot_read(const char *path, int code, const char *why, pl_error *reterr)
{
    pl_error_set(reterr, code, "cannot read '%.200s': %s", path, why);
    pl_error_names_file(reterr, path);
    return code;
}

int pl_npy_read(int fd, const char *path, pl_npy *ret_npy, pl_error *reterr)
{
    struct stat info;
    uint8_t buffer[PL_NPY_READ_BYTES];
    if (fstat(fd, &info) < 0)
        return cannot_read(path, -errno, strerror(errno), reterr);
    if (!S_ISREG(info.st_mode))
        return cannot_read(path, -EINVAL, "it is not a regular file", reterr);

    ssize_t n = read_start(fd, buffer, sizeof buffer);
    if (n < 0)
        return cannot_read(path, (int)n, strerror((int)-n), reterr);
    /* A file may be cut or grow between the two calls: the smaller size is the true one. */
    uint64_t file_bytes = (size_t)n < sizeof buffer ? (uint64_t)n : (uint64_t)info.st_size;
    return pl_npy_parse(buffer, (size_t)n, file_bytes, path, ret_npy, reterr);
}

/* Writes repr() of a tuple: (), (3,), (3, 4). */
static char *format_shape(char *at, const pl_shape *shape)
{
    *at++ = '(';
    for (int i = 0; i < shape->rank; i++)
        at += sprintf(at, "%s%" PRId64, i > 0 ? ", " : "", shape->dims[i]);
    at += sprintf(at, shape->rank == 1 ? ",)" : ")");
    return at;
}

static char *format_dict(char *at, pl_dtype dtype, uint32_t item_bytes, const pl_shape *shape)
{
    at += sprintf(at, "{'descr': '%s", pl_dtype_info_of(dtype)->descr);
    if (dtype == PL_STRING)
        at += sprintf(at, "%" PRIu32, item_bytes);
    at += sprintf(at, "', 'fortran_order': False, 'shape': ");
    at = format_shape(at, shape);
    at += sprintf(at, ", }");
    if (shape->rank > 0) {
        int n_digits = snprintf(NULL, 0, "%" PRId64, shape->dims[0]);
        at += sprintf(at, "%*s", GROWTH_DIGITS - n_digits, "");
    }
    return at;
}

int pl_npy_format(pl_dtype dtype, uint32_t item_bytes, const pl_shape *shape,
                  char header[PL_NPY_HEADER_BYTES], pl_error *reterr)
{
    const pl_dtype_info *info = pl_dtype_info_of(dtype);
    int64_t bytes;
    int r =
        pl_shape_bytes(shape, dtype == PL_STRING ? item_bytes : info->item_bytes, &bytes, reterr);
    if (r < 0)
        return r;
    if (info->kind == PL_KIND_NONE || (dtype == PL_STRING && item_bytes - 1 >= INT32_MAX))
        return pl_error_set(reterr, -EINVAL,
                            "an .npy file cannot hold elements of dtype %s and %" PRIu32 " bytes",
                            info->name, item_bytes);

    char *text = header + 10, *end = format_dict(text, dtype, item_bytes, shape);
    /* At least one blank, also where none is needed, as NumPy does. */
    size_t used = (size_t)(end - header) + 1;
    size_t total = used + ALIGN_BYTES - used % ALIGN_BYTES;
    memset(end, ' ', total - used);
    header[total - 1] = '\n';

    memcpy(header, magic, sizeof magic);
    header[6] = 1;
    header[7] = 0;
    header[8] = (char)((total - 10) & 0xff);
    header[9] = (char)((total - 10) >> 8);
    return (int)total;
}
