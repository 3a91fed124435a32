/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenBLAS takes, and what it can be given: see matmul_plan.h. It is called in exec/matmul/blas.c. */
#include "plan/matmul_plan.h"
#include "tensor/dtype.h"
#include "tensor/memory.h"

bool pl_matmul_takes(pl_dtype dtype)
{
    const pl_dtype_info *info = pl_dtype_info_of(dtype);
    return (info->kind == PL_KIND_UNSIGNED || info->kind == PL_KIND_SIGNED ||
            info->kind == PL_KIND_FLOAT) &&
           !info->is_storage;
}

/* The most that OpenBLAS 0.3.21 packs at a time along k (its GEMM_Q for x86: 320 and 256 on Zen, up
 * to these on others), and beside that, per thread, its GEMM_P x GEMM_Q block: 1 MiB on Zen. */
enum { DEPTH_MOST_F32 = 448, DEPTH_MOST_F64 = 384 };
#define THREAD_BYTES (2 * PL_MIB)

uint64_t pl_matmul_workspace_bytes(pl_dtype dtype, int64_t rows, int n_threads)
{
    if (dtype != PL_F32 && dtype != PL_F64)
        return 0;
    uint64_t at_once = pl_min_u64((uint64_t)rows, PL_MATMUL_ROWS_MOST);
    uint64_t row_bytes = dtype == PL_F32 ? DEPTH_MOST_F32 * 4 : DEPTH_MOST_F64 * 8;
    return pl_memory_cost_bytes(at_once * row_bytes + (uint64_t)n_threads * THREAD_BYTES);
}

/* From so many multiplications on, all threads work on one product. */
#define LARGE_PRODUCT (256.0 * 256.0 * 256.0)

bool pl_matmul_is_shared_out(int64_t m, int64_t n, int64_t k, int64_t n_products, int n_threads)
{
    return (double)m * (double)n * (double)k < LARGE_PRODUCT && n_products >= n_threads;
}

uint64_t pl_matmul_batch_workspace_bytes(pl_dtype dtype, int64_t m, int64_t n, int64_t k,
                                         int64_t n_products, int n_threads)
{
    int64_t at_once = pl_matmul_is_shared_out(m, n, k, n_products, n_threads) ? n_threads : 1;
    return pl_matmul_workspace_bytes(dtype, m * at_once, n_threads);
}
