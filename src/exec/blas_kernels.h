/* SPDX-License-Identifier: Apache-2.0 */
/* Which of its kernels OpenBLAS uses.
 *   kernels  loops for one kind of processor, by OpenBLAS's names: "Haswell" has AVX2, "SkylakeX"
 *            AVX-512. OpenBLAS chooses by the processor's model number, when it is loaded; to one
 *            that is newer than itself it gives those of 2004, "Prescott": SSE3
 *
 * Debian 12 has OpenBLAS 0.3.21, which does not know an Intel processor of 2023: products took five
 * times as long there as with SkylakeX's kernels. So this library looks at the choice when it is
 * loaded, and mends it if the processor has wider registers than the kernels use. It never does so
 * against the user's word (OPENBLAS_CORETYPE), nor where a thread could be inside of OpenBLAS: the
 * process must have no threads but the caller and OpenBLAS's own, which wait for work. Processes
 * that are started from this one find the choice in OPENBLAS_CORETYPE. */
#ifndef PL_EXEC_BLAS_KERNELS_H
#define PL_EXEC_BLAS_KERNELS_H

#include "kernels/isa.h"
#include "plimsoll/tensor.h"

/* What a processor of `isa` should use instead of `chosen`, or NULL if that is good enough. Pure.
 * Only old kernels are ever replaced: among new ones OpenBLAS knows better. */
const char *pl_blas_better_kernels(const char *chosen, pl_isa isa);

/* Mends the choice, where that is wanted and safe. */
void pl_blas_choose_kernels(void);

/* What is used now. */
const char *pl_blas_kernels(void);

/* How many products of f32 or f64 these add up before they write the sum: OpenBLAS's GEMM_Q. */
int64_t pl_blas_depth(pl_dtype dtype);

#endif
