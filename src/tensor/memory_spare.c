/* SPDX-License-Identifier: Apache-2.0 */
/* See memory_private.h. Mappings that were given back and wait for the next block of their size: a
 * run's results and scratch are mostly as large as the last run's, and faulting in new pages takes
 * longer than what is then computed in them. A spare keeps its claim in the ledger, so that the
 * line holds, and goes as soon as somebody needs the room. */
#include <stdlib.h>
#include <sys/mman.h>

#include "tensor/memory_private.h"

/* The most to keep: many batches of pictures, or the result of one large product (of 10000 x 10000,
 * new pages took a tenth of the time); but little of a small line, which others may share. A cap is
 * our own limit: spares below it bother nobody, and claim() drops them if we need the room. */
#define SPARES_BYTES (512 * PL_MIB)
enum { LINE_SHARE = 16, SPARES = 32 };

/* A block that is repeatedly taken and freed is always the newest spare. If it is small, the guard
 * learns of it only when a newer one comes: reporting it each time was half of the extra cost of
 * such a block in a guarded run. */
#define UNMARKED_BYTES PL_MIB

static uint64_t room_for_spares(const pl_memory *memory)
{
    return pl_min_u64(SPARES_BYTES, pl_ledger_limit_bytes(memory->line.ledger) / LINE_SHARE);
}

/* Removes a spare from the list. mu is held. */
static pl_mapping *unlink_spare(pl_memory *memory, pl_mapping **link)
{
    pl_mapping *mapping = *link;
    *link = mapping->after;
    mapping->after = NULL;
    memory->n_spares--;
    atomic_fetch_sub(&memory->spare_bytes, mapping->bytes);
    pl_memory_add_idle(memory, -(int64_t)mapping->bytes);
    return mapping;
}

/* Removes the oldest spares while there are too many, for unmapping. mu is held. */
static pl_mapping *unlink_oldest(pl_memory *memory, uint64_t most_bytes, int most)
{
    pl_mapping *gone = NULL;
    while (memory->n_spares > most || atomic_load(&memory->spare_bytes) > most_bytes) {
        pl_mapping **link = &memory->first_spare;
        while ((*link)->after)
            link = &(*link)->after;
        pl_mapping *oldest = unlink_spare(memory, link);
        oldest->after = gone;
        gone = oldest;
    }
    return gone;
}

static uint64_t unmap_all(pl_mapping *first)
{
    uint64_t bytes = 0;
    while (first) {
        pl_mapping *mapping = first;
        first = mapping->after;
        bytes += mapping->bytes;
        munmap(mapping->data, mapping->bytes);
        free(mapping);
    }
    return bytes;
}

static uint64_t release_all(pl_memory *memory, pl_mapping *first)
{
    if (!first)
        return 0;
    atomic_fetch_add(&memory->n_gives_begun, 1);
    uint64_t bytes = unmap_all(first);
    atomic_fetch_add(&memory->n_gives_ended, 1);
    if (memory->line.owner >= 0)
        pl_ledger_release(memory->line.ledger, memory->line.owner, bytes);
    return bytes;
}

/* Releases it at the guard. mu is held. */
static void mark_spare(pl_memory *memory, pl_mapping *mapping)
{
    mapping->is_unmarked = false;
    if (pl_memory_is_guarded(memory))
        memory->line.guard.spare(mapping->data, true);
}

bool pl_memory_keep_spare(pl_memory *memory, pl_mapping *mapping)
{
    uint64_t room = room_for_spares(memory);
    if (mapping->bytes > room)
        return false;
    pthread_mutex_lock(&memory->mu);
    pl_memory_unhook_mapping(memory, mapping);
    if (memory->first_spare && memory->first_spare->is_unmarked)
        mark_spare(memory, memory->first_spare);
    mapping->is_unmarked = mapping->bytes < UNMARKED_BYTES;
    if (!mapping->is_unmarked)
        mark_spare(memory, mapping);
    pl_mapping *gone = unlink_oldest(memory, room - mapping->bytes, SPARES - 1);
    mapping->after = memory->first_spare;
    memory->first_spare = mapping;
    memory->n_spares++;
    atomic_fetch_add(&memory->spare_bytes, mapping->bytes);
    pl_memory_add_idle(memory, (int64_t)mapping->bytes);
    pthread_mutex_unlock(&memory->mu);
    release_all(memory, gone);
    return true;
}

pl_mapping *pl_memory_take_spare(pl_memory *memory, uint64_t cost)
{
    pl_mapping *mapping = NULL;
    if (atomic_load(&memory->spare_bytes) < cost)
        return NULL;
    pthread_mutex_lock(&memory->mu);
    pl_mapping **link = &memory->first_spare;
    while (*link && (*link)->bytes != cost)
        link = &(*link)->after;
    if (*link) {
        mapping = unlink_spare(memory, link);
        pl_memory_hook_mapping(memory, mapping);
    }
    pthread_mutex_unlock(&memory->mu);
    if (mapping && pl_memory_is_guarded(memory))
        memory->line.guard.spare(mapping->data, false);
    return mapping;
}

uint64_t pl_memory_drop_spares(pl_memory *memory)
{
    pthread_mutex_lock(&memory->mu);
    pl_mapping *gone = unlink_oldest(memory, 0, 0);
    pthread_mutex_unlock(&memory->mu);
    return release_all(memory, gone);
}

void pl_memory_forget_spares(pl_memory *memory)
{
    unmap_all(unlink_oldest(memory, 0, 0));
}
