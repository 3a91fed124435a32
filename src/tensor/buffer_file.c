/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers where they are in a file, for those who move many bytes their own way. See buffer.h. */
#include "tensor/pool.h"

bool pl_buffer_begin_file(pl_buffer *buffer, int *ret_fd, uint64_t *ret_offset)
{
    pl_pool *pool = buffer->pool;
    pl_chunk *chunk = buffer->chunk;
    if (pl_pool_is_inherited(pool))
        return false;
    pthread_mutex_lock(&pool->mu);
    while (chunk->arriving)
        pl_pool_wait(pool);
    /* What is resident may be changed, and its copy given up; a user's file is what it is. */
    bool is_window = chunk->window.fd >= 0;
    bool in_file = is_window || !pl_chunk_is_resident(chunk);
    if (in_file) {
        chunk->n_io++;
        *ret_fd = is_window ? chunk->window.fd : pl_spill_fd(pool->spill);
        *ret_offset =
            (is_window ? chunk->window.offset : chunk->copy.offset) + buffer->place.offset;
    }
    pthread_mutex_unlock(&pool->mu);
    return in_file;
}

void pl_buffer_end_file(pl_buffer *buffer)
{
    pl_pool *pool = buffer->pool;
    pthread_mutex_lock(&pool->mu);
    if (--buffer->chunk->n_io == 0)
        pl_pool_tell(pool);
    pthread_mutex_unlock(&pool->mu);
}
