/* SPDX-License-Identifier: Apache-2.0 */
/* How far ahead the stages of a pass may run, in bytes.
 *   limit   what the pass may hold: the user's, or what the runtime had left when it began. Less
 *           for a while after something did not fit
 *   ahead   what is made, or being made, before it is asked for: of all stages together
 *
 *   ahead <= limit / 2: the other half is for what is in the consumer's hands, and for scratch
 *
 * The first element of a stage needs no room: it is what the consumer waits for. What does not fit
 * after all is refused by the account (tensor/memory.h), whose line nothing passes. Safe from any
 * thread. */
#ifndef PL_DATA_AHEAD_PREFETCH_BUDGET_H
#define PL_DATA_AHEAD_PREFETCH_BUDGET_H

#include "tensor/memory.h"

typedef struct pl_prefetch_budget {
    pl_memory *memory;
    uint64_t most_bytes;          /* constant */
    _Atomic uint64_t limit_bytes; /* relaxed, as is the next: bounds that are passed by little for a
                                     moment */
    _Atomic uint64_t ahead_bytes;
} pl_prefetch_budget;

/* `limit_bytes` 0: what the memory has left now. */
void pl_prefetch_budget_init(pl_prefetch_budget *budget, pl_memory *memory, uint64_t limit_bytes);

/* True: so many bytes more may be made ahead, and are counted until they are given back. */
PL_MUST_CHECK bool pl_prefetch_budget_try(pl_prefetch_budget *budget, uint64_t bytes);

/* They are ahead whether there is room or not: made already, or they turned out larger. */
void pl_prefetch_budget_take(pl_prefetch_budget *budget, uint64_t bytes);
void pl_prefetch_budget_give(pl_prefetch_budget *budget, uint64_t bytes);

/* Too much was ahead for something that was asked for: less from now on. It comes back little by
 * little. */
void pl_prefetch_budget_shrink(pl_prefetch_budget *budget);

#endif
