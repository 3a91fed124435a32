/* SPDX-License-Identifier: Apache-2.0 */
/* Reads NumPy's .npy files: dtype, shape and size from the header alone; and writes the header
 * of a new file.
 *
 *   file = magic, version, length of the header, header (a Python dict as text), data
 *
 * Versions 1.0, 2.0 and 3.0 are read. Nothing in a file is trusted: lengths and shapes are
 * checked against the file before anybody allocates by them, and the text is parsed in place
 * with a bound. Files that numpy.load() refuses are refused; so is data that has no dtype here
 * (records, Python objects, unicode, complex numbers, dates), with advice.
 *
 * Never allocates; safe from any thread. `path` names the file in errors; NULL for data in
 * memory. */
#ifndef PL_CODEC_NPY_NPY_H
#define PL_CODEC_NPY_NPY_H

#include "base/base.h"
#include "plimsoll/tensor.h"

/* The limit for headers. NumPy itself stops at 10,000 characters; it writes 128 for a tensor of
 * ours. */
#define PL_NPY_READ_BYTES 65536

/* Room for any header that pl_npy_format() writes. */
#define PL_NPY_HEADER_BYTES 384

typedef struct pl_npy {
    pl_dtype dtype;
    bool swap;            /* the elements are big-endian: use pl_bytes_swap() */
    bool fortran_order;   /* the first axis is the innermost: use pl_shape_strides_fortran() */
    uint8_t version;      /* 1, 2 or 3 */
    uint32_t item_bytes;  /* of a string: its width; shorter ones are padded with NULs */
    pl_shape shape;       /* all dimensions are known */
    uint64_t data_offset; /* from the start of the file */
    uint64_t data_bytes;
} pl_npy;

/* Parses the first `n` bytes of a file of `file_bytes`; n is the whole file, or at least
 * PL_NPY_READ_BYTES of it. PL_EFORMAT: not an .npy file; PL_EVERSION: a version after 3.0;
 * PL_ECORRUPT: less data than the header promises; -ENOTSUP: no matching dtype. Ignores bytes after
 * the data, as NumPy does. */
PL_MUST_CHECK int pl_npy_parse(const void *bytes, size_t n, uint64_t file_bytes, const char *path,
                               pl_npy *ret_npy, pl_error *reterr);

/* Does the same for an open regular file, whose offset does not change. Takes PL_NPY_READ_BYTES of
 * stack. */
PL_MUST_CHECK int pl_npy_read(int fd, const char *path, pl_npy *ret_npy, pl_error *reterr);

/* Writes the header that numpy.save() writes for a C-ordered array of this dtype and shape, byte
 * for byte. `item_bytes` matters for strings only. Returns its length, a multiple of 64: the data
 * begins there. -EINVAL for an unknown shape, an invalid dtype, or strings of width 0. */
PL_MUST_CHECK int pl_npy_format(pl_dtype dtype, uint32_t item_bytes, const pl_shape *shape,
                                char header[PL_NPY_HEADER_BYTES], pl_error *reterr);

#endif
