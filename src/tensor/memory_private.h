/* SPDX-License-Identifier: Apache-2.0 */
/* The memory from inside: memory.c claims and allocates, memory_spare.c keeps what may soon be
 * needed again, memory_look.c measures the rest of the process, memory_fork.c begins a child's
 * account, memory_mover.c moves tensors out for others, memory_line.c finds the line. Safe from any
 * thread: counters are atomic, and lists are behind `mu`, which is held for a few loads and stores.
 */
#ifndef PL_TENSOR_MEMORY_PRIVATE_H
#define PL_TENSOR_MEMORY_PRIVATE_H

#include <pthread.h>

#include "tensor/memory.h"
#include "tensor/memory_line.h"

enum { PL_MEMORY_PAGE = 4096 }; /* of all that we run on; larger ones only make blocks larger */

/* A large block. It is full once a look has found all of its pages touched: they stay so, but for
 * those that are swapped out. */
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

/* Anonymous, of the whole process; 0 where /proc cannot be read. */
uint64_t pl_memory_private_bytes(void);

/* Reads what the process uses beside its blocks and charges it; or has the guard do so. */
void pl_memory_look(pl_memory *memory);

/* The same for whoever found no room: not if the last look was just now, by what it took. */
void pl_memory_look_at_line(pl_memory *memory);

/* Looked at so lately that it is known how much the rest can have grown by since at most. */
bool pl_memory_looked_lately(const pl_memory *memory, uint64_t *ret_since_bytes);

/* `bytes` more were claimed: looks if it is time to. */
void pl_memory_look_if_due(pl_memory *memory, uint64_t bytes);

/* Has malloc() give back what it keeps, and takes off what dead children left charged. */
void pl_memory_relieve(pl_memory *memory);

/* ---- memory_spare.c ---- */

/* A mapping that was given back, hooked in as it was; false if it is not kept. Its claim is then
 * the spare's, and claimed_bytes is the caller's to lower. */
bool pl_memory_keep_spare(pl_memory *memory, pl_mapping *mapping);

/* One of this size, hooked in, with its claim in the ledger; NULL if there is none. */
pl_mapping *pl_memory_take_spare(pl_memory *memory, uint64_t cost);

/* Gives all of them back, and returns their bytes. */
uint64_t pl_memory_drop_spares(pl_memory *memory);

/* The same in a new child, which they are not charged to; mu is held. */
void pl_memory_forget_spares(pl_memory *memory);

/* In memory.c; mu is held. */
void pl_memory_hook_mapping(pl_memory *memory, pl_mapping *mapping);
void pl_memory_unhook_mapping(pl_memory *memory, pl_mapping *mapping);

/* From one list into the other. */
void pl_memory_mark_full(pl_memory *memory, pl_mapping *mapping, bool is_full);

/* ---- memory_mover.c ---- */

/* In a guarded run a thread of the process moves out what is idle in all of its memories, for
 * whoever is about to be refused: ledger/room.h. Returns where it tells what is idle; -1: there is
 * no mover. */
pl_owner pl_memory_start_mover(const pl_memory_line *line);

/* In a new child, which does not have the thread. */
void pl_memory_forget_mover(void);

/* Gives back spares and what the evictor has, until it was `bytes`: as pl_memory_evict. */
uint64_t pl_memory_move_out(pl_memory *memory, uint64_t bytes, pl_error *reterr);

/* ---- memory_fork.c ---- */

/* The nth memory of the process, for which the caller has a reference; NULL: there are fewer. */
pl_memory *pl_memory_ref_nth(int n);

/* From here on the memory is at rest while a fork happens, and has an account in each child. */
PL_MUST_CHECK int pl_memory_join_forks(pl_memory *memory);
void pl_memory_leave_forks(pl_memory *memory);

#endif
