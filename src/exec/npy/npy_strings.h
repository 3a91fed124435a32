/* SPDX-License-Identifier: Apache-2.0 */
/* Strings in .npy files: all of one width, padded with NULs. Safe from any thread. */
#ifndef PL_EXEC_NPY_NPY_STRINGS_H
#define PL_EXEC_NPY_NPY_STRINGS_H

#include "codec/npy/npy.h"
#include "exec/npy/npy_tensor.h"
#include "plimsoll/tensor.h"

/* Copies the strings, in pieces: to memory, or to the spill file if there is no room. `spilled`
 * prefers the spill file. */
PL_MUST_CHECK int pl_npy_open_strings(pl_runtime *runtime, int fd, const char *path,
                                      const pl_npy *npy, bool spilled, pl_tensor **ret_tensor,
                                      pl_error *reterr);

/* pl_npy_write() for strings: as wide as the longest, at least 1. Fails with -EINVAL if one ends
 * with NUL. */
PL_MUST_CHECK int pl_npy_write_strings(pl_tensor *tensor, const char *path, pl_npy_file *ret_file,
                                       pl_error *reterr);

#endif
