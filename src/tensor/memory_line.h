/* SPDX-License-Identifier: Apache-2.0 */
/* Where the memory's line is: with the guard, or found anew. Constant from then on, but that a
 * forked child becomes an owner of its own. */
#ifndef PL_TENSOR_MEMORY_LINE_H
#define PL_TENSOR_MEMORY_LINE_H

#include "ledger/ledger.h"

typedef struct pl_memory_line {
    pl_ledger *ledger; /* the run's, or one of our own */
    pl_owner owner;    /* in one of our own; -1: the guard owns what we claim */
    uint64_t cap_bytes;
    int (*guard_refusal)(char *text, size_t size); /* NULL: no guard */
} pl_memory_line;

/* `budget_text` may be NULL. */
PL_MUST_CHECK int pl_memory_line_init(pl_memory_line *line, const char *budget_text,
                                      pl_error *reterr);
void pl_memory_line_done(pl_memory_line *line);

#endif
