/* SPDX-License-Identifier: Apache-2.0 */
/* See arena.h. */
#include "graph/arena.h"

#include <stdlib.h>

/* The first chunk is small, because most graphs are; each next one is twice as large, up to a size
 * at which calls to malloc() are too few to matter. */
enum { FIRST_BYTES = 4096, LAST_BYTES = 256 * 1024 };

struct pl_arena_chunk {
    pl_arena_chunk *before;
    uint64_t data[];
};

static int grow(pl_arena *arena, size_t bytes)
{
    size_t n_bytes = arena->newest ? arena->n_bytes * 2 : FIRST_BYTES;
    n_bytes = pl_max_u64(pl_min_u64(n_bytes, LAST_BYTES), bytes);
    pl_arena_chunk *chunk = malloc(sizeof *chunk + n_bytes);
    if (!chunk)
        return -1;
    chunk->before = arena->newest;
    *arena = (pl_arena){.newest = chunk, .n_bytes = n_bytes};
    return 0;
}

void *pl_arena_take(pl_arena *arena, size_t bytes)
{
    bytes = (bytes + 7) / 8 * 8;
    if (bytes > arena->n_bytes - arena->n_used && grow(arena, bytes) < 0)
        return NULL;
    void *taken = (char *)arena->newest->data + arena->n_used;
    arena->n_used += bytes;
    return taken;
}

void pl_arena_done(pl_arena *arena)
{
    while (arena->newest) {
        pl_arena_chunk *chunk = arena->newest;
        arena->newest = chunk->before;
        free(chunk);
    }
    *arena = (pl_arena){0};
}
