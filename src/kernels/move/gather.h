/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers elements by index, or generates them by place. Each function makes a region of its output
 * without the rest. Never allocates; safe from any thread.
 *   row  bytes that are copied together
 *   map  for each row of the output, the number of its row in the input
 * pl_region_copy() does flips, transposes and broadcasts, by strides. */
#ifndef PL_KERNELS_MOVE_GATHER_H
#define PL_KERNELS_MOVE_GATHER_H

#include "base/base.h"
#include "plimsoll/tensor.h"

/* Reads n indices of any integer dtype as places in [0, size): negative ones count from the end, as
 * in NumPy. Returns -1, or the number of the first that is out of range, where it stops. */
PL_MUST_CHECK int64_t pl_gather_map(pl_dtype dtype, const void *indices, int64_t n, int64_t size,
                                    int64_t *ret_map);

/* Row i of the output is row map[i] - first of the input, whose row 0 is row `first` of the whole,
 * so part of it is enough. Strides are in bytes. */
void pl_gather_rows(void *out, int64_t out_stride, const void *in, int64_t in_stride,
                    int64_t row_bytes, const int64_t *map, int64_t n, int64_t first);

/* Maps of [begin, begin + n) of an axis: repeated (tile), mirrored with or without the outermost
 * element (NumPy's "symmetric" and "reflect"), or continued with it ("edge"). `before` is how many
 * elements come before the input's first, of `size` > 0. */
typedef enum pl_gather_mode {
    PL_GATHER_TILE,
    PL_GATHER_EDGE,
    PL_GATHER_REFLECT,
    PL_GATHER_SYMMETRIC,
} pl_gather_mode;

void pl_gather_axis(pl_gather_mode mode, int64_t begin, int64_t n, int64_t before, int64_t size,
                    int64_t *ret_map);

/* Writes n copies of one element, at any alignment. */
void pl_fill(void *out, int64_t n, const void *value, size_t item_bytes);

/* Writes elements [first, first + n) of start, start + step, ...; `start` and `step` point to one
 * element each. Bit for bit numpy.arange(): floats are start + i * ((start + step) - start),
 * rounded at each step in their own dtype; integers wrap. */
void pl_range(pl_dtype dtype, const void *start, const void *step, int64_t first, int64_t n,
              void *out);

/* Writes n rows of n_classes elements, from `first_class` on: `on` where the column is the row's
 * index, else `off`. An index out of range gives a row of `off`. */
void pl_one_hot(pl_dtype index_dtype, const void *indices, int64_t n, int64_t first_class,
                int64_t n_classes, const void *on, const void *off, size_t item_bytes, void *out);

#endif
