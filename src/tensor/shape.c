/* SPDX-License-Identifier: Apache-2.0 */
/* See shape.h. */
#include "tensor/shape.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

int pl_shape_init(pl_shape *shape, int rank, const int64_t *dims, pl_error *reterr)
{
    if (rank < 0 || rank > PL_RANK_MAX)
        return pl_error_set(reterr, -EINVAL, "a shape of %d dimensions: at most %d are possible",
                            rank, PL_RANK_MAX);
    for (int i = 0; i < rank; i++)
        if (dims[i] < PL_UNKNOWN)
            return pl_error_set(reterr, -EINVAL, "a shape whose axis %d is %" PRId64, i, dims[i]);

    *shape = (pl_shape){.rank = rank};
    for (int i = 0; i < rank; i++)
        shape->dims[i] = dims[i];
    return 0;
}

bool pl_shape_is_known(const pl_shape *shape)
{
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] == PL_UNKNOWN)
            return false;
    return true;
}

bool pl_shape_equal(const pl_shape *a, const pl_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

static bool dims_compatible(int64_t a, int64_t b)
{
    return a == b || a == PL_UNKNOWN || b == PL_UNKNOWN;
}

bool pl_shape_compatible(const pl_shape *a, const pl_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!dims_compatible(a->dims[i], b->dims[i]))
            return false;
    return true;
}

/* item_bytes times every dimension but those that are 0; *ret_empty if there is one. */
static int multiply(const pl_shape *shape, uint64_t item_bytes, int64_t *ret_product,
                    bool *ret_empty)
{
    int64_t product;
    if (__builtin_add_overflow(item_bytes, 0, &product))
        return -EOVERFLOW;
    *ret_empty = product == 0;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0)
            return -EINVAL;
        *ret_empty |= shape->dims[i] == 0;
        if (shape->dims[i] != 0 && __builtin_mul_overflow(product, shape->dims[i], &product))
            return -EOVERFLOW;
    }
    *ret_product = product;
    return 0;
}

int pl_shape_bytes(const pl_shape *shape, uint64_t item_bytes, int64_t *ret_bytes, pl_error *reterr)
{
    bool empty;
    int64_t bytes, count;
    if (shape->rank < 0 || shape->rank > PL_RANK_MAX)
        return pl_error_set(reterr, -EINVAL, "a shape of rank %d: a tensor has 0 to %d axes",
                            (int)shape->rank, PL_RANK_MAX);
    int r = multiply(shape, item_bytes, &bytes, &empty);
    if (r == 0) /* elements of no bytes are counted as well */
        r = multiply(shape, 1, &count, &(bool){0});
    if (r == -EOVERFLOW)
        return pl_error_set(reterr, r,
                            "a tensor of shape %s with %" PRIu64
                            " bytes an element has more than 2^63 bytes",
                            PL_SHAPE_TEXT(shape), item_bytes);
    if (r < 0)
        return pl_error_set(reterr, r, "the size of shape %s is not known yet",
                            PL_SHAPE_TEXT(shape));
    *ret_bytes = empty ? 0 : bytes;
    return 0;
}

int pl_shape_count(const pl_shape *shape, int64_t *ret_count, pl_error *reterr)
{
    return pl_shape_bytes(shape, 1, ret_count, reterr);
}

int pl_shape_merge(const pl_shape *a, const pl_shape *b, pl_shape *ret_shape, pl_error *reterr)
{
    if (a->rank != b->rank)
        return pl_error_set(reterr, -EINVAL, "shapes %s and %s differ: rank %d and %d",
                            PL_SHAPE_TEXT(a), PL_SHAPE_TEXT(b), a->rank, b->rank);
    pl_shape merged = *a;
    for (int i = 0; i < a->rank; i++) {
        if (!dims_compatible(a->dims[i], b->dims[i]))
            return pl_error_set(reterr, -EINVAL,
                                "shapes %s and %s differ: axis %d is %" PRId64 " and %" PRId64,
                                PL_SHAPE_TEXT(a), PL_SHAPE_TEXT(b), i, a->dims[i], b->dims[i]);
        if (merged.dims[i] == PL_UNKNOWN)
            merged.dims[i] = b->dims[i];
    }
    *ret_shape = merged;
    return 0;
}

/* Dimension `axis` of a shape that is widened to `rank` with ones in front. */
static int64_t widened(const pl_shape *shape, int rank, int axis)
{
    int own = axis - (rank - shape->rank);
    return own < 0 ? 1 : shape->dims[own];
}

static bool broadcast_dims(int64_t a, int64_t b, int64_t *ret_dim)
{
    if (a == 1 || (a == PL_UNKNOWN && b != 1))
        *ret_dim = b;
    else if (b == 1 || b == PL_UNKNOWN || a == b)
        *ret_dim = a;
    else
        return false;
    return true;
}

int pl_shape_broadcast(const pl_shape *a, const pl_shape *b, pl_shape *ret_shape, pl_error *reterr)
{
    pl_shape both = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 0; i < both.rank; i++) {
        int64_t left = widened(a, both.rank, i), right = widened(b, both.rank, i);
        if (!broadcast_dims(left, right, &both.dims[i]))
            return pl_error_set(reterr, -EINVAL,
                                "shapes %s and %s do not broadcast: axis %d is %" PRId64
                                " and %" PRId64,
                                PL_SHAPE_TEXT(a), PL_SHAPE_TEXT(b), i, left, right);
    }
    *ret_shape = both;
    return 0;
}

/* An axis of 0 counts as 1: its stride is never used, and stays what NumPy shows. */
static int64_t step_over(int64_t stride, int64_t dim)
{
    return dim > 0 ? stride * dim : stride;
}

void pl_shape_strides(const pl_shape *shape, uint64_t item_bytes, int64_t strides[PL_RANK_MAX])
{
    int64_t stride = (int64_t)item_bytes;
    for (int i = shape->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride = step_over(stride, shape->dims[i]);
    }
}

void pl_shape_strides_fortran(const pl_shape *shape, uint64_t item_bytes,
                              int64_t strides[PL_RANK_MAX])
{
    int64_t stride = (int64_t)item_bytes;
    for (int i = 0; i < shape->rank; i++) {
        strides[i] = stride;
        stride = step_over(stride, shape->dims[i]);
    }
}

const char *pl_shape_format(const pl_shape *shape, char text[PL_SHAPE_TEXT_BYTES])
{
    char *at = text;
    *at++ = '[';
    for (int i = 0; i < shape->rank; i++) {
        if (i > 0)
            *at++ = ',';
        if (shape->dims[i] == PL_UNKNOWN)
            *at++ = '?';
        else
            at += sprintf(at, "%" PRId64, shape->dims[i]);
    }
    *at++ = ']';
    *at = '\0';
    return text;
}

bool pl_axes_in_order(const int *axes, int rank)
{
    for (int i = 0; i < rank; i++)
        if (axes[i] != i)
            return false;
    return true;
}

bool pl_axes_swap_last_two(const int *axes, int rank)
{
    return rank >= 2 && pl_axes_in_order(axes, rank - 2) && axes[rank - 2] == rank - 1;
}
