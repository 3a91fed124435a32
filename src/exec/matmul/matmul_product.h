/* SPDX-License-Identifier: Apache-2.0 */
/* One product of matrices in memory, of any dtype that is computed with: floats by BLAS (within a
 * pl_blas_use), integers by plain loops that wrap around as C's unsigned ones do.
 *   f32 and f64  each element is a sum of k rounded products in an order that depends on shapes and
 *                threads: within (k + 1) * epsilon * (|a| |b|) of the exact one, the same each time
 *   integers     exact modulo 2 to the bits of the dtype, as NumPy's
 *
 * Safe from any thread. */
#ifndef PL_EXEC_MATMUL_MATMUL_PRODUCT_H
#define PL_EXEC_MATMUL_MATMUL_PRODUCT_H

#include "exec/matmul/blas.h"
#include "util/threads.h"

/* `threads` are for what BLAS does not do; NULL: the caller does it all. Any of m, n, k may be 0.
 */
void pl_product_run(pl_threads *threads, const pl_gemm *gemm);

/* The same where b is a, used the other way round: half the work, and the other half copied. */
void pl_product_square(pl_threads *threads, const pl_gemm *gemm);

/* Asked before each part of a product, with what is done of it: false ends it. */
typedef bool pl_product_go_on(void *context, double fraction);

/* The most that is multiplied between two questions. */
typedef struct pl_product_part {
    int64_t rows, columns, inner;
} pl_product_part;

/* A tenth of a second or so: by threads and dtype alone, because the order of a sum
 * depends on it. `threads` may be NULL. */
pl_product_part pl_product_part_of(pl_threads *threads, const pl_gemm *gemm);

/* As the two above, in parts, and as one if that is not much more than a part. False if it was
 * ended. */
PL_MUST_CHECK bool pl_product_run_in_parts(pl_threads *threads, const pl_gemm *gemm,
                                           const pl_product_part *part, pl_product_go_on *go_on,
                                           void *context);
PL_MUST_CHECK bool pl_product_square_in_parts(pl_threads *threads, const pl_gemm *gemm,
                                              const pl_product_part *part, pl_product_go_on *go_on,
                                              void *context);

#endif
