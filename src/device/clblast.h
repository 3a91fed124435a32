/* SPDX-License-Identifier: Apache-2.0 */
/* CLBlast, loaded when the first product needs it: products of float32 and float64 matrices on an
 * OpenCL device. Matrices are stored by rows, without gaps.
 *
 * Safe from any thread. */
#ifndef PL_DEVICE_CLBLAST_H
#define PL_DEVICE_CLBLAST_H

#include "device/device.h"

/* c = op(a) op(b): m x n from m x k and k x n; none of them may be 0. */
typedef struct pl_device_product {
    pl_dtype dtype;
    int64_t m, n, k;
    bool a_transposed, b_transposed;
} pl_device_product;

/* Returns whether CLBlast is installed. */
bool pl_clblast_is_there(void);

/* Returns the bytes that a product needs on the device besides the matrices. Opens the device. */
PL_MUST_CHECK int pl_clblast_workspace(pl_device *device, const pl_device_product *product,
                                       uint64_t *ret_bytes, pl_error *reterr);

/* Buffers 0, 1 and 2 of the job are a, b and c; a fourth buffer, if any, is the workspace. */
PL_MUST_CHECK int pl_clblast_run(pl_device_job *job, const pl_device_product *product,
                                 pl_error *reterr);

#endif
