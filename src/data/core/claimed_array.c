/* SPDX-License-Identifier: Apache-2.0 */
#include "data/core/claimed_array.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_RECORDS = 16 };

static int grow(pl_claimed_array *array, const char *what, pl_error *reterr)
{
    uint64_t bytes =
        array->block.data ? array->block.bytes * 2 : array->record_bytes * (uint64_t)FIRST_RECORDS;
    pl_block block;
    int r = pl_memory_take(array->memory, bytes, what, &block, reterr);
    if (r < 0)
        return r;
    if (array->block.data)
        memcpy(block.data, array->block.data, (size_t)array->n * array->record_bytes);
    pl_memory_give(array->memory, &array->block);
    array->block = block;
    return 0;
}

int pl_claimed_array_room(pl_claimed_array *array, pl_memory *memory, size_t record_bytes,
                          const char *what, pl_error *reterr)
{
    array->memory = memory;
    array->record_bytes = record_bytes;
    bool there = ((uint64_t)array->n + 1) * record_bytes <= array->block.bytes;
    return there ? 0 : grow(array, what, reterr);
}

void *pl_claimed_array_add(pl_claimed_array *array, pl_memory *memory, size_t record_bytes,
                           const char *what, pl_error *reterr)
{
    int r = pl_claimed_array_room(array, memory, record_bytes, what, reterr);
    return r < 0 ? NULL : pl_claimed_array_at(array, array->n++);
}

void pl_claimed_array_clear(pl_claimed_array *array)
{
    if (array->memory)
        pl_memory_give(array->memory, &array->block);
    *array = (pl_claimed_array){0};
}

void pl_claimed_array_add_element(pl_claimed_array *array, pl_element *element)
{
    *pl_claimed_array_element(array, array->n++) = *element;
    *element = (pl_element){0};
}

void pl_claimed_array_drop_elements(pl_claimed_array *array, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        pl_element_clear(pl_claimed_array_element(array, i));
    array->n -= n;
    if (array->n > 0)
        memmove(array->block.data, pl_claimed_array_at(array, n),
                (size_t)array->n * array->record_bytes);
}

void pl_claimed_array_clear_elements(pl_claimed_array *array)
{
    pl_claimed_array_drop_elements(array, array->n);
    pl_claimed_array_clear(array);
}
