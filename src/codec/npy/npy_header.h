/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the text of an .npy header, a Python dict of three keys. For npy.c only. */
#ifndef PL_CODEC_NPY_NPY_HEADER_H
#define PL_CODEC_NPY_NPY_HEADER_H

#include "codec/npy/npy.h"

/* Sets dtype, swap, item_bytes, fortran_order and shape from `n` bytes of text; npy->version gives
 * the syntax. On failure *npy is undefined. */
PL_MUST_CHECK int pl_npy_header_parse(const char *text, size_t n, pl_npy *npy, pl_error *reterr);

#endif
