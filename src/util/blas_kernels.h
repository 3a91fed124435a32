/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS's kernels, by its names for the processors they were written for. */
#ifndef PL_UTIL_BLAS_KERNELS_H
#define PL_UTIL_BLAS_KERNELS_H

#include <string.h>

#include "base/base.h"

/* Returns the kernels a processor should use instead of those OpenBLAS chose, or NULL if those are
 * good enough. Only kernels of 0.3.21 that use nothing wider than AVX, from before Haswell (2013),
 * are replaced: among later ones OpenBLAS chooses well. Pure. */
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
