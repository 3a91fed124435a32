/* SPDX-License-Identifier: Apache-2.0 */
#include "data/headway.h"

#include <stdatomic.h>

void pl_headway_init(pl_headway *headway, pl_memory *memory, uint64_t limit_bytes)
{
    headway->memory = memory;
    uint64_t left = pl_memory_headroom_bytes(memory);
    headway->limit_bytes = limit_bytes > 0 ? pl_min_u64(limit_bytes, left) : left;
    atomic_init(&headway->ahead_bytes, 0);
}

bool pl_headway_try(pl_headway *headway, uint64_t bytes)
{
    uint64_t before = atomic_fetch_add_explicit(&headway->ahead_bytes, bytes, memory_order_relaxed);
    if (before + bytes <= headway->limit_bytes / 2 &&
        (bytes == 0 || pl_memory_headroom_for(headway->memory, bytes) >= bytes))
        return true;
    pl_headway_give(headway, bytes);
    return false;
}

void pl_headway_take(pl_headway *headway, uint64_t bytes)
{
    atomic_fetch_add_explicit(&headway->ahead_bytes, bytes, memory_order_relaxed);
}

void pl_headway_give(pl_headway *headway, uint64_t bytes)
{
    atomic_fetch_sub_explicit(&headway->ahead_bytes, bytes, memory_order_relaxed);
}
