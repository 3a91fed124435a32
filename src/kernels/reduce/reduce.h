/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, tile by tile and by several threads.
 *   tile      rows of contiguous elements: a strip is one row
 *   partial   the state of one output so far: up to three planes of 8 bytes
 *   partials  the partials of n outputs, plane by plane, in the caller's memory, 8-byte aligned
 *
 *   init, then any number of rows(), columns() and merge() in any order, then finish
 *
 * Every reduction over any axes comes down to rows() and columns(): if the innermost axis is
 * reduced, each row of a tile belongs to one output; if it is kept, each column does. Threads have
 * their own partials, which are merged at the end.
 *
 * Rounding. Sums and means of floats: blocks of 512 elements are added in double precision, 32 at a
 * time in a tree (of columns: of 32 rows, four at a time), and the blocks' sums with their rounding
 * errors kept (twice double precision). So the error is at most 22 x 2^-53 of the sum of
 * magnitudes, however many elements (37 for those of a block that is not full), where NumPy's
 * pairwise sum has (19 + log2(n / 128)) x 2^-53, or 2^-24 for f32; along columns 13, where NumPy's
 * has n. Tiling affects only those last bits of a double, and rarely a float. Products are in
 * double precision too, so they may leave the range of a float and return. Variance is Chan's merge
 * of blocks that were computed in two passes. Sums and products of integers wrap around, in 64 bits
 * as NumPy's.
 *
 * NaN: max, min, argmax and argmin return the first NaN if there is one; any and all treat it as
 * true. Among equal elements argmax and argmin return the lowest index. An empty input has sum 0,
 * product 1, a maximum of -infinity (or the dtype's least), index -1, a log-sum-exp of -infinity,
 * and NaN for mean and variance.
 *
 * Never allocates; safe from any thread on partials of its own. */
#ifndef PL_KERNELS_REDUCE_REDUCE_H
#define PL_KERNELS_REDUCE_REDUCE_H

#include "base/base.h"
#include "plimsoll/tensor.h"

typedef enum pl_reduce_op {
    PL_REDUCE_SUM,
    PL_REDUCE_MEAN,
    PL_REDUCE_PROD,
    PL_REDUCE_MAX,
    PL_REDUCE_MIN,
    PL_REDUCE_ANY,
    PL_REDUCE_ALL,
    PL_REDUCE_ARGMAX,
    PL_REDUCE_ARGMIN,
    PL_REDUCE_LOGSUMEXP, /* floats only */
    PL_REDUCE_VARIANCE,
    PL_N_REDUCE_OPS,
} pl_reduce_op;

#define PL_REDUCE_PLANES 3

typedef struct pl_reduce {
    pl_reduce_op op;
    pl_dtype dtype; /* of the elements */
} pl_reduce;

typedef struct pl_partials {
    void *data;
    int64_t n; /* outputs that it has room for */
} pl_partials;

typedef struct pl_reduce_tile {
    const void *data;
    int64_t row_bytes; /* from one row to the next; may be negative or 0 */
    int64_t n_rows, n_columns;
    int64_t first_index; /* for argmax and argmin: of the first element, and from one to the */
    int64_t index_step;  /* next along what is reduced. Of a row's elements: that of its first */
} pl_reduce_tile;

/* Returns the dtype of the result, as in NumPy: sums of integers have 64 bits, means of them are
 * f64. PL_DTYPE_NONE if the reduction does not exist; f16 and bf16 must be cast to f32 before. */
pl_dtype pl_reduce_result(pl_reduce reduce);

/* The bytes of the partials of n outputs: pl_reduce_bytes() * n. */
size_t pl_reduce_bytes(pl_reduce reduce);

/* Below, `at` is the number of the first output. */
void pl_reduce_init(pl_reduce reduce, pl_partials partials, int64_t at, int64_t n);

/* Row i of the tile goes to output at + i. */
void pl_reduce_rows(pl_reduce reduce, const pl_reduce_tile *tile, pl_partials partials, int64_t at);

/* Column i of the tile goes to output at + i. */
void pl_reduce_columns(pl_reduce reduce, const pl_reduce_tile *tile, pl_partials partials,
                       int64_t at);

/* Merges the partials of n outputs from `from` into `into`. */
void pl_reduce_merge(pl_reduce reduce, pl_partials into, int64_t at, pl_partials from,
                     int64_t from_at, int64_t n);

/* Writes n results. The count by which a variance is divided is reduced by `ddof`, which is
 * otherwise ignored. It may be any number, as in NumPy: a negative difference counts as 0, so the
 * variance is infinite, or NaN if all elements are equal; NaN makes it NaN. */
void pl_reduce_finish(pl_reduce reduce, pl_partials partials, int64_t at, int64_t n, double ddof,
                      void *results);

/* Writes the means of PL_REDUCE_VARIANCE partials: f32 for f32, else f64. */
void pl_reduce_finish_means(pl_reduce reduce, pl_partials partials, int64_t at, int64_t n,
                            void *results);

#endif
