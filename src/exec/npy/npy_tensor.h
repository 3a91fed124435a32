/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors and .npy files. A file that is made has another name until it is complete, so that one of
 * the same name, which may be read meanwhile, stays whole: NAME.partial, or NAME.partial-1 and so
 * on where others are making one of that name, or have a file of it. Each is its maker's alone, and
 * who comes last names it. Until then it has a mark in the header's place, by which one that was
 * left is known. What a link leads to is written, not the link; what is no file stays what it is.
 * Safe from any thread. */
#ifndef PL_EXEC_NPY_NPY_TENSOR_H
#define PL_EXEC_NPY_NPY_TENSOR_H

#include "codec/npy/npy.h"
#include "plimsoll/tensor.h"

/* pl_tensor_open_npy(). `spilled`: elements that must be copied, to swap their bytes, are spilled
 * where that is possible; else they are in memory where there is room. */
PL_MUST_CHECK int pl_npy_open(pl_runtime *runtime, const char *path, bool spilled,
                              pl_tensor **ret_tensor, pl_error *reterr);

/* One that is being made. Zeroes are none. */
typedef struct pl_npy_file {
    char *path, *partial; /* `partial` is NULL where there is none */
    int fd;               /* locked */
    int n_header;
    char header[PL_NPY_HEADER_BYTES];
} pl_npy_file;

/* Makes a file for this many elements, to be written at *ret_offset of its descriptor. */
PL_MUST_CHECK int pl_npy_create(const char *path, pl_dtype dtype, const pl_shape *shape,
                                pl_npy_file *ret_file, uint64_t *ret_offset, pl_error *reterr);

/* The same for elements of any size: strings. */
PL_MUST_CHECK int pl_npy_create_wide(const char *path, pl_dtype dtype, uint32_t item_bytes,
                                     const pl_shape *shape, pl_npy_file *ret_file,
                                     uint64_t *ret_offset, pl_error *reterr);

/* pl_tensor_save_npy(), less the name. On failure there is no file. */
PL_MUST_CHECK int pl_npy_write(pl_tensor *tensor, const char *path, pl_npy_file *ret_file,
                               pl_error *reterr);

/* Gives a file that is complete its name, or takes an unfinished one away, where there is one. Of
 * several, each is looked at first: it gets its header; is it still there to be named, and was all
 * of it taken? */
PL_MUST_CHECK int pl_npy_look(const pl_npy_file *file, pl_error *reterr);
PL_MUST_CHECK int pl_npy_publish(pl_npy_file *file, pl_error *reterr);
void pl_npy_discard(pl_npy_file *file);

#endif
