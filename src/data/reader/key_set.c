/* SPDX-License-Identifier: Apache-2.0 */
/* See key_set.h. */
#include "data/reader/key_set.h"

#include <string.h>

enum { FIRST_SLOTS = 1024 };

/* Two rounds of a 64 x 64 -> 128 bit product for each 8 bytes. Never 0. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_of(const char *key, size_t n)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15), other = UINT64_C(0xbf58476d1ce4e5b9);
    uint64_t hash = n * odd;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, key + i, n - i < 8 ? n - i : 8);
        hash = mix(hash ^ word ^ odd, other) + mix(word ^ other, hash ^ odd);
    }
    hash = mix(hash ^ other, odd);
    return hash ? hash : 1;
}

/* Returns the slot that has this hash, or the free one where it belongs. */
static uint64_t *slot_of(const pl_key_set *set, uint64_t hash)
{
    uint64_t *slots = set->block.data, at = hash & (set->n_slots - 1);
    while (slots[at] != 0 && slots[at] != hash)
        at = (at + 1) & (set->n_slots - 1);
    return &slots[at];
}

static int grow(pl_key_set *set, pl_error *reterr)
{
    pl_key_set larger = {.memory = set->memory,
                         .n_slots = set->n_slots ? 2 * set->n_slots : FIRST_SLOTS,
                         .n_used = set->n_used};
    int r = pl_memory_take(set->memory, larger.n_slots * sizeof(uint64_t), "keys of samples",
                           &larger.block, reterr);
    if (r < 0)
        return r;
    memset(larger.block.data, 0, larger.n_slots * sizeof(uint64_t));
    const uint64_t *slots = set->block.data;
    for (uint64_t i = 0; i < set->n_slots; i++)
        if (slots[i] != 0)
            *slot_of(&larger, slots[i]) = slots[i];
    pl_memory_give(set->memory, &set->block);
    *set = larger;
    return 0;
}

void pl_key_set_clear(pl_key_set *set)
{
    pl_memory_give(set->memory, &set->block);
    set->n_slots = set->n_used = 0;
}

int pl_key_set_add(pl_key_set *set, const char *key, size_t n, pl_error *reterr)
{
    if (2 * (set->n_used + 1) > set->n_slots) {
        int r = grow(set, reterr);
        if (r < 0)
            return r;
    }
    uint64_t hash = hash_of(key, n), *slot = slot_of(set, hash);
    if (*slot == hash)
        return 0;
    *slot = hash;
    set->n_used++;
    return 1;
}
