/* SPDX-License-Identifier: Apache-2.0 */
/* Corrects settings that OpenBLAS made when it was loaded.
 *   kernels  loops for one kind of processor, by OpenBLAS's names: "Haswell" has AVX2, "SkylakeX"
 *            AVX-512. OpenBLAS chooses by the processor's model number; to one that is newer than
 *            itself it gives those of 2004, "Prescott": SSE3. Debian 12 has OpenBLAS 0.3.21, which
 *            does not know an Intel processor of 2023: products took five times as long there as
 *            with SkylakeX's kernels
 *   workers  OpenBLAS's threads. It starts them at once, and they look for work until 2^26 cycles
 *            are over: of a program that begins to read pictures on two cores, without a product
 *            anywhere, they took a seventh of the first 0.4 s
 *
 * So this library looks at both when it is loaded: kernels are chosen anew if the processor has
 * wider registers than they use, and the workers end; OpenBLAS starts them again for a product that
 * needs them, as it does after each fork(). The user's word (OPENBLAS_CORETYPE) is never changed.
 * Nothing is, where a thread could be inside of OpenBLAS: the process must have no threads but the
 * caller and the workers. Processes that are started from this one find the choice in
 * OPENBLAS_CORETYPE. */
#ifndef PL_EXEC_MATMUL_BLAS_SET_UP_H
#define PL_EXEC_MATMUL_BLAS_SET_UP_H

#include "plimsoll/tensor.h"

/* Both, where they are wanted and safe. */
void pl_blas_set_up(void);

/* The settings in use. */
const char *pl_blas_kernels(void);

/* How many products of f32 or f64 these add up before they write the sum: OpenBLAS's GEMM_Q. */
int64_t pl_blas_depth(pl_dtype dtype);

#endif
