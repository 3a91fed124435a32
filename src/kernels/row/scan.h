/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums, tile by tile.
 *   carry  the sum before a tile, one per row or column: 8 bytes each, initially all bits 0,
 *          updated by each call. Integers: the sum in 64 bits, wrapped; floats: a double
 *
 * A reverse scan begins with the last tile, and goes through each tile from its end. Exclusive:
 * each output is the sum of the elements before its own.
 *
 * Results have NumPy's dtypes: i64 and u64 for narrower integers (bool: i64), floats their own.
 * Sums of f32 are made in double precision and rounded once, where NumPy's grow an error of 2^-24
 * with each element; those of f64 have at most NumPy's error, (n - 1) x 2^-53 of the sum of
 * magnitudes. Along rows groups of four are summed among themselves before the carry is added, so
 * the start of a tile may affect the last bit of a double. Along columns nothing depends on tiles.
 *
 * Never allocates; safe from any thread. `out` may be `in` where their elements are equally
 * wide. */
#ifndef PL_KERNELS_ROW_SCAN_H
#define PL_KERNELS_ROW_SCAN_H

#include "base/base.h"
#include "plimsoll/tensor.h"

typedef struct pl_scan {
    pl_dtype dtype; /* of the input */
    bool exclusive;
    bool reverse;
} pl_scan;

typedef struct pl_scan_tile {
    const void *in;
    void *out;
    int64_t in_row_bytes, out_row_bytes; /* from one row to the next */
    int64_t n_rows, n_columns;
} pl_scan_tile;

/* Returns PL_DTYPE_NONE for strings and halves. */
pl_dtype pl_scan_result(pl_dtype dtype);

/* Scans along each row, or along each column. carry[] has one entry for each. */
void pl_scan_rows(pl_scan scan, const pl_scan_tile *tile, void *carry);
void pl_scan_columns(pl_scan scan, const pl_scan_tile *tile, void *carry);

#endif
