/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: how many of a step's frames compute at a time, where there are more of them.
 * Whoever reads or writes a file gives its turn to another, and takes one again afterwards. So the
 * processors are busy while the disk is, and never more of them than the runtime has threads.
 *
 * Safe from any thread. NULL is allowed, and stands for a turn for everybody. */
#ifndef PL_EXEC_TURNS_H
#define PL_EXEC_TURNS_H

#include <pthread.h>

typedef struct pl_turns {
    pthread_mutex_t mu; /* leaf lock */
    pthread_cond_t given;
    int n_free; /* mu */
} pl_turns;

static inline void pl_turns_init(pl_turns *turns, int n)
{
    pthread_mutex_init(&turns->mu, NULL);
    pthread_cond_init(&turns->given, NULL);
    turns->n_free = n;
}

static inline void pl_turns_done(pl_turns *turns)
{
    pthread_cond_destroy(&turns->given);
    pthread_mutex_destroy(&turns->mu);
}

static inline void pl_turns_take(pl_turns *turns)
{
    if (!turns)
        return;
    pthread_mutex_lock(&turns->mu);
    while (turns->n_free == 0)
        pthread_cond_wait(&turns->given, &turns->mu);
    turns->n_free--;
    pthread_mutex_unlock(&turns->mu);
}

static inline void pl_turns_give(pl_turns *turns)
{
    if (!turns)
        return;
    pthread_mutex_lock(&turns->mu);
    turns->n_free++;
    pthread_cond_signal(&turns->given);
    pthread_mutex_unlock(&turns->mu);
}

#endif
