/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for many small objects that are freed together: chunks, filled from their beginning. A
 * failed allocation changes nothing. Belongs to one thread. */
#ifndef PL_GRAPH_ARENA_H
#define PL_GRAPH_ARENA_H

#include "base/base.h"

typedef struct pl_arena_chunk pl_arena_chunk;

/* All zero: empty. */
typedef struct pl_arena {
    pl_arena_chunk *newest;
    size_t n_used, n_bytes; /* of the newest chunk */
} pl_arena;

/* Returns memory aligned to 8, not cleared; NULL if out of memory. */
void *pl_arena_take(pl_arena *arena, size_t bytes);

void pl_arena_done(pl_arena *arena);

#endif
