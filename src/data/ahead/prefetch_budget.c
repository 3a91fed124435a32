/* SPDX-License-Identifier: Apache-2.0 */
#include "data/ahead/prefetch_budget.h"

#include <stdatomic.h>

/* Elements that are begun until what was taken from the limit is back. */
enum { COMES_BACK_IN = 1024 };

void pl_headway_init(pl_headway *headway, pl_memory *memory, uint64_t limit_bytes)
{
    headway->memory = memory;
    uint64_t left = pl_memory_headroom_bytes(memory);
    headway->most_bytes = limit_bytes > 0 ? pl_min_u64(limit_bytes, left) : left;
    atomic_init(&headway->limit_bytes, headway->most_bytes);
    atomic_init(&headway->ahead_bytes, 0);
}

static uint64_t limit_of(const pl_headway *headway)
{
    return atomic_load_explicit(&headway->limit_bytes, memory_order_relaxed);
}

static void set_limit(pl_headway *headway, uint64_t bytes)
{
    atomic_store_explicit(&headway->limit_bytes, bytes, memory_order_relaxed);
}

bool pl_headway_try(pl_headway *headway, uint64_t bytes)
{
    uint64_t before = atomic_fetch_add_explicit(&headway->ahead_bytes, bytes, memory_order_relaxed);
    uint64_t limit = limit_of(headway), most = headway->most_bytes;
    if (limit < most)
        set_limit(headway, pl_min_u64(most, limit + most / COMES_BACK_IN));
    if (before + bytes <= limit / 2 &&
        (bytes == 0 || pl_memory_headroom_for(headway->memory, bytes) >= bytes))
        return true;
    pl_headway_give(headway, bytes);
    return false;
}

void pl_headway_shrink(pl_headway *headway)
{
    uint64_t ahead = atomic_load_explicit(&headway->ahead_bytes, memory_order_relaxed);
    set_limit(headway, pl_min_u64(limit_of(headway), ahead * 2) / 4 * 3);
}

void pl_headway_take(pl_headway *headway, uint64_t bytes)
{
    atomic_fetch_add_explicit(&headway->ahead_bytes, bytes, memory_order_relaxed);
}

void pl_headway_give(pl_headway *headway, uint64_t bytes)
{
    atomic_fetch_sub_explicit(&headway->ahead_bytes, bytes, memory_order_relaxed);
}
