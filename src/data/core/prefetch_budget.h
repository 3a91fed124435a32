/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that the stages of a pass may use to make elements ahead.
 *   limit   bytes that the pass may hold: the user's number, or what the runtime had left when the
 *           pass began. Lowered for a while after something did not fit
 *   ahead   bytes of elements that are made, or being made, before they are asked for, in all
 *           stages
 *
 *   ahead <= limit / 2: the other half is for elements that the consumer holds, and for scratch
 *
 * The first element of a stage needs no room: the consumer waits for it. This is an estimate; the
 * account (tensor/memory.h) enforces the budget, and refuses elements that do not fit after all.
 * Safe from any thread. */
#ifndef PL_DATA_CORE_PREFETCH_BUDGET_H
#define PL_DATA_CORE_PREFETCH_BUDGET_H

#include "tensor/memory.h"

typedef struct pl_prefetch_budget {
    pl_memory *memory;
    uint64_t most_bytes;          /* constant */
    _Atomic uint64_t limit_bytes; /* relaxed, like the next: both may briefly be exceeded */
    _Atomic uint64_t ahead_bytes;
} pl_prefetch_budget;

/* `limit_bytes` 0: all that the memory has left now. */
void pl_prefetch_budget_init(pl_prefetch_budget *budget, pl_memory *memory, uint64_t limit_bytes);

/* Returns true if `bytes` more may be made ahead; they count until they are returned. */
PL_MUST_CHECK bool pl_prefetch_budget_try(pl_prefetch_budget *budget, uint64_t bytes);

/* Counts bytes that are ahead already, whether there was room or not. */
void pl_prefetch_budget_take(pl_prefetch_budget *budget, uint64_t bytes);
void pl_prefetch_budget_give(pl_prefetch_budget *budget, uint64_t bytes);

/* Lowers the limit, because an element that the consumer waits for did not fit. It recovers little
 * by little. */
void pl_prefetch_budget_shrink(pl_prefetch_budget *budget);

#endif
