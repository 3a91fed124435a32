/* SPDX-License-Identifier: Apache-2.0 */
/* Many products of one shape. Small ones are shared out among our threads, each using BLAS with one
 * thread: 4096 of 64 x 64 x 64 take half the time of a loop over BLAS with two. */
#include <errno.h>

#include "exec/matmul/matmul.h"
#include "exec/matmul/matmul_product.h"
#include "tensor/dtype.h"

/* The least multiplications in a part: far above the cost of handing it out. */
#define PART_PRODUCTS (64.0 * 64.0 * 64.0)

typedef struct batch_run {
    const pl_matmul_batch *batch;
    pl_threads *threads; /* for one product; NULL: the caller's thread alone */
    pl_stop stop;
    int64_t n_products, part_products;
} batch_run;

static int64_t count_of(const pl_matmul_batch *b)
{
    int64_t n = 1;
    for (int i = 0; i < b->rank; i++)
        n *= b->dims[i];
    return n;
}

static int64_t offset_of(const pl_matmul_batch *b, int64_t index, const int64_t *strides)
{
    int64_t offset = 0;
    for (int i = b->rank - 1; i >= 0; i--) {
        offset += index % b->dims[i] * strides[i];
        index /= b->dims[i];
    }
    return offset;
}

static pl_gemm product_at(const pl_matmul_batch *b, int64_t index)
{
    const pl_matmul_question *q = b->question;
    return (pl_gemm){
        .dtype = q->dtype,
        .m = q->m,
        .n = q->n,
        .k = q->k,
        .a = (const char *)b->a + offset_of(b, index, b->a_strides),
        .b = (const char *)b->b + offset_of(b, index, b->b_strides),
        .c = (char *)b->c + offset_of(b, index, b->c_strides),
        .a_row_bytes = b->a_row_bytes,
        .b_row_bytes = b->b_row_bytes,
        .c_row_bytes = b->c_row_bytes,
        .a_transposed = q->a_transposed,
        .b_transposed = q->b_transposed,
    };
}

static bool go_on(void *context, double fraction)
{
    const batch_run *run = context;
    (void)fraction;
    return !pl_must_stop(run->stop);
}

static int run_part(void *context, int64_t part, int worker)
{
    (void)worker;
    const batch_run *run = context;
    int64_t first = part * run->part_products, end = first + run->part_products;
    for (int64_t i = first; i < end && i < run->n_products; i++) {
        pl_gemm g = product_at(run->batch, i);
        const pl_product_part large = pl_product_part_of(run->threads, &g);
        if (!(run->batch->question->b_is_a ? pl_product_square_in_parts : pl_product_run_in_parts)(
                run->threads, &g, &large, go_on, (void *)run))
            return -ECANCELED;
    }
    return 0;
}

static double multiplications(const pl_matmul_question *q)
{
    return (double)q->m * (double)q->n * (double)q->k;
}

static int run_shared_out(batch_run *run, pl_threads *threads)
{
    double per_part = PART_PRODUCTS / (multiplications(run->batch->question) + 1);
    run->part_products = per_part < 1 ? 1 : (int64_t)per_part;
    int64_t n_parts = (run->n_products + run->part_products - 1) / run->part_products;
    return pl_threads_run(threads, n_parts, run_part, run);
}

static int run_in_turn(batch_run *run, pl_threads *threads)
{
    run->threads = threads;
    run->part_products = 1;
    int r = 0;
    for (int64_t i = 0; i < run->n_products && r == 0; i++)
        r = run_part(run, i, 0);
    return r;
}

int pl_matmul_batch_run(const pl_matmul_batch *batch, pl_memory *memory, pl_threads *threads,
                        pl_stop stop, pl_error *reterr)
{
    const pl_matmul_question *q = batch->question;
    int n_threads = q->n_threads;
    if (!pl_matmul_takes(q->dtype))
        return pl_error_set(reterr, -ENOTSUP, "%s is not multiplied: cast it first",
                            pl_dtype_info_of(q->dtype)->name);
    batch_run run = {.batch = batch, .stop = stop, .n_products = count_of(batch)};
    bool shared = pl_matmul_is_shared_out(q->m, q->n, q->k, run.n_products, n_threads);
    uint64_t workspace =
        pl_matmul_batch_workspace_bytes(q->dtype, q->m, q->n, q->k, run.n_products, n_threads);
    pl_blas_use use;
    int r = pl_blas_use_begin(&use, memory, shared ? 1 : n_threads, workspace, reterr);
    if (r < 0)
        return r;
    r = shared ? run_shared_out(&run, threads) : run_in_turn(&run, threads);
    pl_blas_use_end(&use);
    return r < 0 ? pl_error_set(reterr, r, "cancelled") : 0;
}
