/* SPDX-License-Identifier: Apache-2.0 */
#include "data/core/prefetch_budget.h"

#include <stdatomic.h>

/* How many elements are begun until the limit has recovered. */
enum { COMES_BACK_IN = 1024 };

void pl_prefetch_budget_init(pl_prefetch_budget *budget, pl_memory *memory, uint64_t limit_bytes)
{
    budget->memory = memory;
    uint64_t left = pl_memory_headroom_bytes(memory);
    budget->most_bytes = limit_bytes > 0 ? pl_min_u64(limit_bytes, left) : left;
    atomic_init(&budget->limit_bytes, budget->most_bytes);
    atomic_init(&budget->ahead_bytes, 0);
}

static uint64_t limit_of(const pl_prefetch_budget *budget)
{
    return atomic_load_explicit(&budget->limit_bytes, memory_order_relaxed);
}

static void set_limit(pl_prefetch_budget *budget, uint64_t bytes)
{
    atomic_store_explicit(&budget->limit_bytes, bytes, memory_order_relaxed);
}

bool pl_prefetch_budget_try(pl_prefetch_budget *budget, uint64_t bytes)
{
    uint64_t before = atomic_fetch_add_explicit(&budget->ahead_bytes, bytes, memory_order_relaxed);
    uint64_t limit = limit_of(budget), most = budget->most_bytes;
    if (limit < most)
        set_limit(budget, pl_min_u64(most, limit + most / COMES_BACK_IN));
    if (before + bytes <= limit / 2 &&
        (bytes == 0 || pl_memory_headroom_for(budget->memory, bytes) >= bytes))
        return true;
    pl_prefetch_budget_give(budget, bytes);
    return false;
}

void pl_prefetch_budget_shrink(pl_prefetch_budget *budget)
{
    uint64_t ahead = atomic_load_explicit(&budget->ahead_bytes, memory_order_relaxed);
    set_limit(budget, pl_min_u64(limit_of(budget), ahead * 2) / 4 * 3);
}

void pl_prefetch_budget_take(pl_prefetch_budget *budget, uint64_t bytes)
{
    atomic_fetch_add_explicit(&budget->ahead_bytes, bytes, memory_order_relaxed);
}

void pl_prefetch_budget_give(pl_prefetch_budget *budget, uint64_t bytes)
{
    atomic_fetch_sub_explicit(&budget->ahead_bytes, bytes, memory_order_relaxed);
}
