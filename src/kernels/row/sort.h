/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts rows of contiguous elements.
 *
 * Stable: equal elements keep their order, in a descending sort too, and -0 equals 0. NaN is
 * greater than everything: last, as in NumPy, or first when descending, as in PyTorch. Sorting
 * values drops the payload of a NaN.
 *
 * Numbers become unsigned integers of the same order, which are sorted by their digits, from the
 * last to the first (LSD radix sort): the time does not depend on the data, except that digits
 * equal in all elements are skipped. Short rows use merge sort.
 *
 * The caller provides scratch, 8-byte aligned. Never allocates; safe from any thread. Takes every
 * dtype but strings and halves; halves are cast to f32 before, which keeps their order. */
#ifndef PL_KERNELS_ROW_SORT_H
#define PL_KERNELS_ROW_SORT_H

#include "base/base.h"
#include "base/stop.h"
#include "plimsoll/tensor.h"

typedef struct pl_sort {
    pl_dtype dtype;
    bool descending;
    pl_stop stop; /* checked before each pass over a long row; once stopped, `out` is undefined */
} pl_sort;

/* The scratch for rows of n elements. */
uint64_t pl_sort_scratch_bytes(pl_dtype dtype, int64_t n);
uint64_t pl_argsort_scratch_bytes(pl_dtype dtype, int64_t n);
uint64_t pl_top_k_scratch_bytes(pl_dtype dtype, int64_t n, int64_t k);

/* `out` may be `in`. */
void pl_sort_row(pl_sort sort, const void *in, int64_t n, void *out, void *scratch);

/* Writes the original place of each element, in sorted order. */
void pl_argsort_row(pl_sort sort, const void *in, int64_t n, int64_t *out, void *scratch);

/* Finds the first k <= n of a sort, as values and as places, to which `first_index` is added. If a
 * row has several tiles: concatenate the k best of each tile, in order, and call it again on
 * these. */
void pl_top_k_row(pl_sort sort, const void *in, int64_t n, int64_t k, int64_t first_index,
                  void *ret_values, int64_t *ret_indices, void *scratch);

/* Counts the elements of a sorted row that come before `bound`, or, `with_equals`, not after it. */
int64_t pl_sort_count(pl_sort sort, const void *sorted, int64_t n, const void *bound,
                      bool with_equals);

#endif
