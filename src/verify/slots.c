/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verify/schema.h"

#define BLOCK_BYTES (PL_VERIFY_BLOCK_SLOTS * sizeof(pl_verify_slot))

void pl_verify_slots_init(pl_verify_slots *slots, pl_memory *memory)
{
    *slots = (pl_verify_slots){.memory = memory};
    pl_paths_init(&slots->paths, memory);
}

void pl_verify_slots_done(pl_verify_slots *slots)
{
    for (size_t i = 0; i < slots->paths.n && i / PL_VERIFY_BLOCK_SLOTS < slots->n_blocks; i++) {
        free(pl_verify_slot_at(slots, i)->finding);
        pl_verify_schema_free(pl_verify_slot_at(slots, i)->schema);
    }
    for (size_t i = 0; i < slots->n_blocks; i++)
        pl_memory_give(slots->memory, &slots->blocks[i]);
    free(slots->blocks);
    pl_paths_done(&slots->paths);
}

static int make_block(pl_verify_slots *slots, pl_error *reterr)
{
    pl_block *blocks = reallocarray(slots->blocks, slots->n_blocks + 1, sizeof *blocks);
    if (!blocks)
        return pl_error_set(reterr, -ENOMEM, "no memory for %zu files", slots->paths.n);
    slots->blocks = blocks;
    int r = pl_memory_take(slots->memory, BLOCK_BYTES, "files", &blocks[slots->n_blocks], reterr);
    if (r == 0)
        memset(blocks[slots->n_blocks++].data, 0, BLOCK_BYTES);
    return r;
}

int pl_verify_slots_make(pl_verify_slots *slots, pl_error *reterr)
{
    int r = 0;
    while (r == 0 && slots->n_blocks * PL_VERIFY_BLOCK_SLOTS < slots->paths.n)
        r = make_block(slots, reterr);
    return r;
}
