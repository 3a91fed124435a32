/* SPDX-License-Identifier: Apache-2.0 */
/* The processes below the supervisor, and the memory that they use, kept from one reading to the
 * next so that growth can be seen. Forked processes share pages, so their proportional set size is
 * read, as often as its cost allows; in between, it is extrapolated by the change of the resident
 * size. A child of vfork() that has not called exec has no memory of its own. */
#ifndef PL_SUPERVISE_PROCESS_TREE_H
#define PL_SUPERVISE_PROCESS_TREE_H

#include <sys/types.h>

#include "base/base.h"
#include "ledger/ledger.h"

/* As many as there are slots, so that every process is watched. Only live ones take memory. */
enum { PL_TREE_PROCESSES = PL_SLOTS, PL_TREE_ENDED = 16, PL_TREE_INDEX = 4 * PL_TREE_PROCESSES };

typedef struct pl_tree_process {
    pid_t pid;
    pid_t parent_pid;
    uint64_t start_ticks;
    char name[32];
    char state;
    uint64_t cpu_ticks;
    uint64_t resident_bytes;
    uint64_t private_bytes;
    uint64_t used_bytes; /* private, or its share where pages are shared by fork */
    uint64_t calm_bytes; /* used_bytes when the tree was last below the line; 0 for a newcomer */
    uint64_t pss_bytes;  /* last read; pss_private_bytes are the private bytes at that time */
    uint64_t pss_private_bytes;
    uint64_t pss_read_ns; /* 0: never */
    int slot;             /* in the ledger; -1: the guard is not in it */
    uint32_t slot_flags;
    bool shares_pages; /* with a forked child or its parent */
    bool forked;       /* and not exec'd since */
    bool in_parents;   /* by vfork(): its memory is its parent's own, and counts there */
    bool has_forked;   /* a child that shares pages with it */
    pid_t asked_pid;   /* the parent that in_parents refers to; 0: none yet */
    bool seen;         /* in this reading */
} pl_tree_process;

/* Maps a pid to a place: open addressing, of at most two entries for each process. */
typedef struct pl_tree_index {
    int32_t places[PL_TREE_INDEX]; /* 1 + the place; 0: none */
    int32_t used[PL_TREE_INDEX];   /* which entries are set, to empty it without a walk over all */
    int n_used;
} pl_tree_index;

typedef struct pl_process_tree {
    int n;
    pl_tree_process processes[PL_TREE_PROCESSES];
    pl_tree_index by_pid; /* of processes[] */
    pl_tree_index slots;  /* of the ledger's slots that the guard is in, in this reading */
    int n_ended;          /* since the reading before; more than fit are not remembered */
    pl_tree_process ended[PL_TREE_ENDED];
    uint64_t used_bytes;      /* of all */
    uint64_t unguarded_bytes; /* of those without the guard */
    uint64_t resident_bytes;  /* as shown in the record */
    uint64_t cpu_ticks;       /* of all, the ended ones included */
    uint64_t ended_cpu_ticks;
    uint64_t pss_cost_ns; /* what reading all shares cost last */
    uint64_t shares_ns;   /* the cost in this reading, which has a ration of its own */
    uint64_t pss_read_ns; /* when that was */
} pl_process_tree;

/* Reads the tree below `root` (not `root` itself). `now_ns` is CLOCK_MONOTONIC; `pressed` allows
 * more expensive reading. */
void pl_process_tree_read(pl_process_tree *tree, const pl_ledger *ledger, pid_t root,
                          uint64_t now_ns, bool pressed);

/* Remembers what each process uses now, as its part of a calm tree. */
void pl_process_tree_calm(pl_process_tree *tree);

/* Returns the process that the run is about: the command or, where that holds little and only waits
 * for one guarded program, as shells and launchers do, that program. */
pid_t pl_process_tree_main(const pl_process_tree *tree, pid_t command, uint64_t enough_bytes);

/* Returns the process to stop: the one that grew most since the tree was calm, and the command only
 * when no other holds `enough_bytes`. NULL: none. */
const pl_tree_process *pl_process_tree_victim(const pl_process_tree *tree, pid_t command,
                                              uint64_t enough_bytes);

#endif
