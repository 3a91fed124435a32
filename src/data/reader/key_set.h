/* SPDX-License-Identifier: Apache-2.0 */
/* Detects duplicate names with a set of their hashes: 64 bits for each name, in claimed memory. The
 * chance that two of a million names share a hash is 1 in 40 million. One thread at a time. */
#ifndef PL_DATA_READER_KEY_SET_H
#define PL_DATA_READER_KEY_SET_H

#include "tensor/memory.h"

typedef struct pl_key_set {
    pl_memory *memory; /* borrowed */
    pl_block block;    /* hashes, 0: free; a power of two of them, at most half of them used */
    uint64_t n_slots, n_used;
} pl_key_set;

static inline void pl_key_set_init(pl_key_set *set, pl_memory *memory)
{
    *set = (pl_key_set){.memory = memory};
}

/* Forgets all names. */
void pl_key_set_clear(pl_key_set *set);

/* Returns 1 for a new name, which is added; 0 for a known one; PL_EBUDGET. */
PL_MUST_CHECK int pl_key_set_add(pl_key_set *set, const char *key, size_t n, pl_error *reterr);

#endif
