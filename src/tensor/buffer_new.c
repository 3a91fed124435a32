/* SPDX-License-Identifier: Apache-2.0 */
/* Makes buffers: large ones, small ones in slabs, spilled ones, windows, and borrowed memory. See
 * buffer.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "sys/file.h"
#include "tensor/buffer.h"
#include "tensor/pool.h"

static int no_memory(const char *what, pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "no memory for '%s'", what);
}

static pl_buffer *buffer_alloc(pl_pool *pool, uint64_t bytes, const char *what)
{
    size_t n = strlen(what) + 1;
    pl_buffer *buffer = calloc(1, sizeof *buffer + n);
    if (!buffer)
        return NULL;
    atomic_store(&buffer->n_refs, 1);
    atomic_fetch_add(&pool->n_refs, 1);
    buffer->pool = pool;
    buffer->bytes = bytes;
    memcpy(buffer->what, what, n);
    return buffer;
}

void pl_buffer_drop(pl_buffer *buffer)
{
    if (buffer)
        pl_pool_unref(buffer->pool);
    free(buffer);
}

static void link_large(pl_pool *pool, pl_buffer *buffer, pl_chunk *chunk)
{
    buffer->chunk = chunk;
    chunk->n_buffers = 1;
    pl_pool_lock(pool);
    pl_pool_add_chunk(pool, chunk);
    pl_pool_add_buffer(pool, buffer);
    pl_pool_unlock(pool);
}

static int new_large(pl_pool *pool, pl_buffer *buffer, pl_error *reterr)
{
    pl_chunk *chunk;
    int r = pl_chunk_new(buffer->bytes, false, &chunk);
    if (r < 0)
        return no_memory(buffer->what, reterr);
    r = pl_memory_take(pool->memory, buffer->bytes, buffer->what, &chunk->block, reterr);
    if (r < 0) {
        pl_chunk_free(pool, chunk);
        return r;
    }
    chunk->n_pins = 1;
    link_large(pool, buffer, chunk);
    return 0;
}

/* Returns whether a new buffer can be written into this one now: nothing reads it to move it, and
 * its copy, which is about to be outdated, is not being read. */
static bool slab_takes(const pl_chunk *chunk, uint64_t bytes)
{
    return chunk->is_slab && !chunk->dead && pl_chunk_is_resident(chunk) && !chunk->leaving &&
           !chunk->arriving && chunk->n_io == 0 && chunk->places.free_bytes >= bytes;
}

/* With the lock held. -ENOSPC if no slab has room. */
static int find_place(pl_pool *pool, pl_buffer *buffer)
{
    uint64_t bytes = pl_max_u64(buffer->bytes, 1);
    for (pl_chunk *chunk = pool->first_slab; chunk; chunk = chunk->chunk_after) {
        if (!slab_takes(chunk, bytes))
            continue;
        int r = pl_extents_take(&chunk->places, bytes, &buffer->place);
        if (r == -ENOSPC)
            continue;
        if (r < 0)
            return r;
        buffer->chunk = chunk;
        chunk->n_buffers++;
        pl_pool_add_buffer(pool, buffer);
        return 0;
    }
    return -ENOSPC;
}

/* Returns with the lock held, on success. */
static int add_slab(pl_pool *pool, pl_chunk **ret_slab, pl_error *reterr)
{
    pl_chunk *slab;
    int r = pl_chunk_new(pool->slab_bytes, true, &slab);
    if (r < 0)
        return no_memory("small tensors", reterr);
    r = pl_memory_take(pool->memory, pool->slab_bytes, "small tensors", &slab->block, reterr);
    if (r < 0) {
        pl_chunk_free(pool, slab);
        return r;
    }
    pl_pool_lock(pool);
    pl_pool_add_chunk(pool, slab);
    *ret_slab = slab;
    return 0;
}

static int new_small(pl_pool *pool, pl_buffer *buffer, pl_error *reterr)
{
    pl_pool_lock(pool);
    int r = find_place(pool, buffer);
    if (r == -ENOSPC) {
        pl_chunk *slab = NULL;
        pl_pool_unlock(pool);
        r = add_slab(pool, &slab, reterr);
        if (r < 0)
            return r;
        r = find_place(pool, buffer);
        if (slab->n_buffers == 0)
            pl_chunk_end(pool, slab);
    }
    if (r == 0)
        r = pl_chunk_pin(pool, buffer->chunk, PL_PIN_WRITE, (pl_stop){0}, buffer->what, reterr);
    pl_pool_unlock(pool);
    return r == -ENOMEM ? no_memory(buffer->what, reterr) : r;
}

static bool is_small(const pl_pool *pool, uint64_t bytes)
{
    return bytes <= pool->slab_bytes / PL_POOL_SMALL_SHARE;
}

uint64_t pl_buffer_new_cost_bytes(const pl_pool *pool, uint64_t bytes)
{
    return pl_memory_cost_bytes(is_small(pool, bytes) ? pool->slab_bytes : bytes);
}

int pl_buffer_new(pl_pool *pool, uint64_t bytes, const char *what, pl_buffer **ret_buffer,
                  void **ret_data, pl_error *reterr)
{
    int r = pl_pool_enter(pool, reterr);
    if (r < 0)
        return r;
    pl_buffer *buffer = buffer_alloc(pool, bytes, what);
    if (!buffer)
        return no_memory(what, reterr);
    r = is_small(pool, bytes) ? new_small(pool, buffer, reterr) : new_large(pool, buffer, reterr);
    if (r < 0) {
        pl_buffer_drop(buffer);
        return r;
    }
    *ret_data = pl_buffer_address(buffer);
    *ret_buffer = buffer;
    return 0;
}

int pl_buffer_new_spilled(pl_pool *pool, uint64_t bytes, const char *what, pl_buffer **ret_buffer,
                          pl_error *reterr)
{
    int r = pl_pool_enter(pool, reterr);
    if (r < 0)
        return r;
    pl_buffer *buffer = buffer_alloc(pool, bytes, what);
    pl_chunk *chunk = NULL;
    if (!buffer || pl_chunk_new(bytes, false, &chunk) < 0)
        r = no_memory(what, reterr);
    else
        r = pl_chunk_reserve_copy(pool, bytes, &chunk->copy, reterr);
    if (r < 0) {
        pl_chunk_free(pool, chunk);
        pl_buffer_drop(buffer);
        return r;
    }
    link_large(pool, buffer, chunk);
    *ret_buffer = buffer;
    return 0;
}

static int open_window(pl_window *window, const char *path, uint64_t offset, uint64_t bytes,
                       pl_error *reterr)
{
    uint64_t file_bytes, end;
    window->path = strdup(path);
    if (!window->path)
        return no_memory(path, reterr);
    int fd = pl_file_open_regular(path, &file_bytes);
    if (fd < 0)
        return pl_error_set(reterr, fd, "cannot open '%s': %s", path,
                            fd == -EINVAL ? "it is not a regular file" : pl_error_text(fd));
    window->fd = fd;
    window->offset = offset;
    if (__builtin_add_overflow(offset, bytes, &end) || end > file_bytes)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "'%s' is truncated: it has %" PRIu64 " bytes, and not %" PRIu64
                            " from %" PRIu64 " on",
                            path, file_bytes, bytes, offset);
    return 0;
}

int pl_buffer_open_window(pl_pool *pool, const char *path, uint64_t offset, uint64_t bytes,
                          const char *what, pl_buffer **ret_buffer, pl_error *reterr)
{
    int r = pl_pool_enter(pool, reterr);
    if (r < 0)
        return r;
    pl_buffer *buffer = buffer_alloc(pool, bytes, what);
    pl_chunk *chunk = NULL;
    if (!buffer || pl_chunk_new(bytes, false, &chunk) < 0)
        r = no_memory(what, reterr);
    else
        r = open_window(&chunk->window, path, offset, bytes, reterr);
    if (r < 0) {
        pl_chunk_free(pool, chunk);
        pl_buffer_drop(buffer);
        return r;
    }
    link_large(pool, buffer, chunk);
    *ret_buffer = buffer;
    return 0;
}

int pl_buffer_borrow(pl_pool *pool, const void *data, uint64_t bytes,
                     void (*release)(void *context), void *context, const char *what,
                     pl_buffer **ret_buffer, pl_error *reterr)
{
    int r = pl_pool_enter(pool, reterr);
    if (r < 0)
        return r;
    pl_buffer *buffer = buffer_alloc(pool, bytes, what);
    pl_chunk *chunk = NULL;
    if (!buffer || pl_chunk_new(bytes, false, &chunk) < 0) {
        pl_buffer_drop(buffer);
        return no_memory(what, reterr);
    }
    chunk->block = (pl_block){.data = (void *)data, .bytes = bytes};
    chunk->release = release;
    chunk->release_context = context;
    chunk->n_pins = 1;
    link_large(pool, buffer, chunk);
    *ret_buffer = buffer;
    return 0;
}
