/* SPDX-License-Identifier: Apache-2.0 */
/* One product of matrices in memory, of any dtype that is multiplied: floats by BLAS (within a
 * pl_blas_use), integers by plain loops that wrap around like C's unsigned integers.
 *   f32 and f64  each element is a sum of k rounded products in an order that depends on shapes and
 *                threads: within (k + 1) * epsilon * (|a| |b|) of the exact sum, and the same each
 *                time
 *   integers     exact modulo 2 to the number of bits of the dtype, as in NumPy
 *
 * Safe from any thread. */
#ifndef PL_EXEC_MATMUL_MATMUL_PRODUCT_H
#define PL_EXEC_MATMUL_MATMUL_PRODUCT_H

#include "exec/matmul/blas.h"
#include "util/threads.h"

/* `threads` do what BLAS does not; NULL: the caller does it alone. Any of m, n, k may be 0. */
void pl_product_run(pl_threads *threads, const pl_gemm *gemm);

/* pl_product_run() where b is a, transposed: computes one half and copies the other. */
void pl_product_square(pl_threads *threads, const pl_gemm *gemm);

/* Called before each part of a product with the fraction that is done; returning false stops the
 * product. */
typedef bool pl_product_go_on(void *context, double fraction);

/* The most that is multiplied between two such calls. */
typedef struct pl_product_part {
    int64_t rows, columns, inner;
} pl_product_part;

/* A part takes a tenth of a second or so. It depends only on threads and dtype, because the order
 * of a sum depends on it. `threads` may be NULL. */
pl_product_part pl_product_part_of(pl_threads *threads, const pl_gemm *gemm);

/* pl_product_run() and pl_product_square() in parts, or in one call if that is not much more than a
 * part. Returns false if it was stopped. */
PL_MUST_CHECK bool pl_product_run_in_parts(pl_threads *threads, const pl_gemm *gemm,
                                           const pl_product_part *part, pl_product_go_on *go_on,
                                           void *context);
PL_MUST_CHECK bool pl_product_square_in_parts(pl_threads *threads, const pl_gemm *gemm,
                                              const pl_product_part *part, pl_product_go_on *go_on,
                                              void *context);

#endif
