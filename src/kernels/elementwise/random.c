/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: finds the blocks that an element needs. See random.h. */
#include <assert.h>
#include <string.h>

#include "kernels/elementwise/random_loops.h"
#include "kernels/isa_table.h"
#include "tensor/dtype.h"

#define N_WORDS (4 * PL_RANDOM_BLOCKS)

void pl_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t ret_words[4])
{
    pl_random random = {.seed = key[0] | (uint64_t)key[1] << 32,
                        .stream = counter[2] | (uint64_t)counter[3] << 32};
    uint32_t words[N_WORDS];
    PL_ISA_TABLE(pl_random_loops)->blocks(random, counter[0] | (uint64_t)counter[1] << 32, words);
    memcpy(ret_words, words, 4 * sizeof *ret_words);
}

/* Walks over elements of this many words each, from `first` on: *ret_words are those of the next
 * elements, and the number of these is returned. */
typedef struct word_walk {
    pl_random random;
    uint64_t next;
    int64_t left;
    unsigned n_words; /* of an element: 1, 2 or 4 */
    uint32_t words[N_WORDS];
} word_walk;

static int64_t walk_next(word_walk *walk, const uint32_t **ret_words)
{
    const unsigned per_block = 4 / walk->n_words;
    const unsigned skip = (unsigned)(walk->next % per_block);
    const int64_t room = (int64_t)(N_WORDS / walk->n_words - skip);
    int64_t n = walk->left < room ? walk->left : room;
    if (n <= 0)
        return 0;
    PL_ISA_TABLE(pl_random_loops)->blocks(walk->random, walk->next / per_block, walk->words);
    *ret_words = walk->words + skip * walk->n_words;
    walk->next += (uint64_t)n;
    walk->left -= n;
    return n;
}

void pl_random_words(pl_random random, uint64_t first, int64_t n, uint32_t *out)
{
    word_walk walk = {.random = random, .next = first, .left = n, .n_words = 1};
    const uint32_t *words;
    for (int64_t m; (m = walk_next(&walk, &words)) > 0; out += m)
        memcpy(out, words, (size_t)m * sizeof *out);
}

void pl_random_floats(pl_random random, pl_distribution distribution, pl_dtype dtype,
                      uint64_t first, int64_t n, void *out)
{
    assert(dtype == PL_F32 || dtype == PL_F64);
    const pl_random_loops *loops = PL_ISA_TABLE(pl_random_loops);
    word_walk walk = {
        .random = random, .next = first, .left = n, .n_words = dtype == PL_F32 ? 1 : 2};
    const uint32_t *words;
    float *f32 = out;
    double *f64 = out;
    for (int64_t m; (m = walk_next(&walk, &words)) > 0;) {
        if (dtype == PL_F32)
            loops->f32[distribution](words, m, f32);
        else
            loops->f64[distribution](words, m, f64);
        f32 += m;
        f64 += m;
    }
}

/* The upper part of words x range. */
static uint64_t scaled_64(const uint32_t *words, uint64_t range)
{
    uint64_t random = words[0] | (uint64_t)words[1] << 32;
    return (uint64_t)((unsigned __int128)random * range >> 64);
}

static uint64_t scaled_128(const uint32_t *words, uint64_t range)
{
    uint64_t low = words[0] | (uint64_t)words[1] << 32, high = words[2] | (uint64_t)words[3] << 32;
    unsigned __int128 carry = (unsigned __int128)low * range >> 64;
    return (uint64_t)(((unsigned __int128)high * range + carry) >> 64);
}

static void put_integer(void *out, int64_t i, size_t item_bytes, uint64_t value)
{
    switch (item_bytes) {
    case 1:
        ((uint8_t *)out)[i] = (uint8_t)value;
        break;
    case 2:
        ((uint16_t *)out)[i] = (uint16_t)value;
        break;
    case 4:
        ((uint32_t *)out)[i] = (uint32_t)value;
        break;
    default:
        ((uint64_t *)out)[i] = value;
    }
}

void pl_random_integers(pl_random random, pl_dtype dtype, uint64_t low, uint64_t range,
                        uint64_t first, int64_t n, void *out)
{
    size_t item_bytes = pl_dtype_info_of(dtype)->item_bytes;
    word_walk walk = {
        .random = random, .next = first, .left = n, .n_words = item_bytes == 8 ? 4 : 2};
    const uint32_t *words;
    int64_t done = 0;
    for (int64_t m; (m = walk_next(&walk, &words)) > 0; done += m)
        for (int64_t i = 0; i < m; i++) {
            const uint32_t *mine = words + i * walk.n_words;
            uint64_t value = range == 0        ? (mine[0] | (uint64_t)mine[1] << 32)
                             : item_bytes == 8 ? scaled_128(mine, range)
                                               : scaled_64(mine, range);
            put_integer(out, done + i, item_bytes, low + value);
        }
}
