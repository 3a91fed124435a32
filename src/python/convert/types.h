/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of values before they are there: see pl_type. */
#ifndef PL_PYTHON_CONVERT_TYPES_H
#define PL_PYTHON_CONVERT_TYPES_H

#include "python/convert/convert.h"

/* Of all elements; 0 where that is not known, or for strings. */
static inline uint64_t type_bytes(const pl_type *type)
{
    uint64_t bytes = type->shape.rank == PL_RANK_UNKNOWN ? 0 : convert_dtype_bytes(type->dtype);
    for (int i = 0; i < type->shape.rank; i++) {
        uint64_t dim = type->shape.dims[i] < 0 ? 0 : (uint64_t)type->shape.dims[i];
        bytes = dim > 0 && bytes > UINT64_MAX / dim ? UINT64_MAX : bytes * dim;
    }
    return bytes;
}

static inline bool type_is_known(const pl_type *type)
{
    for (int i = 0; i < type->shape.rank; i++)
        if (type->shape.dims[i] < 0)
            return false;
    return type->shape.rank != PL_RANK_UNKNOWN;
}

/* Can a value have both shapes? */
static inline bool types_agree(const pl_shape *a, const pl_shape *b)
{
    if (a->rank == PL_RANK_UNKNOWN || b->rank == PL_RANK_UNKNOWN)
        return true;
    for (int i = 0; i < a->rank && a->rank == b->rank; i++)
        if (a->dims[i] >= 0 && b->dims[i] >= 0 && a->dims[i] != b->dims[i])
            return false;
    return a->rank == b->rank;
}

/* What is known of a value that has both shapes; the first, if it cannot. */
static inline pl_shape types_meet(const pl_shape *a, const pl_shape *b)
{
    if (a->rank == PL_RANK_UNKNOWN)
        return *b;
    pl_shape both = *a;
    for (int i = 0; i < a->rank && types_agree(a, b) && b->rank == a->rank; i++)
        if (both.dims[i] < 0)
            both.dims[i] = b->dims[i];
    return both;
}

/* What is known of a value that is one or the other. */
static inline pl_type types_join(const pl_type *a, const pl_type *b)
{
    pl_type both = *a;
    if (a->shape.rank != b->shape.rank)
        both.shape.rank = PL_RANK_UNKNOWN;
    for (int i = 0; i < both.shape.rank; i++)
        if (both.shape.dims[i] != b->shape.dims[i])
            both.shape.dims[i] = PL_UNKNOWN;
    return both;
}

#endif
