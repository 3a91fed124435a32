/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's part of the budget: blocks of bytes that carry their claim.
 *   memory   an account. In a guarded run the line is the run's, and the guard in this process
 *            claims each large allocation as it is made. Otherwise a ledger of our own keeps a
 *            line, the true limit or the user's, for the whole process
 *   block    bytes, claimed before they are allocated; aligned to 64 bytes, and to pages from
 *            PL_MEMORY_PAGED_BYTES on. Not zeroed
 *   cost     what a block takes of the account: its bytes, rounded up
 *   rest     what the process uses beside its blocks: resident, anonymous, measured occasionally
 *   cap      the most that blocks may cost together, whatever the line; the rest does not count
 *   evictor  a callback that makes room, called without any lock when there is not enough
 *   window   a block that a value passes through on its way out of memory. If the line is fully
 *            used it may take from the reserve, because it is what makes room
 *   spare    a mapping that was freed and is kept for the next block of its size: 512 MiB at most,
 *            and a 16th of the line, whatever the cap. All are dropped when a request finds no room
 *   mover    in a guarded run, a thread that calls the process's evictors to make room for a
 *            request that is about to be refused, in this process or another (ledger/room.h)
 *
 *   claimed = sum of the costs of live blocks; claimed + spares <= cap
 *   claimed + spares + rest <= line at every claim (in a guarded run: of all processes); with a
 *   window that nothing could be evicted for, <= line + reserve
 *
 * Nothing else is kept after it is freed. A forked child shares the line with its parent and has an
 * account of its own, empty at first; blocks from before the fork are charged to the parent,
 * whichever process frees them. Safe from any thread. */
#ifndef PL_TENSOR_MEMORY_H
#define PL_TENSOR_MEMORY_H

#include "base/base.h"

#define PL_MEMORY_ALIGN_BYTES 64
#define PL_MEMORY_PAGED_BYTES (64 * PL_KIB)

typedef struct pl_memory pl_memory;

typedef struct pl_memory_options {
    const char *budget_text; /* "2G", "80%" of what is available; NULL: all of it. In a guarded run
                              * the line is the run's, and this is a cap below it */
    uint64_t cap_bytes;      /* 0: none */
} pl_memory_options;

/* `options` may be NULL. PL_EFORMAT if the budget is not a size, PL_EBUDGET if it is too small, or
 * if the process already uses all of it and the reserve. If only the line is used up, as in a
 * program that is spilling a large array, there is still room for a window. */
PL_MUST_CHECK int pl_memory_new(const pl_memory_options *options, pl_memory **ret_memory,
                                pl_error *reterr);
pl_memory *pl_memory_ref(pl_memory *memory);

/* Releases a reference. All blocks must be freed before the last one. NULL is allowed. */
void pl_memory_unref(pl_memory *memory);

typedef struct pl_block {
    void *data; /* never NULL once taken, even for 0 bytes */
    uint64_t bytes;
    struct pl_mapping *mapping; /* made by this memory; NULL: from malloc() */
    uint32_t generation;        /* fork generation of the process that is charged */
    bool of_reserve;            /* a window that uses the reserve */
} pl_block;

/* Returns what taking `bytes` claims. Pure. UINT64_MAX if it is too large for any machine. */
uint64_t pl_memory_cost_bytes(uint64_t bytes);

/* Takes a block. PL_EBUDGET with the numbers: "no room for 512.0 MiB for 'loss/add': ..."; -ENOMEM
 * if the system refuses what the line allows. */
PL_MUST_CHECK int pl_memory_take(pl_memory *memory, uint64_t bytes, const char *what,
                                 pl_block *ret_block, pl_error *reterr);

/* Enough to keep a disk busy. */
#define PL_MEMORY_WINDOW_BYTES (512 * PL_KIB)

/* Takes a block of PL_MEMORY_WINDOW_BYTES, to be freed when the value has been moved. */
PL_MUST_CHECK int pl_memory_take_window(pl_memory *memory, const char *what, pl_block *ret_block,
                                        pl_error *reterr);

/* Frees and clears the block; does nothing to one that is clear. */
void pl_memory_give(pl_memory *memory, pl_block *block);

/* Returns all spares to the system: for callers that will not need blocks of these sizes again. */
void pl_memory_trim(pl_memory *memory);

uint64_t pl_memory_limit_bytes(const pl_memory *memory); /* the line, or the cap if that is less */
uint64_t pl_memory_claimed_bytes(const pl_memory *memory); /* by blocks of this process */
uint64_t pl_memory_peak_bytes(const pl_memory *memory);    /* of claimed */

/* Returns what could be claimed now without evicting. Measures the rest first. */
uint64_t pl_memory_headroom_bytes(pl_memory *memory);

/* Like pl_memory_headroom_bytes(), for a caller that wants only `bytes`: if a measurement some
 * milliseconds old leaves far more than that, nothing is measured, and the result is less by a
 * margin for growth since then. */
uint64_t pl_memory_headroom_for(pl_memory *memory, uint64_t bytes);

/* Returns whether the guard is in this process, and the line is the run's. */
bool pl_memory_is_guarded(const pl_memory *memory);

/* Frees blocks that cost `bytes` in sum if it can, and returns what it freed. 0 means that nothing
 * is left to free: the request is then refused, with the message in *reterr (code 0: none) as the
 * reason. Any thread calls it, several at a time. */
typedef uint64_t pl_memory_evict(void *context, uint64_t bytes, pl_error *reterr);

/* Reports a change of the bytes that the evictor could free, for other processes that may need the
 * room; and that it is freeing something, which takes a while. */
void pl_memory_add_idle(pl_memory *memory, int64_t bytes);
void pl_memory_tell_progress(pl_memory *memory);

/* Returns what others would move out for us, in this process or another: all idle bytes under the
 * run's line except `own_bytes`, which the caller's evictor has, plus our spares. 0 outside a run.
 */
uint64_t pl_memory_idle_elsewhere(const pl_memory *memory, uint64_t own_bytes);

/* Notes that this thread takes (1) or releases (-1) a lock that the evictor needs: it must not wait
 * for the evictor. */
void pl_memory_hold(pl_memory *memory, int more);

/* Sets the evictor; NULL removes it. Returns when no call of the previous one is in progress. */
void pl_memory_set_evictor(pl_memory *memory, pl_memory_evict *evict, void *context);

#endif
