/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting of rows whose elements lie together.
 *
 * Stable: equal elements stay in their order, in a descending sort too, and -0 and 0 are equal. NaN
 * is greater than everything: last, as NumPy has it, or first when descending (as PyTorch). Where
 * values are sorted, a NaN loses its payload.
 *
 * Numbers become unsigned integers of the same order, which are sorted by their digits, from the
 * last to the first (LSD radix sort): the time does not depend on the data, but for digits that are
 * the same in all elements, which are passed over. Short rows are merged.
 *
 * Scratch is the caller's, 8-byte aligned. Never allocates; safe from any thread. Every dtype but
 * strings and halves: these are cast to f32 before, which keeps their order. */
#ifndef PL_KERNELS_ROW_SORT_H
#define PL_KERNELS_ROW_SORT_H

#include "base/base.h"
#include "base/stop.h"
#include "plimsoll/tensor.h"

typedef struct pl_sort {
    pl_dtype dtype;
    bool descending;
    pl_stop stop; /* asked before each pass over a long row: `out` then is anything */
} pl_sort;

/* For rows of n elements. */
uint64_t pl_sort_scratch_bytes(pl_dtype dtype, int64_t n);
uint64_t pl_argsort_scratch_bytes(pl_dtype dtype, int64_t n);
uint64_t pl_top_k_scratch_bytes(pl_dtype dtype, int64_t n, int64_t k);

/* `out` may be `in`. */
void pl_sort_row(pl_sort sort, const void *in, int64_t n, void *out, void *scratch);

/* Where the element that comes i-th was. */
void pl_argsort_row(pl_sort sort, const void *in, int64_t n, int64_t *out, void *scratch);

/* The first k <= n of a sort, as values and as places, to which `first_index` is added. A row in
 * several tiles: the k best of each tile, side by side in the tiles' order, have among them the k
 * best of the row, found by another call. */
void pl_top_k_row(pl_sort sort, const void *in, int64_t n, int64_t k, int64_t first_index,
                  void *ret_values, int64_t *ret_indices, void *scratch);

/* How many elements of a sorted row come before `bound`, or, `with_equals`, do not come behind it.
 */
int64_t pl_sort_count(pl_sort sort, const void *sorted, int64_t n, const void *bound,
                      bool with_equals);

#endif
