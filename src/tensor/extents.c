/* SPDX-License-Identifier: Apache-2.0 */
/* See extents.h. */
#include "tensor/extents.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 16 };

void pl_extents_init(pl_extents *extents, uint64_t unit_bytes)
{
    *extents = (pl_extents){.unit_bytes = unit_bytes, .missed_bytes = UINT64_MAX};
}

void pl_extents_done(pl_extents *extents)
{
    free(extents->free);
    *extents = (pl_extents){0};
}

static uint64_t round_up(const pl_extents *extents, uint64_t bytes)
{
    return (bytes + extents->unit_bytes - 1) / extents->unit_bytes * extents->unit_bytes;
}

/* n taken extents have at most n + 1 free ones around them. */
static int make_room(pl_extents *extents, size_t n_taken)
{
    if (n_taken + 1 <= extents->n_room)
        return 0;
    size_t n_room = extents->n_room ? 2 * extents->n_room : ROOM_FIRST;
    pl_extent *list = realloc(extents->free, n_room * sizeof *list);
    if (!list)
        return -ENOMEM;
    extents->free = list;
    extents->n_room = n_room;
    return 0;
}

static void insert(pl_extents *extents, size_t place, pl_extent extent)
{
    pl_extent *list = extents->free;
    assert(extents->n_free < extents->n_room);
    memmove(&list[place + 1], &list[place], (extents->n_free - place) * sizeof *list);
    list[place] = extent;
    extents->n_free++;
}

static void erase(pl_extents *extents, size_t place)
{
    pl_extent *list = extents->free;
    extents->n_free--;
    memmove(&list[place], &list[place + 1], (extents->n_free - place) * sizeof *list);
}

/* Returns the first free extent at or after `offset`. */
static size_t find_place(const pl_extents *extents, uint64_t offset)
{
    size_t low = 0, high = extents->n_free;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (extents->free[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Merges it with adjacent free extents. */
static void put(pl_extents *extents, pl_extent extent)
{
    size_t place = find_place(extents, extent.offset);
    pl_extent *list = extents->free;
    bool joins_after =
        place < extents->n_free && extent.offset + extent.bytes == list[place].offset;
    bool joins_before =
        place > 0 && list[place - 1].offset + list[place - 1].bytes == extent.offset;
    assert(place == extents->n_free || extent.offset + extent.bytes <= list[place].offset);
    assert(place == 0 || list[place - 1].offset + list[place - 1].bytes <= extent.offset);
    if (joins_before) {
        list[place - 1].bytes += extent.bytes;
        if (joins_after) {
            list[place - 1].bytes += list[place].bytes;
            erase(extents, place);
        }
    } else if (joins_after) {
        list[place].offset = extent.offset;
        list[place].bytes += extent.bytes;
    } else {
        insert(extents, place, extent);
    }
    extents->free_bytes += extent.bytes;
    extents->missed_bytes = UINT64_MAX;
}

int pl_extents_grow(pl_extents *extents, uint64_t bytes)
{
    bytes = round_up(extents, bytes);
    int r = make_room(extents, extents->n_taken);
    if (r < 0)
        return r;
    uint64_t offset = extents->end_bytes;
    extents->end_bytes += bytes;
    if (bytes)
        put(extents, (pl_extent){.offset = offset, .bytes = bytes});
    return 0;
}

uint64_t pl_extents_tail_bytes(const pl_extents *extents)
{
    if (extents->n_free == 0)
        return 0;
    const pl_extent *last = &extents->free[extents->n_free - 1];
    return last->offset + last->bytes == extents->end_bytes ? last->bytes : 0;
}

uint64_t pl_extents_shrink(pl_extents *extents, uint64_t least_bytes)
{
    uint64_t over = pl_sub_sat_u64(extents->end_bytes, round_up(extents, least_bytes));
    uint64_t cut = pl_min_u64(over, pl_extents_tail_bytes(extents));
    if (cut == 0)
        return extents->end_bytes;
    pl_extent *last = &extents->free[extents->n_free - 1];
    last->bytes -= cut;
    if (last->bytes == 0)
        extents->n_free--;
    extents->end_bytes -= cut;
    extents->free_bytes -= cut;
    return extents->end_bytes;
}

int pl_extents_take(pl_extents *extents, uint64_t bytes, pl_extent *ret_extent)
{
    bytes = round_up(extents, bytes);
    if (bytes >= extents->missed_bytes)
        return -ENOSPC;
    int r = make_room(extents, extents->n_taken + 1);
    if (r < 0)
        return r;
    for (size_t i = 0; i < extents->n_free; i++) {
        pl_extent *candidate = &extents->free[i];
        if (candidate->bytes < bytes)
            continue;
        *ret_extent = (pl_extent){.offset = candidate->offset, .bytes = bytes};
        candidate->offset += bytes;
        candidate->bytes -= bytes;
        if (candidate->bytes == 0)
            erase(extents, i);
        extents->free_bytes -= bytes;
        extents->n_taken++;
        return 0;
    }
    extents->missed_bytes = bytes;
    return -ENOSPC;
}

void pl_extents_give(pl_extents *extents, pl_extent extent)
{
    assert(extents->n_taken > 0 && extent.offset + extent.bytes <= extents->end_bytes);
    extents->n_taken--;
    put(extents, extent);
}
