/* SPDX-License-Identifier: Apache-2.0 */
/* Types of values that do not exist yet: see pl_type. Unlike in tensor/shape.h, the rank may be
 * unknown. */
#ifndef PL_PROGRAM_TYPES_H
#define PL_PROGRAM_TYPES_H

#include "plimsoll/graph.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* The bytes of all elements; 0 if unknown, or for strings. */
static inline uint64_t pl_type_bytes(const pl_type *type)
{
    uint64_t bytes =
        type->shape.rank == PL_RANK_UNKNOWN ? 0 : pl_dtype_info_of(type->dtype)->item_bytes;
    for (int i = 0; i < type->shape.rank; i++) {
        uint64_t dim = type->shape.dims[i] < 0 ? 0 : (uint64_t)type->shape.dims[i];
        bytes = dim > 0 && bytes > UINT64_MAX / dim ? UINT64_MAX : bytes * dim;
    }
    return bytes;
}

static inline bool pl_type_is_known(const pl_type *type)
{
    return type->shape.rank != PL_RANK_UNKNOWN && pl_shape_is_known(&type->shape);
}

static inline bool pl_type_equal(const pl_type *a, const pl_type *b)
{
    return a->dtype == b->dtype && pl_shape_equal(&a->shape, &b->shape);
}

/* Can a value have both shapes? */
static inline bool pl_shapes_agree(const pl_shape *a, const pl_shape *b)
{
    return a->rank == PL_RANK_UNKNOWN || b->rank == PL_RANK_UNKNOWN || pl_shape_compatible(a, b);
}

/* The shape of a value that has both shapes; the first one if that is impossible. */
static inline pl_shape pl_shapes_meet(const pl_shape *a, const pl_shape *b)
{
    if (a->rank == PL_RANK_UNKNOWN)
        return *b;
    pl_shape both = *a;
    for (int i = 0; i < a->rank && a->rank == b->rank && pl_shape_compatible(a, b); i++)
        if (both.dims[i] < 0)
            both.dims[i] = b->dims[i];
    return both;
}

/* The shape of a value that has one of the two shapes. */
static inline pl_type pl_types_join(const pl_type *a, const pl_type *b)
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
