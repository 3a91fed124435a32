/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors and .npy files.
 *
 * A file that is being written has another name until it is complete, so that an existing file of
 * its name, which others may be reading, stays intact: NAME.partial, or NAME.partial-1 and so on if
 * another process is writing one, or a user has a file of that name. Each partial file belongs to
 * one writer, and the last one to finish names it. Until then a mark takes the place of the header,
 * by which abandoned files are recognised.
 *
 * If the name is a link, the file that it leads to is written, not the link. Pipes and devices are
 * written in place. Safe from any thread. */
#ifndef PL_EXEC_NPY_NPY_TENSOR_H
#define PL_EXEC_NPY_NPY_TENSOR_H

#include "codec/npy/npy.h"
#include "plimsoll/tensor.h"

/* pl_tensor_open_npy(). `spilled`: elements that must be copied, to swap their bytes, are spilled
 * where possible; else they go to memory if there is room. */
PL_MUST_CHECK int pl_npy_open(pl_runtime *runtime, const char *path, bool spilled,
                              pl_tensor **ret_tensor, pl_error *reterr);

/* A file being written. All zero: none. */
typedef struct pl_npy_file {
    char *path, *partial; /* `partial` is NULL if it is written in place */
    int fd;               /* locked */
    int n_header;
    char header[PL_NPY_HEADER_BYTES];
} pl_npy_file;

/* Creates a file for this many elements, to be written at *ret_offset of its descriptor. */
PL_MUST_CHECK int pl_npy_create(const char *path, pl_dtype dtype, const pl_shape *shape,
                                pl_npy_file *ret_file, uint64_t *ret_offset, pl_error *reterr);

/* pl_npy_create() for elements of any size: strings. */
PL_MUST_CHECK int pl_npy_create_wide(const char *path, pl_dtype dtype, uint32_t item_bytes,
                                     const pl_shape *shape, pl_npy_file *ret_file,
                                     uint64_t *ret_offset, pl_error *reterr);

/* pl_tensor_save_npy(), except for the final name. On failure there is no file. */
PL_MUST_CHECK int pl_npy_write(pl_tensor *tensor, const char *path, pl_npy_file *ret_file,
                               pl_error *reterr);

/* Publishing gives a complete file its name; discarding removes an unfinished one, if there is any.
 * If a run has several files, look at each before publishing any: that writes the header, and fails
 * if the file is gone or the file system did not take all of it. */
PL_MUST_CHECK int pl_npy_look(const pl_npy_file *file, pl_error *reterr);
PL_MUST_CHECK int pl_npy_publish(pl_npy_file *file, pl_error *reterr);
void pl_npy_discard(pl_npy_file *file);

#endif
