/* SPDX-License-Identifier: Apache-2.0 */
/* Elements chosen by place, or made by it. Each function makes a region of its output, and needs
 * nothing of the rest. Never allocates; safe from any thread.
 *   row  bytes that are copied together
 *   map  for each row of the output, which row of the input it is
 * Flips, transposes and broadcasts are pl_region_copy()'s, by strides. */
#ifndef PL_KERNELS_MOVE_GATHER_H
#define PL_KERNELS_MOVE_GATHER_H

#include "base/base.h"
#include "plimsoll/tensor.h"

/* Reads n indices of any integer dtype as places in [0, size): negative ones count from the end, as
 * NumPy's. Returns -1, or which of them is the first that is out of range, and stops there. */
PL_MUST_CHECK int64_t pl_gather_map(pl_dtype dtype, const void *indices, int64_t n, int64_t size,
                                    int64_t *ret_map);

/* Row i of the output is row map[i] - first of the input, whose row 0 is row `first` of all: so a
 * part of it is enough. Strides in bytes. */
void pl_gather_rows(void *out, int64_t out_stride, const void *in, int64_t in_stride,
                    int64_t row_bytes, const int64_t *map, int64_t n, int64_t first);

/* Maps of [begin, begin + n) of an axis: repeated (tile), mirrored with or without the outermost
 * element (NumPy's "symmetric" and "reflect"), or continued with it ("edge"). `before` is how many
 * come in front of the input's first, of `size` > 0. */
typedef enum pl_gather_mode {
    PL_GATHER_TILE,
    PL_GATHER_EDGE,
    PL_GATHER_REFLECT,
    PL_GATHER_SYMMETRIC,
} pl_gather_mode;

void pl_gather_axis(pl_gather_mode mode, int64_t begin, int64_t n, int64_t before, int64_t size,
                    int64_t *ret_map);

/* n copies of one element, at any alignment. */
void pl_fill(void *out, int64_t n, const void *value, size_t item_bytes);

/* Elements [first, first + n) of start, start + step, ...; `start` and `step` point to one element
 * each. Bit for bit numpy.arange(): floats are start + i * ((start + step) - start), rounded at
 * each step in their own dtype; integers wrap. */
void pl_range(pl_dtype dtype, const void *start, const void *step, int64_t first, int64_t n,
              void *out);

/* n rows of n_classes elements, of which those from `first_class` on are written: `on` where the
 * column is the row's index, else `off`. An index out of range has a row of `off`. */
void pl_one_hot(pl_dtype index_dtype, const void *indices, int64_t n, int64_t first_class,
                int64_t n_classes, const void *on, const void *off, size_t item_bytes, void *out);

#endif
