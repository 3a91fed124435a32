/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: their sizes, and whether two are compatible.
 *   known       no dimension is PL_UNKNOWN
 *   compatible  equal, as far as is known
 *
 * The number of elements and of bytes is at most INT64_MAX, even without the dimensions that are 0
 * (as in NumPy), so that no stride and no offset in a shape that pl_shape_bytes() accepted
 * overflows. Pure; never allocates; safe from any thread. */
#ifndef PL_TENSOR_SHAPE_H
#define PL_TENSOR_SHAPE_H

#include "base/base.h"
#include "plimsoll/tensor.h"

/* "[9223372036854775807,...]" eight times, and its end. */
#define PL_SHAPE_TEXT_BYTES 176

/* PL_SHAPE(2, 3) as a value; PL_SHAPE() is a scalar's. */
#define PL_SHAPE(...)                                                                              \
    ((pl_shape){.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = {__VA_ARGS__}})

/* Validates a shape from outside. -EINVAL for a rank over PL_RANK_MAX or a dimension below -1. */
PL_MUST_CHECK int pl_shape_init(pl_shape *shape, int rank, const int64_t *dims, pl_error *reterr);

bool pl_shape_is_known(const pl_shape *shape);
bool pl_shape_equal(const pl_shape *a, const pl_shape *b);
bool pl_shape_compatible(const pl_shape *a, const pl_shape *b);

/* Returns whether an axis has no elements; then other dimensions can be unknown. */
static inline bool pl_shape_is_empty(const pl_shape *shape)
{
    for (int i = 0; i < shape->rank && i < PL_RANK_MAX; i++)
        if (shape->dims[i] == 0)
            return true;
    return false;
}

/* Return the number of elements, and of bytes. -EINVAL if a dimension is unknown; -EOVERFLOW. */
PL_MUST_CHECK int pl_shape_count(const pl_shape *shape, int64_t *ret_count, pl_error *reterr);
PL_MUST_CHECK int pl_shape_bytes(const pl_shape *shape, uint64_t item_bytes, int64_t *ret_bytes,
                                 pl_error *reterr);

/* Merges what is known: [?,3] and [2,?] give [2,3]. -EINVAL if they are not compatible. *ret_shape
 * may be either of them. */
PL_MUST_CHECK int pl_shape_merge(const pl_shape *a, const pl_shape *b, pl_shape *ret_shape,
                                 pl_error *reterr);

/* Broadcasts by NumPy's rule: aligned at the last axis, where 1 becomes the other dimension.
 * Unknown with 1 stays unknown; with n it is n, because it can only be 1 or n. -EINVAL: "shapes
 * [10,10] and [20,20] do not broadcast: axis 0 is 10 and 20"; the axis is the result's. *ret_shape
 * may be either of them. */
PL_MUST_CHECK int pl_shape_broadcast(const pl_shape *a, const pl_shape *b, pl_shape *ret_shape,
                                     pl_error *reterr);

/* Returns the strides in bytes of contiguous elements: last axis first (C), or first axis first
 * (Fortran). The shape must be one that pl_shape_bytes() accepts with this item_bytes. */
void pl_shape_strides(const pl_shape *shape, uint64_t item_bytes, int64_t strides[PL_RANK_MAX]);
void pl_shape_strides_fortran(const pl_shape *shape, uint64_t item_bytes,
                              int64_t strides[PL_RANK_MAX]);

/* Axis i of one order of axes is axes[i] of another: return whether the orders agree, or agree
 * except for the last two axes. */
bool pl_axes_in_order(const int *axes, int rank);
bool pl_axes_swap_last_two(const int *axes, int rank);

/* Formats "[10,?,3]"; a scalar is "[]". Returns `text`. */
const char *pl_shape_format(const pl_shape *shape, char text[PL_SHAPE_TEXT_BYTES]);

/* Formats it as an expression for printf arguments; valid until the end of the enclosing block. */
#define PL_SHAPE_TEXT(shape) pl_shape_format((shape), (char[PL_SHAPE_TEXT_BYTES]){0})

#endif
