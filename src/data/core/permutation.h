/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers [0, n) in another order, each computed on its own from a key.
 *
 * A Feistel network over the next even number of bits; a result outside [0, n) goes through it
 * again, at most four times on average. A key gives the same order on every machine. Pure. */
#ifndef PL_DATA_CORE_PERMUTATION_H
#define PL_DATA_CORE_PERMUTATION_H

#include "base/base.h"

enum { PL_PERMUTATION_ROUNDS = 6 };

typedef struct pl_permutation {
    uint64_t n;
    int half_bits;
    uint64_t keys[PL_PERMUTATION_ROUNDS];
} pl_permutation;

void pl_permutation_init(pl_permutation *permutation, uint64_t n, uint64_t seed, uint64_t pass);

/* Returns the number at a place below n. */
uint64_t pl_permutation_at(const pl_permutation *permutation, uint64_t place);

#endif
