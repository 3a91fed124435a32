/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers by index: number i of a key is the same on any machine, in any order and in any
 * thread. Pure.
 *
 * SplitMix64: a counter, mixed by the finalizer of MurmurHash3 in Stafford's 13th variant. It
 * passes BigCrush, and needs no state but the number. */
#ifndef PL_DATA_CORE_COUNTER_RANDOM_H
#define PL_DATA_CORE_COUNTER_RANDOM_H

#include <stdint.h>

static inline uint64_t pl_draw(uint64_t key, uint64_t number)
{
    uint64_t z = key + (number + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Draws one of 0 .. n - 1; the bias is at most n in 2^64. */
static inline uint64_t pl_draw_below(uint64_t key, uint64_t number, uint64_t n)
{
    return (uint64_t)((unsigned __int128)pl_draw(key, number) * n >> 64);
}

#endif
