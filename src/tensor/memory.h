/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's part of the budget: bytes that carry their claim.
 *   memory   an account. In a guarded run the line is the run's, and the guard in this process
 *            claims each large allocation as it is made. Else a ledger of our own keeps a line: the
 *            true limit, or the user's, for all of the process
 *   block    bytes, claimed before they are allocated; aligned to 64 bytes, and to pages from
 *            PL_MEMORY_PAGED_BYTES on. Not zeroed, as far as anybody may rely on
 *   cost     what a block takes of the account: its bytes, rounded up
 *   rest     what the process uses beside its blocks: resident, anonymous, measured now and then
 *   cap      the most that blocks may cost together, whatever the line; the rest does not count
 *   evictor  who can make room: called, with no lock held, when there is not enough
 *   window   what a value goes through on its way out of memory: a block that may be of the reserve
 *            as well, where all of the line is used, because it is what makes room
 *   spare    a mapping that was given back, kept for the next block of its size: 512 MiB at most,
 *            and a 16th of the line, whatever the cap. All go when anybody finds no room
 *   mover    in a guarded run, a thread that has the evictors of the process make room for others:
 *            for who is about to be refused, in this process or another (ledger/room.h)
 *
 *   claimed = sum of the costs of live blocks; claimed + spares <= cap
 *   claimed + spares + rest <= line at every claim (in a guarded run: everybody's); with a window
 *   that nothing could be evicted for, <= line + reserve
 *
 * Nothing else is kept that was given back. A forked child shares the line with its parent and has
 * an account of its own, empty at first; blocks from before the fork are charged to the parent,
 * whoever gives them back. Safe from any thread. */
#ifndef PL_TENSOR_MEMORY_H
#define PL_TENSOR_MEMORY_H

#include "base/base.h"

#define PL_MEMORY_ALIGN_BYTES 64
#define PL_MEMORY_PAGED_BYTES (64 * PL_KIB)

typedef struct pl_memory pl_memory;

typedef struct pl_memory_options {
    const char *budget_text; /* "2G", "80%" of what there is; NULL: all there is. In a guarded run
                                the line is the run's, and this is a cap below it */
    uint64_t cap_bytes;      /* 0: none */
} pl_memory_options;

/* `options` may be NULL. PL_EFORMAT for a budget that is no size, PL_EBUDGET for one that is too
 * small, or that the process has used up already, and its reserve: where it has used the line
 * alone, as a program that gives away a large array, there is still a window. */
PL_MUST_CHECK int pl_memory_new(const pl_memory_options *options, pl_memory **ret_memory,
                                pl_error *reterr);
pl_memory *pl_memory_ref(pl_memory *memory);

/* All blocks must be given back before the last one goes. NULL is allowed. */
void pl_memory_unref(pl_memory *memory);

typedef struct pl_block {
    void *data; /* never NULL once taken, also for 0 bytes */
    uint64_t bytes;
    struct pl_mapping *mapping; /* the memory's own; NULL: from malloc() */
    uint32_t generation;        /* of the process that is charged for it */
    bool of_reserve;            /* a window for which the line had no room */
} pl_block;

/* What taking `bytes` claims. Pure. UINT64_MAX if that cannot be had anywhere. */
uint64_t pl_memory_cost_bytes(uint64_t bytes);

/* PL_EBUDGET with the numbers: "no room for 512.0 MiB for 'loss/add': ..." -ENOMEM if the system
 * refuses what the line allows. */
PL_MUST_CHECK int pl_memory_take(pl_memory *memory, uint64_t bytes, const char *what,
                                 pl_block *ret_block, pl_error *reterr);

/* Enough for a disk to be busy with. */
#define PL_MEMORY_WINDOW_BYTES (512 * PL_KIB)

/* A block of PL_MEMORY_WINDOW_BYTES, to be given back when what it is for has been moved. */
PL_MUST_CHECK int pl_memory_take_window(pl_memory *memory, const char *what, pl_block *ret_block,
                                        pl_error *reterr);

/* Clears the block; one that is clear already, or was never taken (all zero), is left alone. */
void pl_memory_give(pl_memory *memory, pl_block *block);

/* Gives all spares back to the system: for whoever will have no use for blocks of these sizes. */
void pl_memory_trim(pl_memory *memory);

uint64_t pl_memory_limit_bytes(const pl_memory *memory); /* the line, or the cap if that is less */
uint64_t pl_memory_claimed_bytes(const pl_memory *memory); /* by blocks of this process */
uint64_t pl_memory_peak_bytes(const pl_memory *memory);    /* of claimed */

/* What could be claimed now, with nothing evicted. Measures the rest first. */
uint64_t pl_memory_headroom_bytes(pl_memory *memory);

/* The same for whoever wants `bytes` only: with far more than that below the line by a measure that
 * is some milliseconds old, nothing is measured, and what is told is less by a margin for what may
 * have come since. */
uint64_t pl_memory_headroom_for(pl_memory *memory, uint64_t bytes);

/* Is the guard in this process, and the line the run's? */
bool pl_memory_is_guarded(const pl_memory *memory);

/* Gives back blocks that cost `bytes` in sum if it can, and returns what it gave back. 0 means that
 * there is nothing left to give, now: whoever asked is then refused, with the message left in
 * *reterr (code 0: none) as the reason. Any thread calls it, several at a time. */
typedef uint64_t pl_memory_evict(void *context, uint64_t bytes, pl_error *reterr);

/* What the evictor could give back has become more, or less when negative: for others, who may need
 * the room. And it is giving something back, which takes a while. */
void pl_memory_add_idle(pl_memory *memory, int64_t bytes);
void pl_memory_tell_progress(pl_memory *memory);

/* What others would move out for us, in this process or another: all that is idle under the run's
 * line but `own_bytes`, which the caller's evictor has, and our spares. 0 outside of a run. */
uint64_t pl_memory_idle_elsewhere(const pl_memory *memory, uint64_t own_bytes);

/* This thread takes a lock (1) or gives it back (-1) that the evictor needs: nobody can wait for
 * the evictor here. */
void pl_memory_hold(pl_memory *memory, int more);

/* One at a time; NULL for none. Returns when no call of the one before is under way. */
void pl_memory_set_evictor(pl_memory *memory, pl_memory_evict *evict, void *context);

#endif
