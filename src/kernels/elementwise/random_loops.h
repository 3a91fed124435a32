/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by random.c and the builds of random_loops.c: see isa_table.h. */
#ifndef PL_KERNELS_ELEMENTWISE_RANDOM_LOOPS_H
#define PL_KERNELS_ELEMENTWISE_RANDOM_LOOPS_H

#include "kernels/elementwise/random.h"

/* Words are made this many at a time: they stay in the first-level cache. */
#define PL_RANDOM_BLOCKS 128

typedef struct pl_random_loops {
    /* PL_RANDOM_BLOCKS blocks from number `block` on. */
    void (*blocks)(pl_random random, uint64_t block, uint32_t *out);
    /* Takes n words, or n pairs of words. */
    void (*f32[3])(const uint32_t *words, int64_t n, float *out);
    void (*f64[3])(const uint32_t *words, int64_t n, double *out);
} pl_random_loops;

extern const pl_random_loops pl_random_loops_plain, pl_random_loops_avx2;

#endif
