/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the values of an array that are NaN or infinite. The pieces come one after the other, and
 * may begin and end within a value. One thread at a time. */
#ifndef PL_VERIFY_NPY_VALUES_H
#define PL_VERIFY_NPY_VALUES_H

#include "codec/npy/npy.h"

/* Starts all zero. */
typedef struct pl_npy_values {
    uint64_t n_nan, n_inf;
    uint8_t part[8]; /* of a value that the previous piece ended in */
    uint32_t n_part;
} pl_npy_values;

/* Adds `n` bytes at byte `offset` of the file. Bytes before and after the array's data are not
 * counted. */
void pl_npy_values_add(pl_npy_values *values, const pl_npy *npy, uint64_t offset, const void *bytes,
                       size_t n);

#endif
