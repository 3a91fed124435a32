/* SPDX-License-Identifier: Apache-2.0 */
#include "data/core/claimed_array.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_RECORDS = 16 };

static int grow(pl_hold *hold, const char *what, pl_error *reterr)
{
    uint64_t bytes =
        hold->block.data ? hold->block.bytes * 2 : hold->record_bytes * (uint64_t)FIRST_RECORDS;
    pl_block block;
    int r = pl_memory_take(hold->memory, bytes, what, &block, reterr);
    if (r < 0)
        return r;
    if (hold->block.data)
        memcpy(block.data, hold->block.data, (size_t)hold->n * hold->record_bytes);
    pl_memory_give(hold->memory, &hold->block);
    hold->block = block;
    return 0;
}

int pl_hold_room(pl_hold *hold, pl_memory *memory, size_t record_bytes, const char *what,
                 pl_error *reterr)
{
    hold->memory = memory;
    hold->record_bytes = record_bytes;
    bool there = ((uint64_t)hold->n + 1) * record_bytes <= hold->block.bytes;
    return there ? 0 : grow(hold, what, reterr);
}

void *pl_hold_add(pl_hold *hold, pl_memory *memory, size_t record_bytes, const char *what,
                  pl_error *reterr)
{
    int r = pl_hold_room(hold, memory, record_bytes, what, reterr);
    return r < 0 ? NULL : pl_hold_at(hold, hold->n++);
}

void pl_hold_clear(pl_hold *hold)
{
    if (hold->memory)
        pl_memory_give(hold->memory, &hold->block);
    *hold = (pl_hold){0};
}

void pl_hold_add_element(pl_hold *hold, pl_element *element)
{
    *pl_hold_element(hold, hold->n++) = *element;
    *element = (pl_element){0};
}

int pl_hold_load_element(pl_hold *hold, pl_runtime *runtime, pl_loader *loader,
                         const pl_dataset *dataset, const char *what, pl_error *reterr)
{
    pl_element element = {0};
    int r = pl_hold_room(hold, runtime->memory, sizeof element, what, reterr);
    if (r == 0)
        r = pl_load_element(loader, dataset, &element, reterr);
    if (r == 0)
        pl_hold_add_element(hold, &element);
    return r;
}

void pl_hold_drop_elements(pl_hold *hold, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        pl_element_clear(pl_hold_element(hold, i));
    hold->n -= n;
    if (hold->n > 0)
        memmove(hold->block.data, pl_hold_at(hold, n), (size_t)hold->n * hold->record_bytes);
}

void pl_hold_clear_elements(pl_hold *hold)
{
    pl_hold_drop_elements(hold, hold->n);
    pl_hold_clear(hold);
}
