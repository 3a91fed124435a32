/* SPDX-License-Identifier: Apache-2.0 */
/* See matmul_product.h. */
#include "exec/matmul/matmul_product.h"

#include <string.h>

#include "exec/matmul/blas_set_up.h"
#include "tensor/dtype.h"

enum {
    PART_ROWS = 16,   /* of c, for one thread at a time */
    BLOCK_INNER = 64, /* along k: this many rows of b stay in the cache for a part's rows */
    MIRROR = 64,      /* rows and columns that are mirrored at a time: both sides fit in L1 */
};

static int64_t item_bytes(const pl_gemm *g)
{
    return pl_dtype_info_of(g->dtype)->item_bytes;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- plain loops ---- */

/* Adds part [inner, inner_end) of the sum to rows [row, row_end) of c. `wide` is a type in which
 * products are exact modulo the type's bits: unsigned, because signed overflow is undefined. */
#define PLAIN_LOOP(name, type, wide)                                                               \
    static void name(const pl_gemm *g, int64_t row, int64_t row_end, int64_t inner,                \
                     int64_t inner_end)                                                            \
    {                                                                                              \
        int64_t a_i = g->a_transposed ? (int64_t)sizeof(type) : g->a_row_bytes;                    \
        int64_t a_p = g->a_transposed ? g->a_row_bytes : (int64_t)sizeof(type);                    \
        for (int64_t i = row; i < row_end; i++) {                                                  \
            const char *a = (const char *)g->a + i * a_i;                                          \
            type *c = (type *)((char *)g->c + i * g->c_row_bytes);                                 \
            if (g->b_transposed) {                                                                 \
                for (int64_t j = 0; j < g->n; j++) {                                               \
                    const type *b = (const type *)((const char *)g->b + j * g->b_row_bytes);       \
                    wide sum = c[j];                                                               \
                    for (int64_t p = inner; p < inner_end; p++)                                    \
                        sum += *(const type *)(a + p * a_p) * (wide)b[p];                          \
                    c[j] = (type)sum;                                                              \
                }                                                                                  \
            } else {                                                                               \
                for (int64_t p = inner; p < inner_end; p++) {                                      \
                    wide x = *(const type *)(a + p * a_p);                                         \
                    const type *b = (const type *)((const char *)g->b + p * g->b_row_bytes);       \
                    for (int64_t j = 0; j < g->n; j++)                                             \
                        c[j] = (type)(c[j] + x * b[j]);                                            \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

PLAIN_LOOP(plain_8, uint8_t, uint32_t)
PLAIN_LOOP(plain_16, uint16_t, uint32_t)
PLAIN_LOOP(plain_32, uint32_t, uint32_t)
PLAIN_LOOP(plain_64, uint64_t, uint64_t)
PLAIN_LOOP(plain_f32, float, float)
PLAIN_LOOP(plain_f64, double, double)

typedef void plain_loop(const pl_gemm *g, int64_t row, int64_t row_end, int64_t inner,
                        int64_t inner_end);

/* Floats come here if their rows are too many for BLAS to count. */
static plain_loop *loop_of(pl_dtype dtype)
{
    if (dtype == PL_F32)
        return plain_f32;
    if (dtype == PL_F64)
        return plain_f64;
    switch (pl_dtype_info_of(dtype)->item_bytes) {
    case 1:
        return plain_8;
    case 2:
        return plain_16;
    case 4:
        return plain_32;
    default:
        return plain_64;
    }
}

static void clear_rows(const pl_gemm *g, int64_t row, int64_t row_end)
{
    for (int64_t i = row; i < row_end; i++)
        memset((char *)g->c + i * g->c_row_bytes, 0, (size_t)(g->n * item_bytes(g)));
}

static int plain_part(void *context, int64_t part, int worker)
{
    (void)worker;
    const pl_gemm *g = context;
    int64_t row = part * PART_ROWS, row_end = least(row + PART_ROWS, g->m);
    if (!g->add)
        clear_rows(g, row, row_end);
    for (int64_t p = 0; p < g->k; p += BLOCK_INNER)
        loop_of(g->dtype)(g, row, row_end, p, least(p + BLOCK_INNER, g->k));
    return 0;
}

/* Parts cannot fail, so neither can this. */
static void run_parts(pl_threads *threads, int64_t n_parts, pl_threads_work *work,
                      const pl_gemm *gemm)
{
    if (threads)
        (void)!pl_threads_run(threads, n_parts, work, (void *)gemm);
    else
        for (int64_t part = 0; part < n_parts; part++)
            (void)!work((void *)gemm, part, 0);
}

void pl_product_run(pl_threads *threads, const pl_gemm *gemm)
{
    if (gemm->m == 0 || gemm->n == 0)
        return;
    if (gemm->k > 0 && pl_blas_takes(gemm))
        pl_blas_gemm(gemm);
    else
        run_parts(threads, (gemm->m + PART_ROWS - 1) / PART_ROWS, plain_part, gemm);
}

/* ---- a matrix times itself ---- */

#define MIRROR_LOOP(name, type)                                                                    \
    static void name(const pl_gemm *g, int64_t row, int64_t column)                                \
    {                                                                                              \
        for (int64_t i = row; i < least(row + MIRROR, g->m); i++)                                  \
            for (int64_t j = column; j < least(column + MIRROR, i); j++)                           \
                *((type *)((char *)g->c + j * g->c_row_bytes) + i) =                               \
                    *((const type *)((const char *)g->c + i * g->c_row_bytes) + j);                \
    }

MIRROR_LOOP(mirror_f32, float)
MIRROR_LOOP(mirror_f64, double)

/* Copies the lower triangle's rows [part * MIRROR, ...) to columns of the upper one. */
static int mirror_part(void *context, int64_t part, int worker)
{
    (void)worker;
    const pl_gemm *g = context;
    int64_t row = part * MIRROR;
    for (int64_t column = 0; column <= row; column += MIRROR)
        (g->dtype == PL_F32 ? mirror_f32 : mirror_f64)(g, row, column);
    return 0;
}

void pl_product_square(pl_threads *threads, const pl_gemm *gemm)
{
    pl_gemm g = *gemm;
    g.b = g.a;
    g.b_row_bytes = g.a_row_bytes;
    g.b_transposed = !g.a_transposed;
    if (g.add || g.k == 0 || g.m == 0 || !pl_blas_takes(&g)) {
        pl_product_run(threads, &g);
        return;
    }
    pl_blas_syrk(&g);
    run_parts(threads, (g.m + MIRROR - 1) / MIRROR, mirror_part, &g);
}

/* ---- in parts ---- */

/* Along the sum, parts end where OpenBLAS would end one itself, so a cut there costs nothing. Both
 * operands are packed again for each part, which is about a thousandth of the work for 4096 x 4096.
 * Such a part takes a twentieth of a second on two cores with AVX-512, a tenth with AVX2. */
enum { ROWS = 4096, COLUMNS = 2048, PLAIN_ROWS = 64, PLAIN_INNER = 768 };

pl_product_part pl_product_part_of(pl_threads *threads, const pl_gemm *gemm)
{
    int64_t n_threads = threads ? pl_threads_count(threads) : 1;
    bool plain = gemm->dtype != PL_F32 && gemm->dtype != PL_F64;
    return (pl_product_part){.rows = plain ? PLAIN_ROWS : ROWS,
                             .columns = COLUMNS * n_threads,
                             .inner = plain ? PLAIN_INNER : pl_blas_depth(gemm->dtype)};
}

typedef struct parts_run {
    pl_threads *threads;
    const pl_product_part *part;
    pl_product_go_on *go_on;
    void *context;
    double n_done, n_all; /* products of elements */
} parts_run;

static double products_of(int64_t m, int64_t n, int64_t k)
{
    return (double)m * (double)n * (double)k;
}

/* If less than two parts are left, BLAS halves them. */
static int64_t inner_at(const parts_run *run, int64_t n_left)
{
    return n_left < 2 * run->part->inner ? n_left : run->part->inner;
}

/* Returns a part size of at most `most`, such that all parts are about equal. */
static int64_t even(int64_t n, int64_t most)
{
    int64_t n_parts = n > most ? (n + most - 1) / most : 1;
    return n > 0 ? (n + n_parts - 1) / n_parts : 1;
}

static bool ask(const parts_run *run)
{
    return run->go_on(run->context, run->n_done / run->n_all);
}

/* The part from `row`, `column` and `inner` on. */
static pl_gemm part_at(const pl_gemm *whole, int64_t row, int64_t column, int64_t inner)
{
    pl_gemm g = *whole;
    int64_t item = item_bytes(whole);
    g.a = (const char *)g.a + (g.a_transposed ? inner * g.a_row_bytes + row * item
                                              : row * g.a_row_bytes + inner * item);
    g.b = (const char *)g.b + (g.b_transposed ? column * g.b_row_bytes + inner * item
                                              : inner * g.b_row_bytes + column * item);
    g.c = (char *)g.c + row * g.c_row_bytes + column * item;
    g.add = whole->add || inner > 0;
    return g;
}

/* Computes a block of c. There is at least one part: with k = 0 it clears the block. */
static bool sum_in_parts(parts_run *run, const pl_gemm *whole, int64_t row, int64_t column,
                         int64_t n_rows, int64_t n_columns)
{
    int64_t p = 0;
    do {
        pl_gemm g = part_at(whole, row, column, p);
        g.m = n_rows;
        g.n = n_columns;
        g.k = inner_at(run, whole->k - p);
        if (!ask(run))
            return false;
        pl_product_run(run->threads, &g);
        run->n_done += products_of(g.m, g.n, g.k);
        p += g.k;
    } while (p < whole->k);
    return true;
}

static bool gemm_in_parts(parts_run *run, const pl_gemm *whole)
{
    int64_t rows = even(whole->m, run->part->rows), columns = even(whole->n, run->part->columns);
    for (int64_t i = 0; i < whole->m; i += rows)
        for (int64_t j = 0; j < whole->n; j += columns)
            if (!sum_in_parts(run, whole, i, j, least(rows, whole->m - i),
                              least(columns, whole->n - j)))
                return false;
    return true;
}

static bool syrk_in_parts(parts_run *run, const pl_gemm *whole)
{
    for (int64_t p = 0, n; p < whole->k; p += n) {
        pl_gemm g = part_at(whole, 0, 0, p);
        g.k = n = inner_at(run, whole->k - p);
        if (!ask(run))
            return false;
        pl_blas_syrk(&g);
        run->n_done += products_of(g.m, g.m, g.k) / 2;
    }
    return true;
}

/* Up to twice a part is not worth a cut. */
static bool is_small(const parts_run *run)
{
    const pl_product_part *part = run->part;
    return run->n_all <= 2 * products_of(part->rows, part->columns, part->inner);
}

bool pl_product_run_in_parts(pl_threads *threads, const pl_gemm *gemm, const pl_product_part *part,
                             pl_product_go_on *go_on, void *context)
{
    parts_run run = {threads, part, go_on, context, 0, products_of(gemm->m, gemm->n, gemm->k)};
    if (gemm->m > 0 && gemm->n > 0 && !is_small(&run))
        return gemm_in_parts(&run, gemm);
    if (!go_on(context, 0))
        return false;
    pl_product_run(threads, gemm);
    return true;
}

/* Computes rows [row, row + n_rows) up to the diagonal: the part left of a square block on it, then
 * that block. */
static bool square_rows(parts_run *run, const pl_gemm *whole, int64_t row, int64_t n_rows)
{
    pl_gemm left = part_at(whole, row, 0, 0), block = part_at(whole, row, row, 0);
    left.m = block.m = block.n = n_rows;
    left.n = row;
    return (row == 0 || gemm_in_parts(run, &left)) && syrk_in_parts(run, &block);
}

bool pl_product_square_in_parts(pl_threads *threads, const pl_gemm *gemm,
                                const pl_product_part *part, pl_product_go_on *go_on, void *context)
{
    pl_gemm g = *gemm;
    parts_run run = {threads, part, go_on, context, 0, products_of(g.m, g.m, g.k) / 2};
    g.b = g.a;
    g.b_row_bytes = g.a_row_bytes;
    g.b_transposed = !g.a_transposed;
    if (g.k > 0 && g.m > 0 && (g.add || !pl_blas_takes(&g)))
        return pl_product_run_in_parts(threads, &g, part, go_on, context);
    if (g.k == 0 || g.m == 0 || is_small(&run)) {
        bool goes_on = go_on(context, 0);
        if (goes_on)
            pl_product_square(threads, gemm);
        return goes_on;
    }
    int64_t rows = even(g.m, part->rows);
    for (int64_t row = 0; row < g.m; row += rows)
        if (!square_rows(&run, &g, row, least(rows, g.m - row)))
            return false;
    run_parts(threads, (g.m + MIRROR - 1) / MIRROR, mirror_part, &g);
    return true;
}
