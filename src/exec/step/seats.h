/* SPDX-License-Identifier: Apache-2.0 */
/* Seats: how many of a step's frames compute at a time, where there are more of them. A frame that
 * reads or writes a file gives up its seat, and takes one again afterwards. So processors stay busy
 * during disk accesses, but never more of them than the runtime has threads.
 *
 * Safe from any thread. NULL is allowed, and means a seat for every frame. */
#ifndef PL_EXEC_STEP_SEATS_H
#define PL_EXEC_STEP_SEATS_H

#include <pthread.h>

typedef struct pl_seats {
    pthread_mutex_t mu; /* leaf lock */
    pthread_cond_t given;
    int n_free; /* mu */
} pl_seats;

static inline void pl_seats_init(pl_seats *seats, int n)
{
    pthread_mutex_init(&seats->mu, NULL);
    pthread_cond_init(&seats->given, NULL);
    seats->n_free = n;
}

static inline void pl_seats_done(pl_seats *seats)
{
    pthread_cond_destroy(&seats->given);
    pthread_mutex_destroy(&seats->mu);
}

static inline void pl_seats_take(pl_seats *seats)
{
    if (!seats)
        return;
    pthread_mutex_lock(&seats->mu);
    while (seats->n_free == 0)
        pthread_cond_wait(&seats->given, &seats->mu);
    seats->n_free--;
    pthread_mutex_unlock(&seats->mu);
}

static inline void pl_seats_give(pl_seats *seats)
{
    if (!seats)
        return;
    pthread_mutex_lock(&seats->mu);
    seats->n_free++;
    pthread_cond_signal(&seats->given);
    pthread_mutex_unlock(&seats->mu);
}

#endif
