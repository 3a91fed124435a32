/* SPDX-License-Identifier: Apache-2.0 */
/* See room.h. */
#include "device/room.h"

#include <assert.h>

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

int pl_room_claim(pl_room *room, uint64_t bytes)
{
    if (bytes > room->limit_bytes)
        return PL_EBUDGET;
    pthread_mutex_lock(&room->mu);
    while (room->in_use_bytes > room->limit_bytes - bytes)
        pthread_cond_wait(&room->freed, &room->mu);
    room->in_use_bytes += bytes;
    room->peak_bytes = pl_max_u64(room->peak_bytes, room->in_use_bytes);
    pthread_mutex_unlock(&room->mu);
    return 0;
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
