/* SPDX-License-Identifier: Apache-2.0 */
/* See memory_private.h. What the process uses beside its blocks is what is resident, less what of
 * the blocks was touched so far: of the small ones all, of a mapping what mincore() tells.
 *
 * A mapping that is full is not asked about at each look: with the ten thousand of a list of small
 * tensors that took 45 ms, and at the line each op looks. A look asks about some of the full ones,
 * another few each time, to notice that they were swapped out. */
#include <malloc.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "sys/proc.h"
#include "tensor/memory_private.h"

enum { WALK_PAGES = 16384 }; /* looked at in one call: 64 MiB */

/* Full mappings that one look examines: 1 to 5 us each. */
enum { RECHECKED = 16 };

/* A look walks the mappings, in 0.3 ms per GiB, so it is done once per this many claimed bytes, or
 * per sixteenth of what is claimed if that is more: its cost stays a small part of touching those
 * bytes. */
#define LOOK_BYTES (64 * PL_MIB)

/* At the line every claim would look: limits looks to a fraction of the time. */
enum { LOOK_SHARE = 20 };

/* A look at a small process takes 10 us, as long as running a small graph; with many mappings 100
 * us. Its result is trusted for this long, if there is room for the growth since. */
#define TRUST_NS (64 * PL_NS_PER_MS)

/* More than a process can touch for the first time in that period: clearing the pages takes longer.
 * Plus a moment for several threads. */
enum { TOUCHED_BYTES_PER_NS = 16 };
#define LEAST_SINCE_BYTES (32 * PL_MIB)

uint64_t pl_memory_private_bytes(void)
{
    pl_proc_memory memory;
    return pl_proc_memory_read(0, &memory) < 0 ? 0 : memory.private_bytes;
}

static uint64_t touched_in(const pl_mapping *mapping)
{
    unsigned char pages[WALK_PAGES];
    uint64_t n_touched = 0;
    for (uint64_t at = 0; at < mapping->bytes; at += (uint64_t)WALK_PAGES * PL_MEMORY_PAGE) {
        uint64_t bytes = pl_min_u64(mapping->bytes - at, (uint64_t)WALK_PAGES * PL_MEMORY_PAGE);
        if (mincore((char *)mapping->data + at, bytes, pages) < 0)
            return mapping->bytes;
        for (uint64_t i = 0; i < bytes / PL_MEMORY_PAGE; i++)
            n_touched += pages[i] & 1;
    }
    return n_touched * PL_MEMORY_PAGE;
}

/* mu is held. */
static void recheck_some_full(pl_memory *memory)
{
    for (int i = 0; i < RECHECKED && memory->first_full; i++) {
        pl_mapping *mapping = memory->next_full ? memory->next_full : memory->first_full;
        memory->next_full = mapping->after;
        if (touched_in(mapping) < mapping->bytes)
            pl_memory_mark_full(memory, mapping, false);
    }
}

/* Examines mappings that are not full, and moves those found full to the other list. mu is held. */
static uint64_t walk_mappings(pl_memory *memory)
{
    uint64_t bytes = 0;
    for (pl_mapping *mapping = memory->first_mapping, *after; mapping; mapping = after) {
        uint64_t touched = touched_in(mapping);
        after = mapping->after;
        if (touched == mapping->bytes)
            pl_memory_mark_full(memory, mapping, true);
        else
            bytes += touched;
    }
    return bytes;
}

static uint64_t touched_bytes(pl_memory *memory)
{
    uint64_t bytes = atomic_load(&memory->small_bytes);
    pthread_mutex_lock(&memory->mu);
    recheck_some_full(memory);
    bytes += walk_mappings(memory) + memory->full_bytes;
    for (const pl_mapping *spare = memory->first_spare; spare; spare = spare->after)
        bytes += touched_in(spare);
    pthread_mutex_unlock(&memory->mu);
    return bytes;
}

/* Pages freed between the two readings would be charged to the rest: returns false then. Pages
 * added are missed until the next look, a few megabytes at most. */
static bool measure(pl_memory *memory, uint64_t *ret_rest_bytes)
{
    uint64_t n_ended = atomic_load(&memory->n_gives_ended);
    uint64_t own = pl_sub_sat_u64(pl_memory_private_bytes(), memory->fork_bytes);
    *ret_rest_bytes = pl_sub_sat_u64(own, touched_bytes(memory));
    return atomic_load(&memory->n_gives_begun) == n_ended;
}

void pl_memory_look(pl_memory *memory)
{
    uint64_t rest;
    uint64_t begin_ns = pl_clock_monotonic_ns();
    if (pl_memory_is_guarded(memory)) {
        memory->line.guard.look();
        atomic_store(&memory->looked_ns, begin_ns);
        atomic_store(&memory->look_took_ns, pl_clock_monotonic_ns() - begin_ns);
        return;
    }
    for (int tries = 0; tries < 4; tries++)
        if (measure(memory, &rest)) {
            pl_ledger_measure(memory->line.ledger, memory->line.owner, rest);
            atomic_store(&memory->looked_ns, begin_ns);
            break;
        }
    atomic_store(&memory->look_took_ns, pl_clock_monotonic_ns() - begin_ns);
    uint64_t step = pl_max_u64(LOOK_BYTES, atomic_load(&memory->claimed_bytes) / 16);
    atomic_store(&memory->look_at, atomic_load(&memory->spent_bytes) + step);
}

bool pl_memory_looked_lately(const pl_memory *memory, uint64_t *ret_since_bytes)
{
    uint64_t at = atomic_load(&memory->looked_ns);
    uint64_t age_ns = pl_sub_sat_u64(pl_clock_monotonic_ns(), at);
    *ret_since_bytes = pl_max_u64(age_ns * TOUCHED_BYTES_PER_NS, LEAST_SINCE_BYTES);
    return at > 0 && age_ns < TRUST_NS;
}

void pl_memory_look_at_line(pl_memory *memory)
{
    uint64_t age_ns = pl_sub_sat_u64(pl_clock_monotonic_ns(), atomic_load(&memory->looked_ns));
    if (age_ns >= LOOK_SHARE * atomic_load(&memory->look_took_ns))
        pl_memory_look(memory);
}

void pl_memory_look_if_due(pl_memory *memory, uint64_t bytes)
{
    uint64_t spent = atomic_fetch_add(&memory->spent_bytes, bytes) + bytes;
    uint64_t due = atomic_load(&memory->look_at);
    /* Only one of the threads that find it due looks. */
    if (spent >= due && atomic_compare_exchange_strong(&memory->look_at, &due, UINT64_MAX))
        pl_memory_look(memory);
}

void pl_memory_relieve(pl_memory *memory)
{
    if (memory->line.owner < 0)
        return;
    malloc_trim(0);
    pl_ledger_reclaim(memory->line.ledger);
    pl_memory_look(memory);
}
