/* SPDX-License-Identifier: Apache-2.0 */
/* Access to buffers in their files, for callers that move many bytes their own way. See buffer.h.
 */
#include "tensor/pool.h"

bool pl_buffer_begin_file(pl_buffer *buffer, int *ret_fd, uint64_t *ret_offset)
{
    pl_pool *pool = buffer->pool;
    pl_chunk *chunk = buffer->chunk;
    if (pl_pool_is_inherited(pool))
        return false;
    pl_pool_lock(pool);
    while (chunk->arriving)
        pl_pool_wait(pool);
    /* A resident buffer can change, and its copy be given up; a user's file stays as it is. */
    bool is_window = chunk->window.fd >= 0;
    bool in_file = is_window || !pl_chunk_is_resident(chunk);
    if (in_file) {
        chunk->n_io++;
        *ret_fd = is_window ? chunk->window.fd : pl_spill_fd(pool->spill);
        *ret_offset =
            (is_window ? chunk->window.offset : chunk->copy.offset) + buffer->place.offset;
    }
    pl_pool_unlock(pool);
    return in_file;
}

void pl_buffer_end_file(pl_buffer *buffer)
{
    pl_pool *pool = buffer->pool;
    pl_pool_lock(pool);
    if (--buffer->chunk->n_io == 0)
        pl_pool_tell(pool);
    pl_pool_unlock(pool);
}
