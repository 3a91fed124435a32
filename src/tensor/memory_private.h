/* SPDX-License-Identifier: Apache-2.0 */
/* The memory from inside: memory.c claims and allocates, memory_spare.c keeps spares, memory_look.c
 * measures the rest of the process, memory_fork.c starts a child's account, memory_mover.c moves
 * tensors out for others, memory_line.c finds the line. Safe from any thread: counters are atomic,
 * and lists are guarded by `mu`, which is held for a few loads and stores. */
#ifndef PL_TENSOR_MEMORY_PRIVATE_H
#define PL_TENSOR_MEMORY_PRIVATE_H

#include <pthread.h>

#include "tensor/memory.h"
#include "tensor/memory_line.h"

enum {
    PL_MEMORY_PAGE = 4096
}; /* on every machine we support; larger ones only make blocks larger */

/* A large block. It is full once a look has found all of its pages touched: they stay so, except
 * when swapped out. */
typedef struct pl_mapping {
    struct pl_mapping *before, *after; /* the memory's mu */
    void *data;
    uint64_t bytes;
    bool is_full;     /* mu; says in which list it is */
    bool is_unmarked; /* mu; a spare that the guard still counts to the line that had it last */
} pl_mapping;

struct pl_memory {
    _Atomic int n_refs;
    pl_memory_line line; /* constant, but for the owner in a new child */
    pl_atomic_u64 claimed_bytes;
    pl_atomic_u64 peak_bytes;
    pl_atomic_u64 small_bytes;                  /* part of claimed: what malloc() has given */
    pl_atomic_u64 spent_bytes;                  /* claimed ever */
    pl_atomic_u64 look_at;                      /* spent_bytes at which to look next */
    pl_atomic_u64 looked_ns;                    /* when the last look began; 0: never */
    pl_atomic_u64 look_took_ns;                 /* that one */
    pl_atomic_u64 n_gives_begun, n_gives_ended; /* of mappings: a look must meet none */
    uint64_t fork_bytes; /* inherited, and charged to the parent; changes in a new child only,
                            as does generation */
    uint32_t generation;
    pthread_mutex_t mu;        /* leaf lock; all of them are held in a fork */
    pl_mapping *first_mapping; /* mu; those that are not full: each look walks over them */
    pl_mapping *first_full;    /* mu; a look walks over a few of them, from next_full on */
    pl_mapping *next_full;     /* mu; NULL: from first_full */
    uint64_t full_bytes;       /* mu; of all in first_full */
    pl_mapping *first_spare;   /* mu; newest first */
    int n_spares;              /* mu */
    pl_atomic_u64 spare_bytes; /* written under mu; claimed in the ledger, not part of claimed */
    pl_memory_evict *evict;    /* mu; with its context */
    void *evict_context;
    int n_evicting;           /* mu; calls of evict under way */
    pthread_cond_t evict_end; /* mu */
    struct pl_memory *next;   /* memory_fork.c's */
};

/* ---- memory_look.c ---- */

/* Returns the anonymous memory of the process; 0 if /proc cannot be read. */
uint64_t pl_memory_private_bytes(void);

/* Reads what the process uses beside its blocks and charges it, or has the guard do so. */
void pl_memory_look(pl_memory *memory);

/* Does the same after a request found no room, unless the last look was just now, judged by the
 * time it took. */
void pl_memory_look_at_line(pl_memory *memory);

/* Returns whether the last look is recent enough to bound the growth of the rest since then. */
bool pl_memory_looked_lately(const pl_memory *memory, uint64_t *ret_since_bytes);

/* Counts claimed bytes, and looks if it is due. */
void pl_memory_look_if_due(pl_memory *memory, uint64_t bytes);

/* Makes malloc() return free memory, and releases what dead children were charged. */
void pl_memory_relieve(pl_memory *memory);

/* ---- memory_spare.c ---- */

/* Keeps a freed mapping as a spare; false if it is not kept. Its claim becomes the spare's, and the
 * caller lowers claimed_bytes. */
bool pl_memory_keep_spare(pl_memory *memory, pl_mapping *mapping);

/* Takes a spare of this size, with its claim in the ledger; NULL if there is none. */
pl_mapping *pl_memory_take_spare(pl_memory *memory, uint64_t cost);

/* Frees all spares, and returns their bytes. */
uint64_t pl_memory_drop_spares(pl_memory *memory);

/* Frees them in a new child, which is not charged for them; mu is held. */
void pl_memory_forget_spares(pl_memory *memory);

/* In memory.c; mu is held. */
void pl_memory_hook_mapping(pl_memory *memory, pl_mapping *mapping);
void pl_memory_unhook_mapping(pl_memory *memory, pl_mapping *mapping);

/* Moves a mapping from one list to the other. */
void pl_memory_mark_full(pl_memory *memory, pl_mapping *mapping, bool is_full);

/* ---- memory_mover.c ---- */

/* In a guarded run, starts the thread that moves idle bytes of all memories out for a request that
 * is about to be refused: see ledger/room.h. Returns the slot where it reports idle bytes; -1:
 * there is no mover. */
pl_owner pl_memory_start_mover(const pl_memory_line *line);

/* Resets it in a new child, which does not have the thread. */
void pl_memory_forget_mover(void);

/* Frees spares and what the evictor can, until it was `bytes`: like pl_memory_evict. */
uint64_t pl_memory_move_out(pl_memory *memory, uint64_t bytes, pl_error *reterr);

/* ---- memory_fork.c ---- */

/* Returns the nth memory of the process, with a reference for the caller; NULL at the end. */
pl_memory *pl_memory_ref_nth(int n);

/* Registers the memory: it is at rest during a fork, and has an account in each child. */
PL_MUST_CHECK int pl_memory_join_forks(pl_memory *memory);
void pl_memory_leave_forks(pl_memory *memory);

#endif
