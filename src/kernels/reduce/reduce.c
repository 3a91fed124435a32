/* SPDX-License-Identifier: Apache-2.0 */
/* Partials of reductions: initializes, merges and finishes them. The loops over elements are in
 * files of their own: see reduce_loops.h. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/isa_table.h"
#include "kernels/reduce/reduce_loops.h"
#include "tensor/dtype.h"

#define FOR_INTEGERS(X)                                                                            \
    X(PL_BOOL, uint8_t, 0, 1)                                                                      \
    X(PL_U8, uint8_t, 0, UINT8_MAX)                                                                \
    X(PL_I8, int8_t, INT8_MIN, INT8_MAX)                                                           \
    X(PL_U16, uint16_t, 0, UINT16_MAX)                                                             \
    X(PL_I16, int16_t, INT16_MIN, INT16_MAX)                                                       \
    X(PL_U32, uint32_t, 0, UINT32_MAX)                                                             \
    X(PL_I32, int32_t, INT32_MIN, INT32_MAX)                                                       \
    X(PL_U64, uint64_t, 0, UINT64_MAX)                                                             \
    X(PL_I64, int64_t, INT64_MIN, INT64_MAX)
#define FOR_ALL(X)                                                                                 \
    FOR_INTEGERS(X)                                                                                \
    X(PL_F32, float, -INFINITY, INFINITY)                                                          \
    X(PL_F64, double, -INFINITY, INFINITY)

static bool is_float(pl_dtype dtype)
{
    return dtype == PL_F32 || dtype == PL_F64;
}

static pl_dtype sum_dtype(pl_dtype dtype)
{
    if (is_float(dtype))
        return dtype;
    return pl_dtype_info_of(dtype)->kind == PL_KIND_UNSIGNED ? PL_U64 : PL_I64;
}

pl_dtype pl_reduce_result(pl_reduce reduce)
{
    const pl_dtype_info *info = pl_dtype_info_of(reduce.dtype);
    if (info->kind == PL_KIND_NONE || info->kind == PL_KIND_STRING || info->is_storage)
        return PL_DTYPE_NONE;
    switch (reduce.op) {
    case PL_REDUCE_SUM:
    case PL_REDUCE_PROD:
        return sum_dtype(reduce.dtype);
    case PL_REDUCE_MEAN:
    case PL_REDUCE_VARIANCE:
        return reduce.dtype == PL_F32 ? PL_F32 : PL_F64;
    case PL_REDUCE_MAX:
    case PL_REDUCE_MIN:
        return reduce.dtype;
    case PL_REDUCE_ANY:
    case PL_REDUCE_ALL:
        return PL_BOOL;
    case PL_REDUCE_ARGMAX:
    case PL_REDUCE_ARGMIN:
        return PL_I64;
    case PL_REDUCE_LOGSUMEXP:
        return is_float(reduce.dtype) ? reduce.dtype : PL_DTYPE_NONE;
    case PL_N_REDUCE_OPS:
        break;
    }
    return PL_DTYPE_NONE;
}

static int n_planes(pl_reduce reduce)
{
    switch (reduce.op) {
    case PL_REDUCE_SUM:
        return is_float(reduce.dtype) ? 2 : 1;
    case PL_REDUCE_MEAN:
    case PL_REDUCE_VARIANCE:
        return 3;
    case PL_REDUCE_ARGMAX:
    case PL_REDUCE_ARGMIN:
    case PL_REDUCE_LOGSUMEXP:
        return 2;
    default:
        return 1;
    }
}

size_t pl_reduce_bytes(pl_reduce reduce)
{
    return 8 * (size_t)n_planes(reduce);
}

/* The type of plane 0 decides how wide its steps are; the others have 8 bytes. */
static size_t first_item_bytes(pl_reduce reduce)
{
    switch (reduce.op) {
    case PL_REDUCE_MAX:
    case PL_REDUCE_MIN:
    case PL_REDUCE_ARGMAX:
    case PL_REDUCE_ARGMIN:
        return pl_dtype_info_of(reduce.dtype)->item_bytes;
    case PL_REDUCE_ANY:
    case PL_REDUCE_ALL:
        return 1;
    default:
        return 8;
    }
}

static void find_planes(pl_reduce reduce, pl_partials partials, int64_t at,
                        void *planes[PL_REDUCE_PLANES])
{
    char *data = partials.data;
    planes[0] = data + at * (int64_t)first_item_bytes(reduce);
    for (int i = 1; i < PL_REDUCE_PLANES; i++)
        planes[i] = i < n_planes(reduce) ? data + 8 * (i * partials.n + at) : NULL;
}

static void fill_f64(void *plane, int64_t n, double value)
{
    for (int64_t i = 0; i < n; i++)
        ((double *)plane)[i] = value;
}

/* Fills in the least possible maximum, or the largest possible minimum. */
static void fill_extreme(pl_dtype dtype, void *plane, int64_t n, bool most)
{
    switch (dtype) {
#define CASE(constant, type, low, high)                                                            \
    case constant:                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((type *)plane)[i] = (type)(most ? high : low);                                        \
        break;
        FOR_ALL(CASE)
#undef CASE
    default:
        assert(!"no reduction of this dtype");
    }
}

void pl_reduce_init(pl_reduce reduce, pl_partials partials, int64_t at, int64_t n)
{
    void *planes[PL_REDUCE_PLANES];
    find_planes(reduce, partials, at, planes);
    switch (reduce.op) {
    case PL_REDUCE_PROD:
        if (is_float(reduce.dtype))
            fill_f64(planes[0], n, 1);
        else
            for (int64_t i = 0; i < n; i++)
                ((uint64_t *)planes[0])[i] = 1;
        break;
    case PL_REDUCE_ANY:
    case PL_REDUCE_ALL:
        memset(planes[0], reduce.op == PL_REDUCE_ALL, (size_t)n);
        break;
    case PL_REDUCE_ARGMAX:
    case PL_REDUCE_ARGMIN:
        memset(planes[1], 0xff, (size_t)n * 8);
        /* fall through */
    case PL_REDUCE_MAX:
    case PL_REDUCE_MIN:
        fill_extreme(reduce.dtype, planes[0], n,
                     reduce.op == PL_REDUCE_MIN || reduce.op == PL_REDUCE_ARGMIN);
        break;
    case PL_REDUCE_LOGSUMEXP:
        fill_f64(planes[0], n, -INFINITY);
        memset(planes[1], 0, (size_t)n * 8);
        break;
    default: /* sums, counts and means begin at 0 */
        for (int i = 0; i < n_planes(reduce); i++)
            memset(planes[i], 0, (size_t)n * 8);
    }
}

static const pl_reduce_loops *loops_of(pl_reduce_op op)
{
    switch (op) {
    case PL_REDUCE_SUM:
    case PL_REDUCE_MEAN:
    case PL_REDUCE_PROD:
        return PL_ISA_TABLE(pl_reduce_sums);
    case PL_REDUCE_ANY:
    case PL_REDUCE_ALL:
        return PL_ISA_TABLE(pl_reduce_flags);
    case PL_REDUCE_LOGSUMEXP:
    case PL_REDUCE_VARIANCE:
        return PL_ISA_TABLE(pl_reduce_moments);
    default:
        return PL_ISA_TABLE(pl_reduce_extremes);
    }
}

void pl_reduce_rows(pl_reduce reduce, const pl_reduce_tile *tile, pl_partials partials, int64_t at)
{
    void *planes[PL_REDUCE_PLANES];
    find_planes(reduce, partials, at, planes);
    loops_of(reduce.op)->rows[reduce.op][reduce.dtype](tile, planes);
}

/* Loops that read their rows twice cannot prefetch the next rows meanwhile. Short rows are not
 * streams that the processor detects, so each line of a band of them is read once, in order,
 * beforehand. */
enum { SHORT_ROW_BYTES = 8192, FETCHED_BYTES = 16384, LINE_BYTES = 64, TWICE_ROWS = 32 };

static bool looks_twice(pl_reduce_op op)
{
    return op == PL_REDUCE_ARGMAX || op == PL_REDUCE_ARGMIN || op == PL_REDUCE_LOGSUMEXP ||
           op == PL_REDUCE_VARIANCE;
}

static void fetch(const char *data, int64_t bytes)
{
    unsigned sum = 0;
    for (int64_t i = 0; i < bytes; i += LINE_BYTES)
        sum += (unsigned char)data[i];
    __asm__ volatile("" ::"r"(sum)); /* keeps the compiler from dropping the reads */
}

static void fetch_rows(const pl_reduce_tile *tile, int64_t row_bytes)
{
    if (tile->row_bytes == row_bytes) {
        fetch(tile->data, row_bytes * tile->n_rows);
        return;
    }
    for (int64_t r = 0; r < tile->n_rows; r++)
        fetch((const char *)tile->data + r * tile->row_bytes, row_bytes);
}

/* Returns how many rows are fetched at once: as many as stay in the first-level cache. Loops that
 * take 32 rows get the same ones as in the whole tile, and so give the same bits. */
static int64_t rows_at_once(int64_t row_bytes)
{
    int64_t n = FETCHED_BYTES / (row_bytes + 1) / TWICE_ROWS * TWICE_ROWS;
    return n > TWICE_ROWS ? n : TWICE_ROWS;
}

static void add_counts(double *counts, int64_t n, int64_t n_rows)
{
    for (int64_t i = 0; i < n; i++)
        counts[i] += (double)n_rows;
}

void pl_reduce_columns(pl_reduce reduce, const pl_reduce_tile *tile, pl_partials partials,
                       int64_t at)
{
    void *planes[PL_REDUCE_PLANES];
    pl_reduce_loop *loop = loops_of(reduce.op)->columns[reduce.op][reduce.dtype];
    int64_t row_bytes = tile->n_columns * pl_dtype_info_of(reduce.dtype)->item_bytes;
    int64_t n_band = rows_at_once(row_bytes);
    find_planes(reduce, partials, at, planes);
    if (reduce.op == PL_REDUCE_MEAN)
        add_counts(planes[2], tile->n_columns, tile->n_rows);
    if (!looks_twice(reduce.op) || row_bytes > SHORT_ROW_BYTES || tile->n_rows <= n_band) {
        loop(tile, planes);
        return;
    }
    for (int64_t r = 0; r < tile->n_rows; r += n_band) {
        pl_reduce_tile band = *tile;
        band.data = (const char *)tile->data + r * tile->row_bytes;
        band.n_rows = tile->n_rows - r < n_band ? tile->n_rows - r : n_band;
        band.first_index = tile->first_index + r * tile->index_step;
        fetch_rows(&band, row_bytes);
        loop(&band, planes);
    }
}

/* A partial of argmax is an element with an index, and one of max an element: both are merged like
 * a tile of one row, except that each column has its own index. */
static void merge_indices(pl_reduce reduce, void *const into[], void *const from[], int64_t n)
{
    const int64_t *from_index = from[1];
    size_t item_bytes = first_item_bytes(reduce);
    for (int64_t i = 0; i < n; i++) {
        if (from_index[i] < 0)
            continue;
        void *planes[PL_REDUCE_PLANES] = {(char *)into[0] + (size_t)i * item_bytes,
                                          (int64_t *)into[1] + i};
        pl_reduce_tile one = {.data = (char *)from[0] + (size_t)i * item_bytes,
                              .n_rows = 1,
                              .n_columns = 1,
                              .first_index = from_index[i]};
        loops_of(reduce.op)->columns[reduce.op][reduce.dtype](&one, planes);
    }
}

static void merge_doubles(pl_reduce reduce, double *const into[], double *const from[], int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (reduce.op == PL_REDUCE_PROD) {
            into[0][i] *= from[0][i];
        } else if (reduce.op == PL_REDUCE_LOGSUMEXP) {
            pl_logsumexp_add(&into[0][i], &into[1][i], from[0][i], from[1][i]);
        } else if (reduce.op == PL_REDUCE_VARIANCE) {
            pl_moments_add(&into[0][i], &into[1][i], &into[2][i], from[0][i], from[1][i],
                           from[2][i]);
        } else {
            pl_sum_add(&into[0][i], &into[1][i], from[0][i]);
            into[1][i] += from[1][i];
            if (reduce.op == PL_REDUCE_MEAN)
                into[2][i] += from[2][i];
        }
    }
}

static void merge_words(pl_reduce reduce, uint64_t *into, const uint64_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        into[i] = reduce.op == PL_REDUCE_PROD ? into[i] * from[i] : into[i] + from[i];
}

static void merge_flags(pl_reduce reduce, uint8_t *into, const uint8_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        into[i] = reduce.op == PL_REDUCE_ANY ? into[i] | from[i] : into[i] & from[i];
}

void pl_reduce_merge(pl_reduce reduce, pl_partials into, int64_t at, pl_partials from,
                     int64_t from_at, int64_t n)
{
    void *to[PL_REDUCE_PLANES], *more[PL_REDUCE_PLANES];
    find_planes(reduce, into, at, to);
    find_planes(reduce, from, from_at, more);
    double *doubles[PL_REDUCE_PLANES] = {to[0], to[1], to[2]};
    double *more_doubles[PL_REDUCE_PLANES] = {more[0], more[1], more[2]};
    pl_reduce_tile row = {.data = more[0], .n_rows = 1, .n_columns = n};
    switch (reduce.op) {
    case PL_REDUCE_MAX:
    case PL_REDUCE_MIN:
        loops_of(reduce.op)->columns[reduce.op][reduce.dtype](&row, to);
        break;
    case PL_REDUCE_ANY:
    case PL_REDUCE_ALL:
        merge_flags(reduce, to[0], more[0], n);
        break;
    case PL_REDUCE_ARGMAX:
    case PL_REDUCE_ARGMIN:
        merge_indices(reduce, to, more, n);
        break;
    case PL_REDUCE_SUM:
    case PL_REDUCE_PROD:
        if (!is_float(reduce.dtype)) {
            merge_words(reduce, to[0], more[0], n);
            break;
        }
        /* fall through */
    default:
        merge_doubles(reduce, doubles, more_doubles, n);
    }
}

static double finished(pl_reduce_op op, double *const planes[], int64_t i, double ddof)
{
    switch (op) {
    case PL_REDUCE_SUM:
        return pl_sum_total(planes[0][i], planes[1][i]);
    case PL_REDUCE_MEAN:
        return pl_sum_total(planes[0][i], planes[1][i]) / planes[2][i];
    case PL_REDUCE_LOGSUMEXP: /* an infinite or NaN maximum is the result; its sum is not needed */
        return isfinite(planes[0][i]) ? planes[0][i] + log(planes[1][i]) : planes[0][i];
    case PL_REDUCE_VARIANCE: {
        double freedom = planes[0][i] - ddof;
        return planes[0][i] == 0 ? NAN : planes[2][i] / (freedom < 0 ? 0 : freedom);
    }
    default:
        return planes[0][i];
    }
}

void pl_reduce_finish(pl_reduce reduce, pl_partials partials, int64_t at, int64_t n, double ddof,
                      void *results)
{
    void *planes[PL_REDUCE_PLANES];
    find_planes(reduce, partials, at, planes);
    pl_dtype dtype = pl_reduce_result(reduce);
    bool indices = reduce.op == PL_REDUCE_ARGMAX || reduce.op == PL_REDUCE_ARGMIN;
    bool computed = is_float(dtype) && reduce.op != PL_REDUCE_MAX && reduce.op != PL_REDUCE_MIN;
    if (!computed) {
        size_t item_bytes = pl_dtype_info_of(dtype)->item_bytes;
        memcpy(results, planes[indices ? 1 : 0], (size_t)n * item_bytes);
        return;
    }
    double *doubles[PL_REDUCE_PLANES] = {planes[0], planes[1], planes[2]};
    for (int64_t i = 0; i < n; i++) {
        double result = finished(reduce.op, doubles, i, ddof);
        if (dtype == PL_F32)
            ((float *)results)[i] = (float)result;
        else
            ((double *)results)[i] = result;
    }
}

void pl_reduce_finish_means(pl_reduce reduce, pl_partials partials, int64_t at, int64_t n,
                            void *results)
{
    assert(reduce.op == PL_REDUCE_VARIANCE);
    void *planes[PL_REDUCE_PLANES];
    find_planes(reduce, partials, at, planes);
    const double *counts = planes[0], *means = planes[1];
    for (int64_t i = 0; i < n; i++) {
        double mean = counts[i] == 0 ? NAN : means[i];
        if (reduce.dtype == PL_F32)
            ((float *)results)[i] = (float)mean;
        else
            ((double *)results)[i] = mean;
    }
}
