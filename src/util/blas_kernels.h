/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS's kernels, by its own names for the processors that they were written for. */
#ifndef PL_UTIL_BLAS_KERNELS_H
#define PL_UTIL_BLAS_KERNELS_H

#include <string.h>

#include "base/base.h"

/* What a processor should use instead of what OpenBLAS chose for it, or NULL if that is good
 * enough. Only kernels of 0.3.21 that use nothing wider than AVX are ever replaced, those from
 * before Haswell (2013): among later ones OpenBLAS knows better. Pure. */
static inline const char *pl_blas_better_kernels(const char *chosen, bool has_avx2, bool has_avx512)
{
    static const char *const narrow[] = {
        "Prescott", "Katmai", "Coppermine", "Northwood",    "Banias",     "Atom",
        "Core2",    "Penryn", "Dunnington", "Nehalem",      "Nano",       "Athlon",
        "Opteron",  "Bobcat", "Barcelona",  "Opteron_SSE3", "Sandybridge"};
    size_t i = 0;
    while (i < PL_COUNT_OF(narrow) && strcmp(chosen, narrow[i]) != 0)
        i++;
    if (i == PL_COUNT_OF(narrow) || !has_avx2)
        return NULL;
    return has_avx512 ? "SkylakeX" : "Haswell";
}

#endif
