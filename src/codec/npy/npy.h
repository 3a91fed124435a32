/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files: what one holds and costs, from its header alone, and the header of a new one.
 *
 *   file = magic, version, length of the header, header (a Python dict as text), data
 *
 * Versions 1.0, 2.0 and 3.0 are read. Nothing in a file is trusted: lengths and shapes are checked
 * against the file before anybody allocates by them, and the text is read in place with a bound.
 * What numpy.load() refuses is refused; of what it takes, data that is no tensor of ours (records,
 * Python objects, unicode, complex numbers, dates) is refused with a way out.
 *
 * Never allocates; safe from any thread. `path` is the file's, for errors; NULL for what lies in memory. */
#ifndef PL_CODEC_NPY_NPY_H
#define PL_CODEC_NPY_NPY_H

#include "base/base.h"
#include "plimsoll/tensor.h"

/* A longer header is refused. NumPy itself stops at 10,000 characters; one of its own for a tensor
 * of ours has 128. */
#define PL_NPY_READ_BYTES 65536

/* Room for any header that pl_npy_format() writes. */
#define PL_NPY_HEADER_BYTES 384

typedef struct pl_npy {
    pl_dtype dtype;
    bool swap;            /* the elements are big-endian: pl_bytes_swap() them */
    bool fortran_order;   /* the first axis is the innermost: pl_shape_strides_fortran() */
    uint8_t version;      /* 1, 2 or 3 */
    uint32_t item_bytes;  /* of a string: its width, the rest of which is NUL */
    pl_shape shape;       /* known */
    uint64_t data_offset; /* from the start of the file */
    uint64_t data_bytes;
} pl_npy;

/* Understands the first `n` bytes of a file of `file_bytes`; n is the whole file, or at least
 * PL_NPY_READ_BYTES of it. PL_EFORMAT: not such a file; PL_EVERSION: a version after 3.0;
 * PL_ECORRUPT: less than the header promises; -ENOTSUP: no tensor of ours. Bytes behind the data
 * are ignored, as NumPy does. */
PL_MUST_CHECK int pl_npy_parse(const void *bytes, size_t n, uint64_t file_bytes, const char *path,
                               pl_npy *ret_npy, pl_error *reterr);

/* The same for an open regular file; its offset stays. Takes PL_NPY_READ_BYTES of stack. */
PL_MUST_CHECK int pl_npy_read(int fd, const char *path, pl_npy *ret_npy, pl_error *reterr);

/* The header that numpy.save() writes for a C-ordered array of this dtype and shape, byte for byte.
 * `item_bytes` matters for strings only. Returns its length, a multiple of 64: there the data
 * begins. -EINVAL for a shape that is not known, a dtype that is none, or a string of no width. */
PL_MUST_CHECK int pl_npy_format(pl_dtype dtype, uint32_t item_bytes, const pl_shape *shape,
                                char header[PL_NPY_HEADER_BYTES], pl_error *reterr);

#endif
