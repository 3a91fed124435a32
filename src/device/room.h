/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of one device.
 *   claim  bytes that a step uses there, or several consecutive steps that share values which stay
 *          there: made before allocating, released after freeing
 *
 *   in use = sum of claims <= limit, at every instant
 *
 * Such steps make one claim for everything they need, and wait for no other claim while they hold
 * it, so a step that has to wait always gets its turn. Safe from any thread. */
#ifndef PL_DEVICE_ROOM_H
#define PL_DEVICE_ROOM_H

#include <pthread.h>

#include "base/base.h"

typedef struct pl_room {
    uint64_t limit_bytes;              /* constant */
    pthread_mutex_t mu;                /* leaf lock */
    pthread_cond_t freed;              /* mu; signalled by every release */
    uint64_t in_use_bytes, peak_bytes; /* mu */
} pl_room;

void pl_room_init(pl_room *room, uint64_t limit_bytes);
void pl_room_done(pl_room *room);

/* Called now and then by a waiting thread, with no lock held: a negative result ends the wait. */
typedef struct pl_room_check {
    int (*check)(const void *context); /* NULL: waits as long as it takes */
    const void *context;
} pl_room_check;

/* Waits while others use too much. Fails with PL_EBUDGET if it is more than the limit, or with the
 * result of `check`. */
PL_MUST_CHECK int pl_room_claim(pl_room *room, uint64_t bytes, pl_room_check check);
void pl_room_release(pl_room *room, uint64_t bytes);

void pl_room_read(pl_room *room, uint64_t *ret_in_use_bytes, uint64_t *ret_peak_bytes);

#endif
