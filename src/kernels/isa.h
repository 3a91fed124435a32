/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction sets that kernels are compiled for, and which of them this machine has. The same
 * sources are compiled for each: see meson.build. For AVX-512, only elementwise kernels and casts
 * are compiled; other loops that gain from it are written by hand, next to the one for AVX2. Safe
 * from any thread. */
#ifndef PL_KERNELS_ISA_H
#define PL_KERNELS_ISA_H

#include "kernels/elementwise/cast.h"
#include "kernels/elementwise/elementwise.h"

#ifdef __x86_64__
#define PL_HAS_X86_BUILDS 1
#else
#define PL_HAS_X86_BUILDS 0
#endif

typedef enum pl_isa {
    PL_ISA_PLAIN,  /* whatever the compiler assumes: on x86-64, SSE2 */
    PL_ISA_AVX2,   /* with FMA */
    PL_ISA_AVX512, /* F, BW, DQ, VL, VBMI and VBMI2; kernels without a loop for it use AVX2's */
} pl_isa;

/* Returns the best that this machine has; always the same. */
static inline pl_isa pl_isa_best(void)
{
#if PL_HAS_X86_BUILDS
    /* Uses what the loader found out, which includes whether the system saves the wide
     * registers. */
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2"))
        return PL_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return PL_ISA_AVX2;
#endif
    return PL_ISA_PLAIN;
}

/* Finds kernels for a given instruction set, so that tests can compare them. The machine must have
 * it. */
pl_elementwise_kernel pl_elementwise_find_for(pl_isa isa, pl_elementwise op, pl_dtype dtype,
                                              unsigned repeated);
pl_cast_kernel pl_cast_find_for(pl_isa isa, pl_dtype from, pl_dtype to);

#endif
