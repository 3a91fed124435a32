/* SPDX-License-Identifier: Apache-2.0 */
/* Which names were there before? A set of their hashes: 64 bits for each name, in memory that is
 * claimed. That two of a million names have one hash is as likely as 1 in 40 million. One thread at
 * a time. */
#ifndef PL_DATA_READER_KEY_SET_H
#define PL_DATA_READER_KEY_SET_H

#include "tensor/memory.h"

typedef struct pl_key_set {
    pl_memory *memory; /* borrowed */
    pl_block block;    /* hashes, 0: none here; a power of two of them, at most half of them used */
    uint64_t n_slots, n_used;
} pl_key_set;

static inline void pl_key_set_init(pl_key_set *set, pl_memory *memory)
{
    *set = (pl_key_set){.memory = memory};
}

/* Forgets all. */
void pl_key_set_clear(pl_key_set *set);

/* 1: it is new, and remembered; 0: it was there; PL_EBUDGET. */
PL_MUST_CHECK int pl_key_set_add(pl_key_set *set, const char *key, size_t n, pl_error *reterr);

#endif
