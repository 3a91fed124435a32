/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates places in a range of bytes: for the spill file, and for slabs that many small buffers
 * share. Works on offsets alone, so the bytes need not be in memory.
 *   extent  bytes [offset, offset + bytes); both are multiples of the unit
 *   free    extents sorted by offset, no two of which touch; the first that fits is taken
 *
 * Freeing never fails: before an extent is taken, the list has room for one free extent between any
 * two taken ones. Not safe from several threads at once. */
#ifndef PL_TENSOR_EXTENTS_H
#define PL_TENSOR_EXTENTS_H

#include "base/base.h"

typedef struct pl_extent {
    uint64_t offset;
    uint64_t bytes;
} pl_extent;

typedef struct pl_extents {
    uint64_t end_bytes; /* end of the range */
    uint64_t unit_bytes;
    uint64_t free_bytes;
    uint64_t missed_bytes; /* no free extent is this large, known from the last search */
    pl_extent *free;
    size_t n_free;
    size_t n_room; /* of free[] */
    size_t n_taken;
} pl_extents;

void pl_extents_init(pl_extents *extents, uint64_t unit_bytes);
void pl_extents_done(pl_extents *extents);

/* Extends the range by free bytes. -ENOMEM. */
PL_MUST_CHECK int pl_extents_grow(pl_extents *extents, uint64_t bytes);

/* Cuts off the free bytes at the end, down to `least_bytes`. Returns the new end. */
uint64_t pl_extents_shrink(pl_extents *extents, uint64_t least_bytes);

/* Takes `bytes`, more than 0, rounded up. -ENOSPC if no free extent is large enough; -ENOMEM. */
PL_MUST_CHECK int pl_extents_take(pl_extents *extents, uint64_t bytes, pl_extent *ret_extent);
void pl_extents_give(pl_extents *extents, pl_extent extent);

/* Returns the free bytes at the end, which need not be added when growing. */
uint64_t pl_extents_tail_bytes(const pl_extents *extents);

#endif
