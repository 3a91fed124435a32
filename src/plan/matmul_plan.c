/* SPDX-License-Identifier: Apache-2.0 */
/* See matmul_plan.h. Chooses between strips and tiles by a rough estimate of seconds. */
#include "plan/matmul_plan.h"

#include <errno.h>
#include <stdio.h>

#include "base/size.h"
#include "plan/matmul_plan_private.h"
#include "tensor/dtype.h"
#include "tensor/memory.h"

/* Rough rates of a machine of 2 processors, 2020s: they choose between strategies, nothing else. */
#define FLOPS_PER_THREAD 80e9
#define PACK_S_PER_ITEM  1e-9
#define DISK_BYTES_PER_S 2e9

/* The most multiplications: more would take years, and the sums of bytes below could overflow. */
#define PRODUCTS_MOST 0x1p58

uint64_t pl_matmul_buffer_bytes(uint64_t bytes)
{
    uint64_t pages = (bytes + 2 * PL_MATMUL_PAGE_BYTES - 1) / PL_MATMUL_PAGE_BYTES;
    return pl_max_u64(pages * PL_MATMUL_PAGE_BYTES, PL_MEMORY_PAGED_BYTES);
}

/* Loading and computing overlap; copying to blocks comes before. */
double pl_matmul_plan_seconds(const pl_matmul_plan *plan)
{
    if (plan->strategy == PL_MATMUL_WHOLE)
        return plan->flops / FLOPS_PER_THREAD / plan->question.n_threads;
    question *q = &plan->question;
    double products = plan->flops / 2, threads = q->n_threads;
    double packed = 1.0 / (double)plan->tile_rows + 1.0 / (double)plan->tile_columns;
    int64_t full = depth_of(q);
    if (plan->depth < full)
        packed += 1.0 / (double)plan->depth - 1.0 / (double)full;
    if (q->b_transposed && plan->strategy == PL_MATMUL_STRIPS)
        packed += 1.0 / (double)plan->panel_rows;
    double computing =
        (2 * products / FLOPS_PER_THREAD + products * packed * PACK_S_PER_ITEM) / threads;
    double copied = 2.0 * (double)plan->scratch_disk_bytes;
    double streamed = (double)(plan->read_bytes + plan->written_bytes) - copied;
    double streaming = streamed / DISK_BYTES_PER_S;
    return (computing > streaming ? computing : streaming) + copied / DISK_BYTES_PER_S;
}

static uint64_t needed_bytes(const pl_matmul_plan *plan)
{
    return plan->scratch_bytes + plan->workspace_bytes;
}

static bool is_resident(question *q)
{
    return q->a_resident && q->b_resident && q->c_resident;
}

static bool plan_whole(pl_matmul_plan *plan)
{
    question *q = &plan->question;
    plan->strategy = PL_MATMUL_WHOLE;
    plan->tile_rows = q->m;
    plan->tile_columns = q->n;
    plan->depth = q->k;
    plan->panel_rows = b_rows(q);
    plan->n_groups = 1;
    plan->flops = 2.0 * (double)q->m * (double)q->n * (double)q->k / (q->b_is_a ? 2 : 1);
    set_workspace(plan, q->m);
    return fits(plan);
}

pl_matmul_plan pl_matmul_plan_least(question *q)
{
    pl_matmul_plan whole = {.question = *q}, strips = whole, tiles = whole;
    bool have_strips = pl_matmul_least_strips(&strips), have_tiles = pl_matmul_least_tiles(&tiles);
    bool take_tiles = have_tiles && (!have_strips || needed_bytes(&tiles) < needed_bytes(&strips));
    const pl_matmul_plan *least = take_tiles ? &tiles : &strips;
    if (is_resident(q)) {
        plan_whole(&whole);
        if (needed_bytes(&whole) < needed_bytes(least))
            least = &whole;
    }
    return *least;
}

void pl_matmul_plan_parts(const pl_matmul_plan *plan, uint64_t value_bytes,
                          char text[PL_MATMUL_PARTS_BYTES])
{
    const uint64_t buffers = plan->a_bytes + plan->b_bytes + plan->c_bytes;
    const struct {
        const char *name;
        uint64_t bytes;
    } parts[] = {{"A", plan->a_bytes},
                 {"B", plan->b_bytes},
                 {"C", plan->c_bytes},
                 {"reading ahead", pl_sub_sat_u64(plan->scratch_bytes, buffers)},
                 {"workspace", plan->workspace_bytes},
                 {"other values", value_bytes}};
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < PL_COUNT_OF(parts) && at < PL_MATMUL_PARTS_BYTES; i++)
        if (parts[i].bytes > 0)
            at += (size_t)snprintf(text + at, PL_MATMUL_PARTS_BYTES - at, "%s%s %s",
                                   at > 0 ? " + " : "", parts[i].name, PL_SIZE(parts[i].bytes));
}

static int refuse(question *q, pl_error *reterr)
{
    pl_matmul_plan least = pl_matmul_plan_least(q);
    char parts[PL_MATMUL_PARTS_BYTES];
    pl_matmul_plan_parts(&least, 0, parts);
    return pl_error_set(reterr, PL_EBUDGET, "the smallest tiling needs %s (%s); there are %s",
                        PL_SIZE(needed_bytes(&least)), parts, PL_SIZE(q->budget_bytes));
}

static int plan_in_parts(pl_matmul_plan *plan, pl_error *reterr)
{
    pl_matmul_plan strips = *plan, tiles = *plan;
    bool have_strips = pl_matmul_plan_strips(&strips), have_tiles = pl_matmul_plan_tiles(&tiles);
    if (!have_strips && !have_tiles)
        return refuse(&plan->question, reterr);
    bool take_tiles = have_tiles && (!have_strips || pl_matmul_plan_seconds(&tiles) <
                                                         pl_matmul_plan_seconds(&strips));
    *plan = take_tiles ? tiles : strips;
    return 0;
}

static bool countable(question *q)
{
    double m = (double)most(q->m, 1), n = (double)most(q->n, 1), k = (double)most(q->k, 1);
    return m * n * k <= PRODUCTS_MOST;
}

int pl_matmul_plan_make(question *q, pl_matmul_plan *ret_plan, pl_error *reterr)
{
    if (!pl_matmul_takes(q->dtype))
        return pl_error_set(reterr, -ENOTSUP, "%s is not multiplied: cast it first",
                            pl_dtype_info_of(q->dtype)->name);
    if (!countable(q))
        return pl_error_set(reterr, -EOVERFLOW,
                            "%.3g products are too many: at most %.3g are computed",
                            (double)q->m * (double)q->n * (double)q->k, PRODUCTS_MOST);
    pl_matmul_plan plan = {.question = *q};
    bool empty = q->m == 0 || q->n == 0;
    plan.flops = 2.0 * (double)q->m * (double)q->n * (double)q->k;
    bool whole = empty || (is_resident(q) && plan_whole(&plan));
    int r = whole ? 0 : plan_in_parts(&plan, reterr);
    if (r == 0)
        *ret_plan = plan;
    return r;
}

const char *pl_matmul_strategy_name(pl_matmul_strategy strategy)
{
    return strategy == PL_MATMUL_WHOLE    ? "whole"
           : strategy == PL_MATMUL_STRIPS ? "strips"
                                          : "tiles";
}

/* ---- the memory of OpenBLAS, which exec/matmul/blas.c calls ---- */

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

/* From this many multiplications on, all threads work on one product. */
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
