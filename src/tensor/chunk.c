/* SPDX-License-Identifier: Apache-2.0 */
/* See pool.h: how chunks move. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "sys/file.h"
#include "tensor/pool.h"

int pl_chunk_new(uint64_t bytes, bool is_slab, pl_chunk **ret_chunk)
{
    pl_chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return -ENOMEM;
    chunk->bytes = bytes;
    chunk->window.fd = -1;
    chunk->window.direct = -1;
    chunk->is_slab = is_slab;
    pl_extents_init(&chunk->places, PL_MEMORY_ALIGN_BYTES);
    if (is_slab && pl_extents_grow(&chunk->places, bytes) < 0) {
        free(chunk);
        return -ENOMEM;
    }
    *ret_chunk = chunk;
    return 0;
}

/* Moving out takes the spill file's lock and allocates for its lists. */
static int reserve_place(pl_pool *pool, uint64_t bytes, pl_extent *ret_place, pl_error *reterr)
{
    pl_memory_hold(pool->memory, 1);
    int r = pl_spill_reserve(pool->spill, bytes, ret_place, reterr);
    pl_memory_hold(pool->memory, -1);
    return r;
}

static void release_place(pl_pool *pool, pl_extent place)
{
    pl_memory_hold(pool->memory, 1);
    pl_spill_release(pool->spill, place);
    pl_memory_hold(pool->memory, -1);
}

void pl_chunk_free(pl_pool *pool, pl_chunk *chunk)
{
    if (!chunk)
        return;
    if (chunk->release)
        chunk->release(chunk->release_context);
    else
        pl_memory_give(pool->memory, &chunk->block);
    if (chunk->copy.bytes)
        release_place(pool, chunk->copy);
    pl_window_unmap(pool->memory, &chunk->window);
    if (chunk->window.fd >= 0)
        close(chunk->window.fd);
    if (chunk->window.direct >= 0)
        close(chunk->window.direct);
    free(chunk->window.path);
    pl_extents_done(&chunk->places);
    free(chunk);
}

/* ---- in ---- */

static int window_error(const pl_window *window, int r, uint64_t at, size_t n, pl_error *reterr)
{
    if (r == PL_ECORRUPT)
        return pl_error_set(reterr, r,
                            "'%s' was truncated: it no longer has %zu bytes at %" PRIu64
                            ", which it had when it was opened",
                            window->path, n, at);
    if (r < 0)
        return pl_error_set(reterr, r, "cannot read %zu bytes at %" PRIu64 " of '%s': %s", n, at,
                            window->path, pl_error_text(r));
    return 0;
}

static int read_window(const pl_window *window, uint64_t offset, void *data, size_t n,
                       pl_error *reterr)
{
    uint64_t at = window->offset + offset;
    return window_error(window, pl_file_read(window->fd, data, n, at), at, n, reterr);
}

/* Opened by the first thread that wants it. */
static int direct_of(pl_window *window)
{
    int direct = window->direct;
    if (direct != -1)
        return direct;
    int opened = pl_file_open_direct(window->fd);
    if (opened < 0)
        opened = -2;
    if (atomic_compare_exchange_strong(&window->direct, &direct, opened))
        return opened;
    if (opened >= 0)
        close(opened);
    return direct;
}

int pl_chunk_read_around(pl_pool *pool, pl_chunk *chunk, uint64_t offset, void *room, size_t n,
                         void **ret_data, pl_error *reterr)
{
    pl_window *window = &chunk->window;
    if (window->fd < 0)
        return pl_spill_read_around(pool->spill, chunk->copy.offset + offset, room, n, ret_data,
                                    reterr);
    uint64_t at = window->offset + offset;
    int r = pl_file_read_around(window->fd, direct_of(window), room, n, at, ret_data);
    return window_error(window, r, at, n, reterr);
}

int pl_chunk_read_away(pl_pool *pool, const pl_chunk *chunk, uint64_t offset, void *data, size_t n,
                       pl_error *reterr)
{
    if (chunk->window.fd >= 0)
        return read_window(&chunk->window, offset, data, n, reterr);
    return pl_spill_read(pool->spill, chunk->copy.offset + offset, data, n, reterr);
}

/* The hooks for cancelling and progress are called between pieces of this size: a tenth of a second
 * on a slow disk. */
#define PIECE_BYTES (16 * PL_MIB)

static int read_unless(pl_pool *pool, const pl_chunk *chunk, pl_stop stop, char *to,
                       const char *what, pl_error *reterr)
{
    for (uint64_t at = 0; at < chunk->bytes; at += PIECE_BYTES) {
        if (pl_must_stop(stop))
            return pl_error_set(reterr, -ECANCELED, "making '%s' was cancelled", what);
        size_t n = (size_t)pl_min_u64(chunk->bytes - at, PIECE_BYTES);
        int r = pl_chunk_read_away(pool, chunk, at, to + at, n, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Takes memory, which can evict others, and reads. */
static int fetch(pl_pool *pool, const pl_chunk *chunk, pl_stop stop, const char *what,
                 pl_block *ret_block, pl_error *reterr)
{
    pl_block block;
    int r = pl_memory_take(pool->memory, chunk->bytes, what, &block, reterr);
    if (r < 0)
        return r;
    r = read_unless(pool, chunk, stop, block.data, what, reterr);
    if (r < 0)
        pl_memory_give(pool->memory, &block);
    else
        *ret_block = block;
    return r;
}

/* The chunk is then resident and not yet in the idle list: the caller pins it. */
static int move_in(pl_pool *pool, pl_chunk *chunk, pl_stop stop, const char *what, pl_error *reterr)
{
    pl_block block = {0};
    chunk->arriving = true;
    pl_pool_unlock(pool);
    int r = fetch(pool, chunk, stop, what, &block, reterr);
    pl_pool_lock(pool);
    chunk->arriving = false;
    if (r == 0) {
        chunk->block = block;
        pool->n_in++;
        pool->in_bytes += chunk->bytes;
    }
    pl_pool_tell(pool);
    return r;
}

/* A writer waits until nobody reads: neither the evictor nor a reader of the copy. */
static bool must_wait(const pl_chunk *chunk, enum pl_pin access)
{
    return chunk->arriving || (access == PL_PIN_WRITE && (chunk->leaving || chunk->n_io > 0));
}

static void drop_copy(pl_pool *pool, pl_chunk *chunk)
{
    pl_extent copy = chunk->copy;
    chunk->copy = (pl_extent){0};
    if (copy.bytes == 0)
        return;
    pl_pool_unlock(pool);
    release_place(pool, copy);
    pl_pool_lock(pool);
}

int pl_chunk_pin(pl_pool *pool, pl_chunk *chunk, enum pl_pin access, pl_stop stop, const char *what,
                 pl_error *reterr)
{
    for (;;) {
        if (must_wait(chunk, access)) {
            pl_pool_wait(pool);
            continue;
        }
        if (pl_chunk_is_resident(chunk))
            break;
        int r = move_in(pool, chunk, stop, what, reterr);
        if (r < 0)
            return r;
    }
    chunk->n_pins++;
    if (chunk->idle)
        pl_pool_remove_idle(pool, chunk);
    if (access == PL_PIN_WRITE)
        drop_copy(pool, chunk);
    return 0;
}

/* A chunk that is leaving is handled by the thread that moves it. */
void pl_chunk_unpin(pl_pool *pool, pl_chunk *chunk)
{
    assert(chunk->n_pins > 0);
    if (--chunk->n_pins == 0 && !chunk->leaving)
        pl_pool_add_idle(pool, chunk);
}

/* ---- out ---- */

/* Copies of resident chunks are only a convenience: gives one up for space in the file. */
static bool give_up_a_copy(pl_pool *pool)
{
    pl_pool_lock(pool);
    pl_chunk *chunk = NULL;
    while ((chunk = pl_pool_next_chunk(pool, chunk)))
        if (pl_chunk_is_resident(chunk) && chunk->copy.bytes && !chunk->leaving && chunk->n_io == 0)
            break;
    if (chunk)
        drop_copy(pool, chunk);
    pl_pool_unlock(pool);
    return chunk != NULL;
}

int pl_chunk_reserve_copy(pl_pool *pool, uint64_t bytes, pl_extent *ret_copy, pl_error *reterr)
{
    int r = reserve_place(pool, bytes, ret_copy, reterr);
    while (r == -ENOSPC && give_up_a_copy(pool))
        r = reserve_place(pool, bytes, ret_copy, reterr);
    return r;
}

/* The bytes cannot change: the chunk is leaving, and writers wait for it. */
static int write_copy(pl_pool *pool, const pl_chunk *chunk, pl_extent *ret_copy, pl_error *reterr)
{
    pl_extent copy;
    int r = pl_chunk_reserve_copy(pool, chunk->bytes, &copy, reterr);
    if (r < 0)
        return r;
    for (uint64_t at = 0; r == 0 && at < chunk->bytes; at += PIECE_BYTES) {
        size_t n = (size_t)pl_min_u64(chunk->bytes - at, PIECE_BYTES);
        r = pl_spill_write(pool->spill, copy.offset + at, (char *)chunk->block.data + at, n,
                           reterr);
        pl_memory_tell_progress(pool->memory);
    }
    if (r < 0)
        release_place(pool, copy);
    else
        *ret_copy = copy;
    return r;
}

/* Frees the chunk, or its memory, without the lock. n_leaving still counts it, so that nobody
 * considers the pool empty before the bytes are returned. */
static uint64_t give_back(pl_pool *pool, pl_chunk *chunk)
{
    uint64_t cost = pl_memory_cost_bytes(chunk->bytes);
    pl_chunk *dead = chunk->dead ? chunk : NULL;
    pl_block block = chunk->block;
    chunk->block = (pl_block){0};
    if (dead)
        pl_pool_remove_chunk(pool, dead);
    pl_pool_unlock(pool);
    pl_memory_give(pool->memory, &block);
    pl_chunk_free(pool, dead);
    pl_pool_lock(pool);
    pool->evicted_bytes += cost;
    return cost;
}

static int write_if_needed(pl_pool *pool, pl_chunk *chunk, pl_error *reterr)
{
    pl_extent copy;
    if (pl_chunk_is_clean(chunk))
        return 0;
    pl_pool_unlock(pool);
    int r = write_copy(pool, chunk, &copy, reterr);
    pl_pool_lock(pool);
    if (r < 0)
        return r;
    chunk->copy = copy;
    pool->n_out++;
    pool->out_bytes += chunk->bytes;
    return 0;
}

int pl_chunk_move_out(pl_pool *pool, pl_chunk *chunk, uint64_t *ret_bytes, pl_error *reterr)
{
    pl_pool_remove_idle(pool, chunk);
    chunk->leaving = true;
    pool->n_leaving++;
    int r = write_if_needed(pool, chunk, reterr);
    chunk->leaving = false;
    *ret_bytes = 0;
    if (chunk->dead || (r == 0 && chunk->n_pins == 0))
        *ret_bytes = give_back(pool, chunk);
    else if (chunk->n_pins == 0)
        pl_pool_add_idle(pool, chunk);
    pool->n_leaving--;
    pl_pool_tell(pool);
    return r;
}

void pl_chunk_end(pl_pool *pool, pl_chunk *chunk)
{
    assert(chunk->n_pins == 0 && chunk->n_io == 0 && !chunk->arriving);
    chunk->dead = true;
    if (chunk->leaving)
        return;
    pl_pool_remove_chunk(pool, chunk);
    pl_pool_unlock(pool);
    pl_chunk_free(pool, chunk);
    pl_pool_lock(pool);
}
