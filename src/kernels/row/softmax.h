/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and its logarithm, of f32 and f64.
 *   softmax      exp(x - max) / sum of exp(x - max)
 *   log-softmax  x - max - log(sum of exp(x - max))
 *
 * Rows and columns that are there are done in one call. Else PL_REDUCE_LOGSUMEXP goes over the
 * tiles first, and its partials, not finished, are what the second pass needs of a row or column.
 * Results of softmax below the smallest normal number are 0. A row with a NaN or +infinity, or of
 * -infinity only, is all NaN. Relative error: at most (5 + (max - x)) ULP, of which the second part
 * is the rounding of x - max; of f64 the rounding of the sum comes on top, which is made of n / 8
 * additions in one call, by partials of n / 512 along rows, and n / 32 along columns. Never
 * allocates; safe from any thread; `out` may be `in`. */
#ifndef PL_KERNELS_ROW_SOFTMAX_H
#define PL_KERNELS_ROW_SOFTMAX_H

#include "kernels/reduce/reduce.h"

typedef struct pl_softmax_tile {
    const void *in;
    void *out;
    int64_t in_row_bytes, out_row_bytes; /* from one row to the next */
    int64_t n_rows, n_columns;
} pl_softmax_tile;

/* Each row by itself. */
void pl_softmax_rows(pl_dtype dtype, bool log, const pl_softmax_tile *tile);

/* Softmax of each column by itself. */
void pl_softmax_columns(pl_dtype dtype, const pl_softmax_tile *tile);

/* Tiles of larger rows: row i has the partial at + i. */
void pl_softmax_rows_by(pl_dtype dtype, bool log, const pl_softmax_tile *tile, pl_partials partials,
                        int64_t at);

/* Along the first axis: column i has the partial at + i. */
void pl_softmax_columns_by(pl_dtype dtype, bool log, const pl_softmax_tile *tile,
                           pl_partials partials, int64_t at);

#endif
