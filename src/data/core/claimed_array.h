/* SPDX-License-Identifier: Apache-2.0 */
/* An array that grows inside of claims: what a stage holds many of. Its room is doubled, so while
 * it grows old and new are there at once. Belongs to one thread at a time. All zero is an empty
 * one. */
#ifndef PL_DATA_CORE_CLAIMED_ARRAY_H
#define PL_DATA_CORE_CLAIMED_ARRAY_H

#include "data/persist/state.h"
#include "tensor/memory.h"

typedef struct pl_claimed_array {
    pl_memory *memory; /* NULL: nothing was put there yet */
    pl_block block;
    size_t record_bytes;
    int64_t n;
} pl_claimed_array;

/* Room for one more record, which the next add() then has. PL_EBUDGET, and what there is stays. */
PL_MUST_CHECK int pl_claimed_array_room(pl_claimed_array *array, pl_memory *memory,
                                        size_t record_bytes, const char *what, pl_error *reterr);

/* One more record, at the end; not zeroed. NULL: PL_EBUDGET, and what there is stays. */
void *pl_claimed_array_add(pl_claimed_array *array, pl_memory *memory, size_t record_bytes,
                           const char *what, pl_error *reterr);

static inline void *pl_claimed_array_at(const pl_claimed_array *array, int64_t at)
{
    return (char *)array->block.data + (size_t)at * array->record_bytes;
}

/* Gives the room back; what the records own is the caller's. */
void pl_claimed_array_clear(pl_claimed_array *array);

/* ---- of elements ---- */

/* Takes the element over; there is room for it. */
void pl_claimed_array_add_element(pl_claimed_array *array, pl_element *element);

/* For whoever loads a state: loads one of `dataset` to the end. */
PL_MUST_CHECK int pl_claimed_array_load_element(pl_claimed_array *array, pl_runtime *runtime,
                                                pl_loader *loader, const pl_dataset *dataset,
                                                const char *what, pl_error *reterr);

static inline pl_element *pl_claimed_array_element(const pl_claimed_array *array, int64_t at)
{
    return pl_claimed_array_at(array, at);
}

/* The first `n` go, and the others come down. */
void pl_claimed_array_drop_elements(pl_claimed_array *array, int64_t n);

void pl_claimed_array_clear_elements(pl_claimed_array *array);

#endif
