/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between dtypes, as NumPy's astype() gives them for one element on x86-64 (of several,
 * some of NumPy's own out-of-range u32 depend on their place):
 *   to bool          0 becomes 0, all else 1, NaN too
 *   int to int       wraps
 *   to float         to the nearest, ties to even, once; but integers to f16, bf16 go through f32
 *   float to int     the fraction is dropped. What does not fit an i32 (for i8, u8, i16, u16, i32)
 *                    or an i64 (u32, i64) becomes its smallest number, and that then wraps to the
 *                    dtype; u64 takes [0, 2^64) too, and 0 above. So NaN is INT64_MIN as an i64,
 *                    2^63 as a u64, 0 as a u8
 *
 * The output may be the input where both elements have the same size; otherwise the two are apart.
 * Strips and their promise are elementwise.h's. Pure; safe from any thread. */
#ifndef PL_KERNELS_ELEMENTWISE_CAST_H
#define PL_KERNELS_ELEMENTWISE_CAST_H

#include "base/base.h"
#include "plimsoll/tensor.h"

typedef void (*pl_cast_kernel)(void *out, const void *in, size_t n);

/* NULL if either is no number (none, string). From a dtype to itself it copies. */
pl_cast_kernel pl_cast_find(pl_dtype from, pl_dtype to);

#endif
