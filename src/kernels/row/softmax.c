/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax: see softmax.h. */
#include <assert.h>
#include <math.h>

#include "kernels/isa_table.h"
#include "kernels/row/softmax_loops.h"

/* Elements for which maximum and divisor are stored side by side, on the stack. */
#define CHUNK SOFTMAX_COLUMNS

static int64_t chunk_at(int64_t from, int64_t n)
{
    return n - from < CHUNK ? n - from : CHUNK;
}

static const void *in_at(const pl_softmax_tile *tile, pl_dtype dtype, int64_t row, int64_t column)
{
    int64_t item_bytes = dtype == PL_F32 ? 4 : 8;
    return (const char *)tile->in + row * tile->in_row_bytes + column * item_bytes;
}

static void *out_at(const pl_softmax_tile *tile, pl_dtype dtype, int64_t row, int64_t column)
{
    int64_t item_bytes = dtype == PL_F32 ? 4 : 8;
    return (char *)tile->out + row * tile->out_row_bytes + column * item_bytes;
}

static void compute(pl_dtype dtype, bool log, const pl_softmax_tile *tile, int64_t from, int64_t n,
                    const double *centre, const double *by)
{
    const pl_softmax_loops *loops = PL_ISA_TABLE(pl_softmax_loops);
    float narrow[CHUNK];
    if (dtype == PL_F64) {
        loops->by_f64(log, tile, from, n, centre, by);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        narrow[i] = (float)centre[i];
    loops->by_f32(log, tile, from, n, narrow, by);
}

/* Extracts from a logsumexp partial the number subtracted from an element, and the divisor of the
 * rest (or its logarithm, subtracted). If the maximum is not finite, all of it is NaN. */
static void understand(pl_partials partials, int64_t i, bool log_of, double *ret_centre,
                       double *ret_by)
{
    double max = ((const double *)partials.data)[i];
    double sum = ((const double *)partials.data)[partials.n + i];
    *ret_centre = isfinite(max) ? max : NAN;
    *ret_by = log_of ? log(sum) : 1 / sum;
}

void pl_softmax_rows_by(pl_dtype dtype, bool log, const pl_softmax_tile *tile, pl_partials partials,
                        int64_t at)
{
    double centre[CHUNK], by[CHUNK];
    for (int64_t r = 0; r < tile->n_rows; r++) {
        pl_softmax_tile row = *tile;
        row.in = in_at(tile, dtype, r, 0);
        row.out = out_at(tile, dtype, r, 0);
        row.n_rows = 1;
        understand(partials, at + r, log, &centre[0], &by[0]);
        for (int64_t i = 1; i < CHUNK; i++) {
            centre[i] = centre[0];
            by[i] = by[0];
        }
        for (int64_t from = 0; from < tile->n_columns; from += CHUNK)
            compute(dtype, log, &row, from, chunk_at(from, tile->n_columns), centre, by);
    }
}

void pl_softmax_columns_by(pl_dtype dtype, bool log, const pl_softmax_tile *tile,
                           pl_partials partials, int64_t at)
{
    double centre[CHUNK], by[CHUNK];
    for (int64_t from = 0; from < tile->n_columns; from += CHUNK) {
        int64_t n = chunk_at(from, tile->n_columns);
        for (int64_t i = 0; i < n; i++)
            understand(partials, at + from + i, log, &centre[i], &by[i]);
        compute(dtype, log, tile, from, n, centre, by);
    }
}

/* Reduces the row with `op` to a partial: for logsumexp its maximum and sum, for max the
 * maximum. */
static pl_partials reduce_row(pl_reduce reduce, const void *row, int64_t n, double planes[2])
{
    pl_partials partials = {planes, 1};
    pl_reduce_init(reduce, partials, 0, 1);
    pl_reduce_rows(reduce, &(pl_reduce_tile){.data = row, .n_rows = 1, .n_columns = n}, partials,
                   0);
    return partials;
}

static void softmax_f32(const float *in, float *out, int64_t n)
{
    const pl_softmax_loops *loops = PL_ISA_TABLE(pl_softmax_loops);
    double planes[2];
    float max;
    reduce_row((pl_reduce){PL_REDUCE_MAX, PL_F32}, in, n, planes);
    pl_reduce_finish((pl_reduce){PL_REDUCE_MAX, PL_F32}, (pl_partials){planes, 1}, 0, 1, 0, &max);
    loops->scale_f32(out, n, 1 / loops->exp_f32(in, out, n, isfinite(max) ? max : NAN));
}

static void softmax_f64(const double *in, double *out, int64_t n)
{
    const pl_softmax_loops *loops = PL_ISA_TABLE(pl_softmax_loops);
    double planes[2];
    reduce_row((pl_reduce){PL_REDUCE_MAX, PL_F64}, in, n, planes);
    double max = isfinite(planes[0]) ? planes[0] : NAN;
    loops->scale_f64(out, n, 1 / loops->exp_f64(in, out, n, max));
}

void pl_softmax_rows(pl_dtype dtype, bool log, const pl_softmax_tile *tile)
{
    assert(dtype == PL_F32 || dtype == PL_F64);
    for (int64_t r = 0; r < tile->n_rows; r++) {
        const void *in = in_at(tile, dtype, r, 0);
        void *out = out_at(tile, dtype, r, 0);
        if (log) {
            double planes[2];
            pl_softmax_tile row = {.in = in, .out = out, .n_rows = 1, .n_columns = tile->n_columns};
            pl_reduce lse = {PL_REDUCE_LOGSUMEXP, dtype};
            pl_softmax_rows_by(dtype, true, &row, reduce_row(lse, in, row.n_columns, planes), 0);
        } else if (dtype == PL_F32) {
            softmax_f32(in, out, tile->n_columns);
        } else {
            softmax_f64(in, out, tile->n_columns);
        }
    }
}

/* Finds the number subtracted from each column's elements: their maximum, or NaN if that is not
 * finite. */
static void find_centres(pl_dtype dtype, const pl_softmax_tile *tile, int64_t from, int64_t n,
                         double centres[CHUNK])
{
    const pl_reduce max = {PL_REDUCE_MAX, dtype};
    const pl_partials partials = {centres, CHUNK};
    const pl_reduce_tile columns = {.data = in_at(tile, dtype, 0, from),
                                    .row_bytes = tile->in_row_bytes,
                                    .n_rows = tile->n_rows,
                                    .n_columns = n};
    float *narrow = (float *)(void *)centres;
    pl_reduce_init(max, partials, 0, n);
    pl_reduce_columns(max, &columns, partials, 0);
    for (int64_t i = 0; i < n; i++)
        if (dtype == PL_F32)
            narrow[i] = isfinite(narrow[i]) ? narrow[i] : NAN;
        else
            centres[i] = isfinite(centres[i]) ? centres[i] : NAN;
}

void pl_softmax_columns(pl_dtype dtype, const pl_softmax_tile *tile)
{
    const pl_softmax_loops *loops = PL_ISA_TABLE(pl_softmax_loops);
    bool narrow = dtype == PL_F32;
    for (int64_t from = 0; from < tile->n_columns; from += CHUNK) {
        double centres[CHUNK], sums[CHUNK] = {0};
        int64_t n = chunk_at(from, tile->n_columns);
        find_centres(dtype, tile, from, n, centres);
        (narrow ? loops->exp_columns_f32 : loops->exp_columns_f64)(tile, from, n, centres, sums);
        for (int64_t i = 0; i < n; i++)
            sums[i] = 1 / sums[i];
        (narrow ? loops->scale_columns_f32 : loops->scale_columns_f64)(tile, from, n, sums);
    }
}
