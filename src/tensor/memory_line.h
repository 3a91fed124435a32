/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the memory's line: the guard's, or a new one. Constant from then on, except that a forked
 * child becomes an owner of its own. */
#ifndef PL_TENSOR_MEMORY_LINE_H
#define PL_TENSOR_MEMORY_LINE_H

#include "ledger/guarded.h"
#include "ledger/ledger.h"

/* All of them, or none. */
typedef struct pl_memory_guard {
    pl_guard_map_function *map;
    pl_guard_spare_function *spare;
    pl_guard_hold_function *hold;
    pl_guard_owner_function *owner;
    pl_guard_look_function *look;
    pl_guard_refusal_function *refusal;
} pl_memory_guard;

typedef struct pl_memory_line {
    pl_ledger *ledger; /* the run's, or one of our own */
    pl_owner owner;    /* in one of our own; -1: the guard owns what we claim */
    pl_owner room;     /* the slot where a mover reports idle bytes (ledger/room.h); -1: none */
    uint64_t cap_bytes;
    pl_memory_guard guard;
} pl_memory_line;

static inline bool pl_memory_line_is_guarded(const pl_memory_line *line)
{
    return line->guard.map != NULL;
}

/* `budget_text` may be NULL. */
PL_MUST_CHECK int pl_memory_line_init(pl_memory_line *line, const char *budget_text,
                                      pl_error *reterr);
void pl_memory_line_done(pl_memory_line *line);

#endif
