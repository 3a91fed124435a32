/* SPDX-License-Identifier: Apache-2.0 */
/* See buffer.h. Moves are in chunk.c, eviction is in pool.c. */
#include "tensor/buffer.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "sys/file.h"
#include "tensor/pool.h"

/* ---- beginnings ---- */

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

/* One that never came to have a chunk. */
static void buffer_drop(pl_buffer *buffer)
{
    if (buffer)
        pl_pool_unref(buffer->pool);
    free(buffer);
}

static void link_large(pl_pool *pool, pl_buffer *buffer, pl_chunk *chunk)
{
    buffer->chunk = chunk;
    chunk->n_buffers = 1;
    pthread_mutex_lock(&pool->mu);
    pl_pool_add_chunk(pool, chunk);
    pl_pool_add_buffer(pool, buffer);
    pthread_mutex_unlock(&pool->mu);
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

/* Can a new buffer be written into this one now? Nobody reads it to move it, and its copy, which is
 * about to be outdated, is not being read. */
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
    pthread_mutex_lock(&pool->mu);
    pl_pool_add_chunk(pool, slab);
    *ret_slab = slab;
    return 0;
}

static int new_small(pl_pool *pool, pl_buffer *buffer, pl_error *reterr)
{
    pthread_mutex_lock(&pool->mu);
    int r = find_place(pool, buffer);
    if (r == -ENOSPC) {
        pl_chunk *slab = NULL;
        pthread_mutex_unlock(&pool->mu);
        r = add_slab(pool, &slab, reterr);
        if (r < 0)
            return r;
        r = find_place(pool, buffer);
        if (slab->n_buffers == 0)
            pl_chunk_end(pool, slab);
    }
    if (r == 0)
        r = pl_chunk_pin(pool, buffer->chunk, PL_PIN_WRITE, buffer->what, reterr);
    pthread_mutex_unlock(&pool->mu);
    return r == -ENOMEM ? no_memory(buffer->what, reterr) : r;
}

static void *address_of(const pl_buffer *buffer)
{
    return (char *)buffer->chunk->block.data + buffer->place.offset;
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
    bool small = bytes <= pool->slab_bytes / PL_POOL_SMALL_SHARE;
    r = small ? new_small(pool, buffer, reterr) : new_large(pool, buffer, reterr);
    if (r < 0) {
        buffer_drop(buffer);
        return r;
    }
    *ret_data = address_of(buffer);
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
        buffer_drop(buffer);
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
        buffer_drop(buffer);
        return r;
    }
    link_large(pool, buffer, chunk);
    *ret_buffer = buffer;
    return 0;
}

/* ---- ends ---- */

pl_buffer *pl_buffer_ref(pl_buffer *buffer)
{
    atomic_fetch_add_explicit(&buffer->n_refs, 1, memory_order_relaxed);
    return buffer;
}

void pl_buffer_unref(pl_buffer *buffer)
{
    if (!buffer || pl_pool_is_inherited(buffer->pool) ||
        atomic_fetch_sub_explicit(&buffer->n_refs, 1, memory_order_acq_rel) > 1)
        return;
    pl_pool *pool = buffer->pool;
    pl_chunk *chunk = buffer->chunk;
    pthread_mutex_lock(&pool->mu);
    pl_pool_remove_buffer(pool, buffer);
    if (chunk->is_slab)
        pl_extents_give(&chunk->places, buffer->place);
    if (--chunk->n_buffers == 0)
        pl_chunk_end(pool, chunk);
    pthread_mutex_unlock(&pool->mu);
    buffer_drop(buffer);
}

/* ---- use ---- */

int pl_buffer_pin(pl_buffer *buffer, enum pl_pin access, void **ret_data, pl_error *reterr)
{
    pl_pool *pool = buffer->pool;
    int r = pl_pool_enter(pool, reterr);
    if (r < 0)
        return r;
    if (access == PL_PIN_WRITE && buffer->chunk->window.fd >= 0)
        return pl_error_set(reterr, -EROFS, "'%s' is the file '%s', which is only read",
                            buffer->what, buffer->chunk->window.path);
    pthread_mutex_lock(&pool->mu);
    r = pl_chunk_pin(pool, buffer->chunk, access, buffer->what, reterr);
    if (r == 0)
        *ret_data = address_of(buffer);
    pthread_mutex_unlock(&pool->mu);
    return r;
}

void pl_buffer_unpin(pl_buffer *buffer)
{
    pl_pool *pool = buffer->pool;
    if (pl_pool_is_inherited(pool))
        return;
    pthread_mutex_lock(&pool->mu);
    pl_chunk_unpin(pool, buffer->chunk);
    pthread_mutex_unlock(&pool->mu);
}

/* Is the buffer to be used where it is, away from memory? Then its copy or window stays until
 * end_io(). Else it is pinned, because it is resident. */
static int begin_io(pl_buffer *buffer, enum pl_pin access, bool *ret_away, pl_error *reterr)
{
    pl_pool *pool = buffer->pool;
    pl_chunk *chunk = buffer->chunk;
    int r = 0;
    pthread_mutex_lock(&pool->mu);
    while (chunk->arriving)
        pl_pool_wait(pool);
    *ret_away = !pl_chunk_is_resident(chunk) && !(chunk->is_slab && access == PL_PIN_WRITE);
    if (*ret_away)
        chunk->n_io++;
    else
        r = pl_chunk_pin(pool, chunk, access, buffer->what, reterr);
    pthread_mutex_unlock(&pool->mu);
    return r;
}

static void end_io(pl_buffer *buffer, bool away)
{
    pl_pool *pool = buffer->pool;
    pthread_mutex_lock(&pool->mu);
    if (!away)
        pl_chunk_unpin(pool, buffer->chunk);
    else if (--buffer->chunk->n_io == 0)
        pl_pool_tell(pool);
    pthread_mutex_unlock(&pool->mu);
}

static int check_range(const pl_buffer *buffer, uint64_t offset, size_t n, pl_error *reterr)
{
    if (offset <= buffer->bytes && n <= buffer->bytes - offset)
        return pl_pool_enter(buffer->pool, reterr);
    return pl_error_set(reterr, -EINVAL,
                        "%zu bytes at %" PRIu64 " are not inside of the %" PRIu64 " bytes of '%s'",
                        n, offset, buffer->bytes, buffer->what);
}

int pl_buffer_read(pl_buffer *buffer, uint64_t offset, void *data, size_t n, pl_error *reterr)
{
    bool away = false;
    int r = check_range(buffer, offset, n, reterr);
    if (r == 0)
        r = begin_io(buffer, PL_PIN_READ, &away, reterr);
    if (r < 0)
        return r;
    if (away)
        r = pl_chunk_read_away(buffer->pool, buffer->chunk, buffer->place.offset + offset, data, n,
                               reterr);
    else
        memcpy(data, (const char *)address_of(buffer) + offset, n);
    end_io(buffer, away);
    return r;
}

int pl_buffer_read_around(pl_buffer *buffer, uint64_t offset, void *room, size_t n, void **ret_data,
                          pl_error *reterr)
{
    bool away = false;
    int r = check_range(buffer, offset, n, reterr);
    if (r == 0)
        r = begin_io(buffer, PL_PIN_READ, &away, reterr);
    if (r < 0)
        return r;
    if (away) {
        r = pl_chunk_read_around(buffer->pool, buffer->chunk, buffer->place.offset + offset, room,
                                 n, ret_data, reterr);
    } else {
        memcpy(room, (const char *)address_of(buffer) + offset, n);
        *ret_data = room;
    }
    end_io(buffer, away);
    return r;
}

int pl_buffer_write(pl_buffer *buffer, uint64_t offset, const void *data, size_t n,
                    pl_error *reterr)
{
    bool away = false;
    int r = check_range(buffer, offset, n, reterr);
    if (r == 0 && buffer->chunk->window.fd >= 0)
        r = pl_error_set(reterr, -EROFS, "'%s' is the file '%s', which is only read", buffer->what,
                         buffer->chunk->window.path);
    if (r == 0)
        r = begin_io(buffer, PL_PIN_WRITE, &away, reterr);
    if (r < 0)
        return r;
    if (away)
        r = pl_spill_write(buffer->pool->spill, buffer->chunk->copy.offset + offset, data, n,
                           reterr);
    else
        memcpy((char *)address_of(buffer) + offset, data, n);
    end_io(buffer, away);
    return r;
}

/* ---- what is asked of it ---- */

uint64_t pl_buffer_in_page(const pl_buffer *buffer, uint64_t offset)
{
    return (buffer->chunk->copy.offset + buffer->place.offset + offset) % PL_FILE_DIRECT_BYTES;
}

uint64_t pl_buffer_bytes(const pl_buffer *buffer)
{
    return buffer->bytes;
}

const char *pl_buffer_what(const pl_buffer *buffer)
{
    return buffer->what;
}

uint64_t pl_buffer_pin_cost_bytes(pl_buffer *buffer)
{
    if (pl_pool_is_inherited(buffer->pool))
        return 0;
    pthread_mutex_lock(&buffer->pool->mu);
    bool resident = pl_chunk_is_resident(buffer->chunk);
    pthread_mutex_unlock(&buffer->pool->mu);
    return resident ? 0 : pl_memory_cost_bytes(buffer->chunk->bytes);
}

static void move_out(pl_buffer *buffer, bool only_clean)
{
    uint64_t gone;
    pl_pool *pool = buffer->pool;
    if (pl_pool_is_inherited(pool))
        return;
    pthread_mutex_lock(&pool->mu);
    if (buffer->chunk->idle && (!only_clean || pl_chunk_is_clean(buffer->chunk)))
        (void)!pl_chunk_move_out(pool, buffer->chunk, &gone, NULL); /* what is clean can leave */
    pthread_mutex_unlock(&pool->mu);
}

void pl_buffer_leave(pl_buffer *buffer)
{
    move_out(buffer, true);
}

void pl_buffer_move_out(pl_buffer *buffer)
{
    move_out(buffer, false);
}

const void *pl_buffer_holder(const pl_buffer *buffer, uint64_t *ret_bytes)
{
    *ret_bytes = pl_memory_cost_bytes(buffer->chunk->bytes);
    return buffer->chunk;
}
