/* SPDX-License-Identifier: Apache-2.0 */
#include "data/core/permutation.h"

/* splitmix64 (Steele, Lea and Flood, 2014): every bit of x affects every bit of the result. */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

void pl_permutation_init(pl_permutation *permutation, uint64_t n, uint64_t seed, uint64_t pass)
{
    *permutation = (pl_permutation){.n = n, .half_bits = 1};
    while (permutation->half_bits < 31 && n > UINT64_C(1) << (2 * permutation->half_bits))
        permutation->half_bits++;
    for (int i = 0; i < PL_PERMUTATION_ROUNDS; i++)
        permutation->keys[i] = mix(mix(mix(seed) ^ pass) + (uint64_t)i);
}

static uint64_t once(const pl_permutation *permutation, uint64_t x)
{
    uint64_t mask = (UINT64_C(1) << permutation->half_bits) - 1;
    uint64_t left = x >> permutation->half_bits, right = x & mask;
    for (int i = 0; i < PL_PERMUTATION_ROUNDS; i++) {
        uint64_t next = left ^ (mix(right ^ permutation->keys[i]) & mask);
        left = right;
        right = next;
    }
    return left << permutation->half_bits | right;
}

uint64_t pl_permutation_at(const pl_permutation *permutation, uint64_t place)
{
    do
        place = once(permutation, place);
    while (place >= permutation->n);
    return place;
}
