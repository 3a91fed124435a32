/* SPDX-License-Identifier: Apache-2.0 */
/* See memory_private.h. All memories are locked while a fork happens, so that the child finds none
 * of them half-changed by a thread that it does not have. This is the one place that holds several
 * locks: the list's, then each memory's in the list's order; elsewhere a memory's lock is taken
 * alone. */
#include "tensor/memory_private.h"

static struct {
    pthread_mutex_t mu;
    pl_memory *first;
    pthread_once_t once;
    int watch_result;
} forks = {.mu = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void lock_all(void)
{
    pthread_mutex_lock(&forks.mu);
    for (pl_memory *memory = forks.first; memory; memory = memory->next)
        pthread_mutex_lock(&memory->mu);
}

static void unlock_all(void)
{
    for (pl_memory *memory = forks.first; memory; memory = memory->next)
        pthread_mutex_unlock(&memory->mu);
    pthread_mutex_unlock(&forks.mu);
}

/* If the child gets no slot (see pl_ledger_join), it continues under the parent's. */
static void begin_child_account(pl_memory *memory)
{
    memory->line.room = -1; /* nothing inherited can be moved out here */
    if (memory->line.owner >= 0)
        (void)!pl_ledger_join(memory->line.ledger, 1, &memory->line.owner);
    atomic_store(&memory->claimed_bytes, 0);
    atomic_store(&memory->peak_bytes, 0);
    atomic_store(&memory->small_bytes, 0);
    atomic_store(&memory->n_gives_ended, atomic_load(&memory->n_gives_begun));
    pl_memory_forget_spares(memory);
    memory->fork_bytes = pl_memory_private_bytes();
    atomic_store(&memory->looked_ns, 0);
    memory->generation++;
    memory->first_mapping = memory->first_full = memory->next_full = NULL;
    memory->full_bytes = 0;
    memory->n_evicting = 0; /* threads that did are gone */
    pthread_cond_init(&memory->evict_end, NULL);
}

static void begin_child(void)
{
    pl_memory_forget_mover();
    for (pl_memory *memory = forks.first; memory; memory = memory->next)
        begin_child_account(memory);
    unlock_all();
}

static void watch_forks(void)
{
    forks.watch_result = -pthread_atfork(lock_all, unlock_all, begin_child);
}

/* Skips a memory whose last user is about to remove it. */
static bool try_to_ref(pl_memory *memory)
{
    int n = atomic_load(&memory->n_refs);
    while (n > 0 && !atomic_compare_exchange_weak(&memory->n_refs, &n, n + 1))
        ;
    return n > 0;
}

pl_memory *pl_memory_ref_nth(int n)
{
    pthread_mutex_lock(&forks.mu);
    pl_memory *memory = forks.first;
    while (memory && (n-- > 0 || !try_to_ref(memory)))
        memory = memory->next;
    pthread_mutex_unlock(&forks.mu);
    return memory;
}

int pl_memory_join_forks(pl_memory *memory)
{
    pthread_once(&forks.once, watch_forks);
    if (forks.watch_result < 0)
        return forks.watch_result;
    pthread_mutex_lock(&forks.mu);
    memory->next = forks.first;
    forks.first = memory;
    pthread_mutex_unlock(&forks.mu);
    return 0;
}

void pl_memory_leave_forks(pl_memory *memory)
{
    pthread_mutex_lock(&forks.mu);
    pl_memory **link = &forks.first;
    while (*link && *link != memory)
        link = &(*link)->next;
    if (*link)
        *link = memory->next;
    pthread_mutex_unlock(&forks.mu);
}
