/* SPDX-License-Identifier: Apache-2.0 */
/* The exports of cast_loops.c, once for each instruction set; cast.c chooses. */
#ifndef PL_KERNELS_ELEMENTWISE_CAST_LOOPS_H
#define PL_KERNELS_ELEMENTWISE_CAST_LOOPS_H

#include "kernels/elementwise/cast.h"

/* Between bool, integers, f32 and f64; NULL for the rest. */
pl_cast_kernel pl_cast_loop_plain(pl_dtype from, pl_dtype to);
pl_cast_kernel pl_cast_loop_avx2(pl_dtype from, pl_dtype to);
pl_cast_kernel pl_cast_loop_avx512(pl_dtype from, pl_dtype to);

void pl_cast_f64_to_odd_f32_plain(float *out, const double *in, size_t n);
void pl_cast_f64_to_odd_f32_avx2(float *out, const double *in, size_t n);
void pl_cast_f64_to_odd_f32_avx512(float *out, const double *in, size_t n);

#endif
