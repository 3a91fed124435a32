/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for many small things that are freed together: chunks, filled from their beginning. A
 * failed take changes nothing. Belongs to one thread. */
#ifndef PL_GRAPH_ARENA_H
#define PL_GRAPH_ARENA_H

#include "base/base.h"

typedef struct pl_arena_chunk pl_arena_chunk;

/* All zero is an empty one. */
typedef struct pl_arena {
    pl_arena_chunk *newest;
    size_t n_used, n_bytes; /* of the newest chunk */
} pl_arena;

/* Aligned to 8, not cleared; NULL when there is no memory. */
void *pl_arena_take(pl_arena *arena, size_t bytes);

void pl_arena_done(pl_arena *arena);

#endif
