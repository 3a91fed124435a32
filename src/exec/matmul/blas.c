/* SPDX-License-Identifier: Apache-2.0 */
/* See blas.h. */
#include "exec/matmul/blas.h"

#include <cblas.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "exec/matmul/blas_set_up.h"
#include "tensor/dtype.h"

/* Runs at load time, not at the first product: while it loads libraries, a process usually has no
 * threads yet. */
__attribute__((constructor)) static void set_up(void)
{
    pl_blas_set_up();
}

/* ---- uses ---- */

static struct {
    pthread_mutex_t mu; /* leaf lock */
    pthread_cond_t all_left;
    int n_inside;         /* mu */
    int n_threads;        /* mu; of those now inside */
    int n_threads_before; /* mu; what the program had set */
} uses = {.mu = PTHREAD_MUTEX_INITIALIZER, .all_left = PTHREAD_COND_INITIALIZER};

/* The largest workspace that a use has filled. It is resident, and counted as measured from then
 * on. */
static _Atomic uint64_t filled_bytes;

/* Makes OpenBLAS map its buffer for each thread, which it does in that thread's first call: now,
 * within the claim, and not halfway through a product. */
static void map_buffers(void)
{
    float one = 1, c;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &one, 1, &one, 1, 0, &c, 1);
}

static void enter(int n_threads)
{
    pthread_mutex_lock(&uses.mu);
    while (uses.n_inside > 0 && uses.n_threads != n_threads)
        pthread_cond_wait(&uses.all_left, &uses.mu);
    if (uses.n_inside++ == 0) {
        uses.n_threads = n_threads;
        uses.n_threads_before = openblas_get_num_threads();
        if (uses.n_threads_before != n_threads)
            openblas_set_num_threads(n_threads);
    }
    pthread_mutex_unlock(&uses.mu);
}

static void leave(void)
{
    pthread_mutex_lock(&uses.mu);
    if (--uses.n_inside == 0) {
        if (uses.n_threads_before != uses.n_threads)
            openblas_set_num_threads(uses.n_threads_before);
        pthread_cond_broadcast(&uses.all_left);
    }
    pthread_mutex_unlock(&uses.mu);
}

uint64_t pl_blas_there_bytes(void)
{
    return atomic_load(&filled_bytes);
}

int pl_blas_use_begin(pl_blas_use *use, pl_memory *memory, int n_threads, uint64_t workspace_bytes,
                      pl_error *reterr)
{
    *use = (pl_blas_use){.memory = memory, .workspace_bytes = workspace_bytes};
    uint64_t missing = pl_sub_sat_u64(workspace_bytes, pl_blas_there_bytes());
    if (memory && missing > 0) {
        int r = pl_memory_take(memory, missing, "BLAS workspace", &use->claim, reterr);
        if (r < 0)
            return r;
    }
    enter(n_threads);
    if (workspace_bytes > 0)
        map_buffers();
    return 0;
}

void pl_blas_use_end(pl_blas_use *use)
{
    leave();
    uint64_t filled = atomic_load(&filled_bytes);
    while (filled < use->workspace_bytes &&
           !atomic_compare_exchange_weak(&filled_bytes, &filled, use->workspace_bytes))
        ;
    if (use->memory)
        pl_memory_give(use->memory, &use->claim);
}

/* ---- products ---- */

static int64_t item_bytes(const pl_gemm *g)
{
    return pl_dtype_info_of(g->dtype)->item_bytes;
}

/* BLAS wants at least the row's length here, even for a single row, where the stride is not
 * used. */
static int leading(int64_t row_bytes, int64_t n_rows, int64_t n_columns, int64_t item)
{
    return (int)(n_rows == 1 ? n_columns : row_bytes / item);
}

static bool countable(int64_t row_bytes, int64_t n_rows, int64_t n_columns, int64_t item)
{
    return n_rows <= INT_MAX && n_columns <= INT_MAX &&
           (n_rows == 1 || (row_bytes % item == 0 && row_bytes / item <= INT_MAX &&
                            row_bytes / item >= n_columns));
}

bool pl_blas_takes(const pl_gemm *g)
{
    int64_t item = item_bytes(g);
    bool ta = g->a_transposed, tb = g->b_transposed;
    return (g->dtype == PL_F32 || g->dtype == PL_F64) &&
           countable(g->a_row_bytes, ta ? g->k : g->m, ta ? g->m : g->k, item) &&
           countable(g->b_row_bytes, tb ? g->n : g->k, tb ? g->k : g->n, item) &&
           countable(g->c_row_bytes, g->m, g->n, item);
}

static void call_gemm(const pl_gemm *g)
{
    enum CBLAS_TRANSPOSE ta = g->a_transposed ? CblasTrans : CblasNoTrans;
    enum CBLAS_TRANSPOSE tb = g->b_transposed ? CblasTrans : CblasNoTrans;
    int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    int64_t item = item_bytes(g);
    int lda =
        g->a_transposed ? leading(g->a_row_bytes, k, m, item) : leading(g->a_row_bytes, m, k, item);
    int ldb =
        g->b_transposed ? leading(g->b_row_bytes, n, k, item) : leading(g->b_row_bytes, k, n, item);
    int ldc = leading(g->c_row_bytes, m, n, item);
    if (g->dtype == PL_F32)
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1.0f, g->a, lda, g->b, ldb, g->add ? 1.0f : 0,
                    g->c, ldc);
    else
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1.0, g->a, lda, g->b, ldb, g->add ? 1.0 : 0,
                    g->c, ldc);
}

static int64_t rows_at_once(const pl_gemm *g)
{
    return g->rows_at_once > 0 ? g->rows_at_once : PL_MATMUL_ROWS_MOST;
}

void pl_blas_gemm(const pl_gemm *gemm)
{
    int64_t at_once = rows_at_once(gemm);
    for (int64_t row = 0; row < gemm->m; row += at_once) {
        pl_gemm g = *gemm;
        g.m = (int64_t)pl_min_u64((uint64_t)(gemm->m - row), (uint64_t)at_once);
        g.a = (const char *)g.a + row * (g.a_transposed ? item_bytes(&g) : g.a_row_bytes);
        g.c = (char *)g.c + row * g.c_row_bytes;
        call_gemm(&g);
    }
}

static void call_syrk(const pl_gemm *g)
{
    enum CBLAS_TRANSPOSE t = g->a_transposed ? CblasTrans : CblasNoTrans;
    int n = (int)g->m, k = (int)g->k;
    int64_t item = item_bytes(g);
    int lda =
        g->a_transposed ? leading(g->a_row_bytes, k, n, item) : leading(g->a_row_bytes, n, k, item);
    int ldc = leading(g->c_row_bytes, n, n, item);
    if (g->dtype == PL_F32)
        cblas_ssyrk(CblasRowMajor, CblasLower, t, n, k, 1.0f, g->a, lda, g->add ? 1.0f : 0, g->c,
                    ldc);
    else
        cblas_dsyrk(CblasRowMajor, CblasLower, t, n, k, 1.0, g->a, lda, g->add ? 1.0 : 0, g->c,
                    ldc);
}

/* Works in strips of rows, as the workspace requires: the part left of the diagonal block, then
 * that block. */
void pl_blas_syrk(const pl_gemm *gemm)
{
    int64_t at_once = rows_at_once(gemm);
    for (int64_t row = 0; row < gemm->m; row += at_once) {
        pl_gemm g = *gemm;
        g.m = (int64_t)pl_min_u64((uint64_t)(gemm->m - row), (uint64_t)at_once);
        g.n = row;
        g.a = (const char *)g.a + row * (g.a_transposed ? item_bytes(&g) : g.a_row_bytes);
        g.b = gemm->a;
        g.b_row_bytes = g.a_row_bytes;
        g.b_transposed = !g.a_transposed;
        g.c = (char *)g.c + row * g.c_row_bytes;
        if (row > 0)
            call_gemm(&g);
        g.c = (char *)g.c + row * item_bytes(&g);
        call_syrk(&g);
    }
}
