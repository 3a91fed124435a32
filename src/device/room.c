/* SPDX-License-Identifier: Apache-2.0 */
/* See room.h. */
#include "device/room.h"

#include <assert.h>
#include <time.h>

#include "base/clock.h"

/* How often a waiting thread checks whether to give up. */
#define LOOK_NS (10 * PL_NS_PER_MS)

void pl_room_init(pl_room *room, uint64_t limit_bytes)
{
    *room = (pl_room){.limit_bytes = limit_bytes};
    pthread_mutex_init(&room->mu, NULL);
    pthread_cond_init(&room->freed, NULL);
}

void pl_room_done(pl_room *room)
{
    pthread_cond_destroy(&room->freed);
    pthread_mutex_destroy(&room->mu);
}

/* Releases the lock for the call of `check`. Call with the lock held. */
static int wait_a_little(pl_room *room, pl_room_check check)
{
    uint64_t at = pl_clock_monotonic_ns() + LOOK_NS;
    struct timespec until = {(time_t)(at / PL_NS_PER_SEC), (long)(at % PL_NS_PER_SEC)};
    pthread_cond_clockwait(&room->freed, &room->mu, CLOCK_MONOTONIC, &until);
    if (!check.check)
        return 0;
    pthread_mutex_unlock(&room->mu);
    int r = check.check(check.context);
    pthread_mutex_lock(&room->mu);
    return r;
}

int pl_room_claim(pl_room *room, uint64_t bytes, pl_room_check check)
{
    int r = 0;
    if (bytes > room->limit_bytes)
        return PL_EBUDGET;
    pthread_mutex_lock(&room->mu);
    while (r == 0 && room->in_use_bytes > room->limit_bytes - bytes)
        r = wait_a_little(room, check);
    if (r == 0) {
        room->in_use_bytes += bytes;
        room->peak_bytes = pl_max_u64(room->peak_bytes, room->in_use_bytes);
    }
    pthread_mutex_unlock(&room->mu);
    return r;
}

void pl_room_release(pl_room *room, uint64_t bytes)
{
    pthread_mutex_lock(&room->mu);
    assert(bytes <= room->in_use_bytes);
    room->in_use_bytes -= bytes;
    pthread_cond_broadcast(&room->freed);
    pthread_mutex_unlock(&room->mu);
}

void pl_room_read(pl_room *room, uint64_t *ret_in_use_bytes, uint64_t *ret_peak_bytes)
{
    pthread_mutex_lock(&room->mu);
    *ret_in_use_bytes = room->in_use_bytes;
    *ret_peak_bytes = room->peak_bytes;
    pthread_mutex_unlock(&room->mu);
}
