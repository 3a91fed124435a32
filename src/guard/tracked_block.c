/* SPDX-License-Identifier: Apache-2.0 */
/* Tracked blocks: large ones, whose claim must be released when they are freed, and sampled ones,
 * whose site must be updated.
 *
 *   filter   a byte per page of the address space, modulo its size: how many tracked blocks start
 *            there. free() of an untracked block reads one byte, of a table that takes 8 KiB of
 *            cache for 32 MiB of heap.
 *   table    address -> block, in windows of WINDOW places: an entry may be in any place of its
 *            window, so no entry moves, and none leaves a mark behind when it is removed. Two
 *            threads never work on one address: the allocator gives it to one at a time.
 *   large    the claimed blocks once more, in a list that can be walked for how much of each is
 *            touched; and the largest mappings, which only count as they are touched: a report must
 *            not say that a site holds memory which was never written to.
 *
 * All of this is static, zero until used, and never grows: a block that does not fit is not
 * tracked. */
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "guard/guard.h"

enum { PLACES = 1 << 16, WINDOW = 16, LARGE_BLOCKS = 32768 };

/* An unclaimed block is listed from this size on. The interpreter's arenas, 1 MiB each, are filled
 * soon; OpenBLAS maps 128 MiB for each thread and touches a tenth. */
#define LISTED_BYTES (16 * PL_MIB)

_Atomic uint8_t pl_tracked_block_filter[PL_FILTER_PAGES];

static pl_atomic_u64 addresses[PLACES + WINDOW];
static pl_tracked_block blocks[PLACES + WINDOW];

typedef struct large_block {
    pl_atomic_u64 address; /* 0: free */
    uint64_t bytes;
    pl_atomic_u64 touched_bytes; /* as of the last look; a full block is not walked again */
    uint32_t generation;
    bool claimed;
    _Atomic(pl_site *) site;
    pl_atomic_i64 untouched_reported; /* bytes that the site counts as untouched */
} large_block;

static large_block large[LARGE_BLOCKS];
static pl_atomic_u32 n_large;    /* places used at most, from the start */
static pl_atomic_u32 maybe_free; /* the first place that may be free */

/* A counter that reached its maximum stays there: a page that is always looked up is only slow. */
void pl_filter_add(const void *block)
{
    _Atomic uint8_t *count = &pl_tracked_block_filter[pl_filter_index(block)];
    uint8_t seen = atomic_load(count);
    while (seen != UINT8_MAX && !atomic_compare_exchange_weak(count, &seen, (uint8_t)(seen + 1)))
        ;
}

static void filter_remove(const void *block)
{
    _Atomic uint8_t *count = &pl_tracked_block_filter[pl_filter_index(block)];
    uint8_t seen = atomic_load(count);
    while (seen != UINT8_MAX && seen != 0 &&
           !atomic_compare_exchange_weak(count, &seen, (uint8_t)(seen - 1)))
        ;
}

static size_t window_of(uint64_t address)
{
    return (size_t)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48) & (PLACES - 1);
}

/* A claimed block counts with all of its bytes, touched or not; any other with its touched ones. */
static void update_site(large_block *block, int64_t untouched)
{
    pl_site *site = atomic_load(&block->site);
    int64_t reported = atomic_exchange(&block->untouched_reported, untouched);
    if (!site || reported == untouched || block->generation != pl_guard_state.generation)
        return;
    if (block->claimed)
        atomic_fetch_add(&site->untouched_bytes, untouched - reported);
    else
        pl_site_add_unclaimed(site, reported - untouched, 0);
}

static uint32_t take_free(uint32_t from, uint32_t end)
{
    for (uint32_t i = from; i < end; i++) {
        uint64_t nobody = 0;
        if (atomic_load_explicit(&large[i].address, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&large[i].address, &nobody, 1))
            return i;
    }
    return LARGE_BLOCKS;
}

/* Returns 1 + the place; 0 when none is left. */
static uint32_t large_add(uint64_t address, uint64_t bytes, const pl_tracked_block *block)
{
    uint32_t from = atomic_load(&maybe_free), i = take_free(from, LARGE_BLOCKS);
    if (i == LARGE_BLOCKS)
        i = take_free(0, from);
    if (i == LARGE_BLOCKS)
        return 0;
    atomic_compare_exchange_strong(&maybe_free, &from, i + 1);
    large[i].bytes = bytes;
    large[i].generation = pl_guard_state.generation;
    large[i].claimed = block->claimed_bytes != 0;
    atomic_store(&large[i].site, block->site);
    atomic_store(&large[i].untouched_reported, 0);
    atomic_store(&large[i].touched_bytes, 0);
    atomic_store(&large[i].address, address);
    uint32_t used = atomic_load(&n_large);
    while (used <= i && !atomic_compare_exchange_weak(&n_large, &used, i + 1))
        ;
    return i + 1;
}

/* A block that changed its size keeps its place, so that a concurrent walk of the list finds it
 * once, with what it had touched. */
static bool list_large(uint64_t address, pl_tracked_block *block)
{
    bool claimed = block->claimed_bytes != 0;
    uint64_t bytes = claimed ? block->claimed_bytes : block->weight_bytes;
    if (!claimed && bytes < LISTED_BYTES) {
        pl_tracked_block_end(block);
        block->large_place = 0;
        return true;
    }
    if (block->large_place == 0) {
        block->large_place = large_add(address, bytes, block);
        return block->large_place != 0 || !claimed;
    }
    large_block *place = &large[block->large_place - 1];
    update_site(place, 0);
    atomic_store(&place->site, block->site);
    place->bytes = bytes;
    place->claimed = claimed;
    place->generation = block->generation;
    atomic_store(&place->address, address);
    return true;
}

void pl_tracked_block_end(const pl_tracked_block *block)
{
    if (!block->large_place)
        return;
    uint32_t i = block->large_place - 1, free = atomic_load(&maybe_free);
    update_site(&large[i], 0);
    atomic_store(&large[i].address, 0);
    while (i < free && !atomic_compare_exchange_weak(&maybe_free, &free, i))
        ;
}

bool pl_tracked_block_add(void *address, const pl_tracked_block *block)
{
    uint64_t key = (uint64_t)(uintptr_t)address;
    pl_tracked_block entry = *block;
    if (!list_large(key, &entry))
        return false;
    size_t window = window_of(key);
    for (size_t i = window; i < window + WINDOW; i++) {
        uint64_t nobody = 0;
        if (atomic_load_explicit(&addresses[i], memory_order_relaxed) != 0 ||
            !atomic_compare_exchange_strong(&addresses[i], &nobody, key))
            continue;
        blocks[i] = entry;
        pl_filter_add(address);
        return true;
    }
    pl_tracked_block_end(&entry);
    return false;
}

/* NULL is not a block: 0 marks an empty place. */
static size_t find_place(uint64_t key)
{
    if (key == 0)
        return SIZE_MAX;
    size_t window = window_of(key);
    for (size_t i = window; i < window + WINDOW; i++)
        if (atomic_load_explicit(&addresses[i], memory_order_relaxed) == key)
            return i;
    return SIZE_MAX;
}

bool pl_tracked_block_find(const void *address, pl_tracked_block *ret_block)
{
    size_t place = find_place((uint64_t)(uintptr_t)address);
    if (place == SIZE_MAX)
        return false;
    *ret_block = blocks[place];
    return true;
}

bool pl_tracked_block_change_site(const void *address, pl_site *site, pl_tracked_block *ret_before)
{
    size_t place = find_place((uint64_t)(uintptr_t)address);
    if (place == SIZE_MAX)
        return false;
    pl_tracked_block *block = &blocks[place];
    *ret_before = *block;
    if (block->site == site)
        return true;
    block->site = site;
    if (block->large_place) {
        large_block *listed = &large[block->large_place - 1];
        update_site(listed, 0);
        atomic_store(&listed->site, site);
    }
    return true;
}

bool pl_tracked_block_take(const void *address, pl_tracked_block *ret_block)
{
    uint64_t key = (uint64_t)(uintptr_t)address;
    size_t place = find_place(key);
    if (place == SIZE_MAX)
        return false;
    *ret_block = blocks[place];
    atomic_store(&addresses[place], 0);
    filter_remove(address);
    return true;
}

/* Counts the bytes whose lowest bit is set, eight at a time, because an array that is being filled
 * is walked again and again. The product adds up the bytes of `set` in its highest byte. */
static uint64_t count_lowest_bits(const unsigned char *bytes, uint64_t n)
{
    const uint64_t ones = 0x0101010101010101;
    uint64_t count = 0, set, i = 0;
    for (; n - i >= sizeof set; i += sizeof set) {
        memcpy(&set, bytes + i, sizeof set);
        count += (set & ones) * ones >> 56;
    }
    for (; i < n; i++)
        count += bytes[i] & 1;
    return count;
}

/* Counts the resident pages of [address, address + bytes), a window of 16 MiB at a time: the kernel
 * writes a byte per page, and this runs on the caller's stack. False where not all of it is mapped:
 * another thread has just freed the block, or has resized it and not yet recorded its new place. */
static bool count_resident(uint64_t address, uint64_t bytes, uint64_t *ret_bytes)
{
    enum { PAGE = 4096, PAGES = 4096 };
    unsigned char here[PAGES];
    uint64_t n_resident = 0;
    uint64_t at = address & ~(uint64_t)(PAGE - 1);
    uint64_t end = address + bytes;
    while (at < end) {
        uint64_t span = pl_min_u64((end - at + PAGE - 1) & ~(uint64_t)(PAGE - 1), PAGE * PAGES);
        if (mincore((void *)(uintptr_t)at, span, here) != 0)
            return false;
        n_resident += count_lowest_bits(here, span / PAGE);
        at += span;
    }
    *ret_bytes = pl_min_u64(n_resident * PAGE, bytes);
    return true;
}

/* A block that is being moved counts as fully touched until the next walk, else its touched bytes
 * would count a second time, as measured. One byte less than full causes that walk. */
static uint64_t touched_now(large_block *block, uint64_t address, uint64_t bytes)
{
    uint64_t touched;
    if (!count_resident(address, bytes, &touched))
        touched = bytes - 1;
    atomic_store(&block->touched_bytes, touched);
    if (atomic_load(&block->address) == address) /* not freed meanwhile */
        update_site(block, (int64_t)(bytes - touched));
    return touched;
}

/* A block that is filled is walked once. A sparse one of many GiB would be walked again at every
 * look, so walks are limited to a twentieth of the time. That is counted in CPU time: on a busy
 * machine a walk of microseconds may last a second by the clock, and touched memory would count
 * twice for twenty seconds. */
static pl_atomic_u64 walked_ns, walk_cost_ns, mappings_walked_ns;

static bool walk_due(uint64_t now)
{
    return now - atomic_load(&walked_ns) >= 20 * atomic_load(&walk_cost_ns);
}

/* Only reports depend on these. */
static bool mappings_due(uint64_t now)
{
    return now - atomic_load(&mappings_walked_ns) >= PL_NS_PER_SEC;
}

uint64_t pl_tracked_block_touched_bytes(bool exactly)
{
    uint64_t now = pl_clock_monotonic_ns();
    bool walk = exactly || walk_due(now);
    bool walk_mappings = exactly || mappings_due(now);
    uint64_t begin = walk ? pl_clock_thread_ns() : 0;
    uint64_t sum = 0;
    uint32_t used = atomic_load(&n_large);
    for (uint32_t i = 0; i < used; i++) {
        uint64_t address = atomic_load(&large[i].address);
        if (address <= 1 || large[i].generation != pl_guard_state.generation)
            continue;
        uint64_t bytes = large[i].bytes;
        uint64_t touched = atomic_load(&large[i].touched_bytes);
        if (touched < bytes && (large[i].claimed ? walk : walk_mappings))
            touched = touched_now(&large[i], address, bytes);
        if (!large[i].claimed)
            continue;
        /* The block may be freed by now, but it existed when the resident size was read, just
         * before. Its place may hold another block, of another size. */
        sum += pl_min_u64(touched, bytes);
    }
    if (walk_mappings)
        atomic_store(&mappings_walked_ns, now);
    if (walk) {
        atomic_store(&walked_ns, now);
        atomic_store(&walk_cost_ns, pl_clock_thread_ns() - begin);
    }
    return sum;
}
