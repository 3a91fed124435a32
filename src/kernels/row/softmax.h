/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and its logarithm, of f32 and f64.
 *   softmax      exp(x - max) / sum of exp(x - max)
 *   log-softmax  x - max - log(sum of exp(x - max))
 *
 * Rows and columns that are whole in memory are done in one call. Otherwise PL_REDUCE_LOGSUMEXP
 * goes over the tiles first, and the second pass uses its unfinished partials for each row or
 * column. Results of softmax below the smallest normal number are 0. A row with a NaN or +infinity,
 * or with only -infinity, becomes all NaN. Relative error: at most (5 + (max - x)) ULP, of which
 * the second part is the rounding of x - max; of f64 the rounding of the sum comes on top, which is
 * made of n / 8 additions in one call, by partials of n / 512 along rows, and n / 32 along columns.
 * Never allocates; safe from any thread; `out` may be `in`. */
#ifndef PL_KERNELS_ROW_SOFTMAX_H
#define PL_KERNELS_ROW_SOFTMAX_H

#include "kernels/reduce/reduce.h"

typedef struct pl_softmax_tile {
    const void *in;
    void *out;
    int64_t in_row_bytes, out_row_bytes; /* from one row to the next */
    int64_t n_rows, n_columns;
} pl_softmax_tile;

/* Softmax of each row separately. */
void pl_softmax_rows(pl_dtype dtype, bool log, const pl_softmax_tile *tile);

/* Softmax of each column separately. */
void pl_softmax_columns(pl_dtype dtype, const pl_softmax_tile *tile);

/* For tiles of longer rows: row i has the partial at + i. */
void pl_softmax_rows_by(pl_dtype dtype, bool log, const pl_softmax_tile *tile, pl_partials partials,
                        int64_t at);

/* Along the first axis: column i has the partial at + i. */
void pl_softmax_columns_by(pl_dtype dtype, bool log, const pl_softmax_tile *tile,
                           pl_partials partials, int64_t at);

#endif
