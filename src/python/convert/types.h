/* SPDX-License-Identifier: Apache-2.0 */
/* Types of values that do not exist yet: see pl_type. */
#ifndef PL_PYTHON_CONVERT_TYPES_H
#define PL_PYTHON_CONVERT_TYPES_H

#include "python/convert/convert.h"

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

#endif
