/* SPDX-License-Identifier: Apache-2.0 */
/* An array whose memory is claimed from the budget, for stages that hold many records. It grows by
 * doubling, and has both old and new memory meanwhile. Belongs to one thread at a time. All zero is
 * an empty array. */
#ifndef PL_DATA_CORE_CLAIMED_ARRAY_H
#define PL_DATA_CORE_CLAIMED_ARRAY_H

#include "data/core/element.h"
#include "tensor/memory.h"

typedef struct pl_claimed_array {
    pl_memory *memory; /* NULL: empty */
    pl_block block;
    size_t record_bytes;
    int64_t n;
} pl_claimed_array;

/* Makes room for the next add(). On PL_EBUDGET the array is unchanged. */
PL_MUST_CHECK int pl_claimed_array_room(pl_claimed_array *array, pl_memory *memory,
                                        size_t record_bytes, const char *what, pl_error *reterr);

/* Appends a record, not zeroed. Returns NULL on PL_EBUDGET; the array is then unchanged. */
void *pl_claimed_array_add(pl_claimed_array *array, pl_memory *memory, size_t record_bytes,
                           const char *what, pl_error *reterr);

static inline void *pl_claimed_array_at(const pl_claimed_array *array, int64_t at)
{
    return (char *)array->block.data + (size_t)at * array->record_bytes;
}

/* Releases the memory; the caller has cleared the records. */
void pl_claimed_array_clear(pl_claimed_array *array);

/* ---- of elements ---- */

/* Appends an element, and takes it; the caller has made room. */
void pl_claimed_array_add_element(pl_claimed_array *array, pl_element *element);

static inline pl_element *pl_claimed_array_element(const pl_claimed_array *array, int64_t at)
{
    return pl_claimed_array_at(array, at);
}

/* Clears the first `n`, and moves the others down. */
void pl_claimed_array_drop_elements(pl_claimed_array *array, int64_t n);

void pl_claimed_array_clear_elements(pl_claimed_array *array);

#endif
