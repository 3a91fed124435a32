/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, each a pure function of (seed, stream, index): any part of a tensor can be made
 * by itself, by any thread, in any order, and has the same bits on every processor.
 *
 *   generator        Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as
 *                    1, 2, 3, 2011), TensorFlow's as well: four 32-bit words from a counter of four
 *                    words and a key of two
 *   key              the seed's lower and upper half
 *   counter          the block's number, lower and upper half, then the stream's
 *   block            four words: elements of 32 bits are the words, those of 64 bits are words 0-1
 *                    and 2-3 (lower half first); integers take twice the bits of their range
 *
 *   uniform f32      upper 24 bits / 2^24, as in NumPy: [0, 1), all multiples of 2^-24
 *   uniform f64      upper 53 bits / 2^53
 *   uniform integer  low + the upper part of (random x range): 64 random bits for up to 32 bits of
 *                    range, 128 for 64. No value is likelier than another by more than 2^-32
 *                    (2^-64) of its probability
 *   normal           the inverse of the normal distribution (Wichura's AS 241) of a uniform number
 *                    with 31 (63) bits below 1/2, and a sign. So the tails end at 6.3 (9.1 for f64)
 *   truncated        normal between -2 and 2: the inverse of a uniform number in that range;
 *                    nothing is drawn again
 *
 * The functions write elements [first, first + n) of the stream. Never allocates; safe from any
 * thread. */
#ifndef PL_KERNELS_ELEMENTWISE_RANDOM_H
#define PL_KERNELS_ELEMENTWISE_RANDOM_H

#include "base/base.h"
#include "plimsoll/tensor.h"

typedef struct pl_random {
    uint64_t seed;
    uint64_t stream; /* of an operation in its graph, or of a call */
} pl_random;

typedef enum pl_distribution {
    PL_RANDOM_UNIFORM,
    PL_RANDOM_NORMAL,
    PL_RANDOM_TRUNCATED_NORMAL,
} pl_distribution;

/* Computes one block. */
void pl_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t ret_words[4]);

/* Writes the generator's words themselves. */
void pl_random_words(pl_random random, uint64_t first, int64_t n, uint32_t *out);

/* Writes f32 or f64: [0, 1), or mean 0 and standard deviation 1 (before truncation). */
void pl_random_floats(pl_random random, pl_distribution distribution, pl_dtype dtype,
                      uint64_t first, int64_t n, void *out);

/* Writes low <= x < low + range, wrapped to the integer dtype; range 0: all 2^64. */
void pl_random_integers(pl_random random, pl_dtype dtype, uint64_t low, uint64_t range,
                        uint64_t first, int64_t n, void *out);

#endif
