/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS, behind one file: float32 and float64 products of matrices in memory.
 *   matrix     rows that lie `row_bytes` apart as stored; `transposed` says how it is used
 *   workspace  the memory that OpenBLAS keeps for packed pieces of the operands, and never frees.
 *              It grows with the rows of the left operand in one call, so calls are cut at
 *              PL_MATMUL_ROWS_MOST
 *   use        a period in which products are computed, with a certain number of OpenBLAS's threads
 *
 * The number of threads is global to the process. Uses with the same number run side by side,
 * others wait for them, and the last one restores the previous setting. OpenBLAS ends the process
 * if it cannot allocate its workspace, or a few KiB for its threads. A use therefore begins with a
 * claim for the workspace, which other claims of the process cannot take away.
 *
 * Within a use, all functions are safe from any thread. */
#ifndef PL_EXEC_MATMUL_BLAS_H
#define PL_EXEC_MATMUL_BLAS_H

#include "plan/matmul_plan.h"
#include "plimsoll/tensor.h"
#include "tensor/memory.h"

/* c (+)= op(a) op(b): m x n from m x k and k x n. */
typedef struct pl_gemm {
    pl_dtype dtype;
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t a_row_bytes, b_row_bytes, c_row_bytes;
    bool a_transposed, b_transposed;
    bool add;             /* to what is in c; otherwise c is overwritten without being read */
    int64_t rows_at_once; /* of c, in one call, for the workspace; 0: PL_MATMUL_ROWS_MOST */
} pl_gemm;

typedef struct pl_blas_use {
    pl_memory *memory;
    pl_block claim; /* for the part of the workspace that is not resident yet */
    uint64_t workspace_bytes;
} pl_blas_use;

/* `memory` may be NULL: nothing is claimed. May wait for uses with another number of threads, so a
 * thread inside a use must not begin another. */
PL_MUST_CHECK int pl_blas_use_begin(pl_blas_use *use, pl_memory *memory, int n_threads,
                                    uint64_t workspace_bytes, pl_error *reterr);
void pl_blas_use_end(pl_blas_use *use);

/* The part of a workspace that is resident already: a use claims only what it needs beyond it.
 * Never falls. */
uint64_t pl_blas_there_bytes(void);

/* Returns whether BLAS can compute it: BLAS knows two dtypes, and counts in 32 bits. */
bool pl_blas_takes(const pl_gemm *gemm);

/* m, n and k must not be 0. */
void pl_blas_gemm(const pl_gemm *gemm);

/* Computes the lower triangle of c, with its diagonal, for c = a times a-transposed (or, if a is
 * used transposed, a-transposed times a). b is ignored; m equals n. */
void pl_blas_syrk(const pl_gemm *gemm);

#endif
