/* SPDX-License-Identifier: Apache-2.0 */
/* Corrects settings that OpenBLAS made when it was loaded.
 *   kernels  loops for one kind of processor, by OpenBLAS's names: "Haswell" has AVX2, "SkylakeX"
 *            AVX-512. OpenBLAS chooses by the processor's model number; a processor newer than the
 *            library gets the kernels of 2004, "Prescott": SSE3. Debian 12 has OpenBLAS 0.3.21,
 *            which does not know an Intel processor of 2023: products took five times as long on it
 *            as with SkylakeX's kernels
 *   workers  OpenBLAS's threads. It starts them at once, and they poll for work for 2^26 cycles: in
 *            a program that read pictures on two cores, without any product, they used a seventh of
 *            the first 0.4 s
 *
 * So this library corrects both when it is loaded. It chooses kernels again if the processor has
 * wider registers than they use. It ends the workers; OpenBLAS starts them again for a product that
 * needs them, as it does after each fork(). It never overrides the user's OPENBLAS_CORETYPE, and
 * changes nothing if a thread could be inside OpenBLAS: the process must have no threads but the
 * caller and the workers. Child processes find the choice in OPENBLAS_CORETYPE. */
#ifndef PL_EXEC_MATMUL_BLAS_SET_UP_H
#define PL_EXEC_MATMUL_BLAS_SET_UP_H

#include "plimsoll/tensor.h"

/* Corrects both, where they are wanted and safe. */
void pl_blas_set_up(void);

/* The name of the kernels in use. */
const char *pl_blas_kernels(void);

/* How many products of f32 or f64 the kernels add up before they write the sum: OpenBLAS's
 * GEMM_Q. */
int64_t pl_blas_depth(pl_dtype dtype);

#endif
