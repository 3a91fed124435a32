/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between dtypes, as NumPy's astype() gives them for one element on x86-64 (of several,
 * some of NumPy's own out-of-range u32 depend on their place):
 *   to bool              0 becomes 0, all else 1, NaN too
 *   between integers     wrap
 *   to floats            to the nearest, ties to even, once; but integers to f16, bf16 go through
 *                        f32
 *   floats to integers   the fraction is dropped. A number that does not fit an i32 (for i8, u8,
 *                        i16, u16, i32) or an i64 (for u32, i64) becomes the smallest of that
 *                        dtype, which then wraps; u64 takes [0, 2^64) too, and 0 above. So NaN is
 *                        INT64_MIN as an i64, 2^63 as a u64, 0 as a u8
 *
 * The output may be the input where both elements have the same size; otherwise the two are apart.
 * elementwise.h defines strips and what kernels guarantee. Pure; safe from any thread. */
#ifndef PL_KERNELS_ELEMENTWISE_CAST_H
#define PL_KERNELS_ELEMENTWISE_CAST_H

#include "base/base.h"
#include "plimsoll/tensor.h"

typedef void (*pl_cast_kernel)(void *out, const void *in, size_t n);

/* Returns NULL if either is not a numeric dtype (none, string). From a dtype to itself it
 * copies. */
pl_cast_kernel pl_cast_find(pl_dtype from, pl_dtype to);

#endif
