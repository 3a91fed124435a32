/* SPDX-License-Identifier: Apache-2.0 */
/* See buffer.h. New ones are made in buffer_new.c; moves are in chunk.c, eviction is in pool.c. */
#include "tensor/buffer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sys/file.h"
#include "tensor/pool.h"

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
    pl_pool_lock(pool);
    pl_pool_remove_buffer(pool, buffer);
    if (chunk->is_slab)
        pl_extents_give(&chunk->places, buffer->place);
    if (--chunk->n_buffers == 0) {
        chunk->n_pins -= chunk->release != NULL;
        pl_chunk_end(pool, chunk);
    }
    pl_pool_unlock(pool);
    pl_buffer_drop(buffer);
}

/* ---- use ---- */

static int refuse_writing(const pl_buffer *buffer, pl_error *reterr)
{
    if (buffer->chunk->release)
        return pl_error_set(reterr, -EROFS, "'%s' is borrowed memory, which is read-only",
                            buffer->what);
    if (buffer->chunk->window.fd >= 0)
        return pl_error_set(reterr, -EROFS, "'%s' is the file '%s', which is opened read-only",
                            buffer->what, buffer->chunk->window.path);
    return 0;
}

static int pin(pl_buffer *buffer, enum pl_pin access, pl_stop stop, void **ret_data,
               pl_error *reterr)
{
    pl_pool *pool = buffer->pool;
    int r = pl_pool_enter(pool, reterr);
    if (r < 0)
        return r;
    if (access == PL_PIN_WRITE)
        r = refuse_writing(buffer, reterr);
    if (r < 0)
        return r;
    pl_pool_lock(pool);
    r = pl_chunk_pin(pool, buffer->chunk, access, stop, buffer->what, reterr);
    if (r == 0)
        *ret_data = pl_buffer_address(buffer);
    pl_pool_unlock(pool);
    return r;
}

int pl_buffer_pin(pl_buffer *buffer, enum pl_pin access, void **ret_data, pl_error *reterr)
{
    return pin(buffer, access, (pl_stop){0}, ret_data, reterr);
}

int pl_buffer_pin_unless(pl_buffer *buffer, pl_stop stop, void **ret_data, pl_error *reterr)
{
    return pin(buffer, PL_PIN_READ, stop, ret_data, reterr);
}

void pl_buffer_unpin(pl_buffer *buffer)
{
    pl_pool *pool = buffer->pool;
    if (pl_pool_is_inherited(pool))
        return;
    pl_pool_lock(pool);
    pl_chunk_unpin(pool, buffer->chunk);
    pl_pool_unlock(pool);
}

/* Returns whether the buffer is used where it is, outside memory. Its copy or window then stays
 * until end_io(). Otherwise it is resident, and pinned. */
static int begin_io(pl_buffer *buffer, enum pl_pin access, bool *ret_away, pl_error *reterr)
{
    pl_pool *pool = buffer->pool;
    pl_chunk *chunk = buffer->chunk;
    int r = 0;
    pl_pool_lock(pool);
    while (chunk->arriving)
        pl_pool_wait(pool);
    *ret_away = !pl_chunk_is_resident(chunk) && !(chunk->is_slab && access == PL_PIN_WRITE);
    if (*ret_away)
        chunk->n_io++;
    else
        r = pl_chunk_pin(pool, chunk, access, (pl_stop){0}, buffer->what, reterr);
    pl_pool_unlock(pool);
    return r;
}

static void end_io(pl_buffer *buffer, bool away)
{
    pl_pool *pool = buffer->pool;
    pl_pool_lock(pool);
    if (!away)
        pl_chunk_unpin(pool, buffer->chunk);
    else if (--buffer->chunk->n_io == 0)
        pl_pool_tell(pool);
    pl_pool_unlock(pool);
}

static int check_range(const pl_buffer *buffer, uint64_t offset, size_t n, pl_error *reterr)
{
    if (offset <= buffer->bytes && n <= buffer->bytes - offset)
        return pl_pool_enter(buffer->pool, reterr);
    return pl_error_set(reterr, -EINVAL,
                        "%zu bytes at %" PRIu64 " are outside the %" PRIu64 " bytes of '%s'", n,
                        offset, buffer->bytes, buffer->what);
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
        memcpy(data, (const char *)pl_buffer_address(buffer) + offset, n);
    end_io(buffer, away);
    return r;
}

static int check_rows(const pl_buffer *buffer, const pl_buffer_rows *rows, pl_error *reterr)
{
    for (int64_t i = 0; i < rows->n; i++) {
        int r = check_range(buffer, (uint64_t)(rows->offset + rows->rows[i] * rows->stride),
                            rows->row_bytes, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

int pl_buffer_read_rows(pl_buffer *buffer, const pl_buffer_rows *rows, void *data, pl_error *reterr)
{
    bool away = false;
    int64_t n_read = 0;
    int r = check_rows(buffer, rows, reterr);
    if (r == 0)
        r = begin_io(buffer, PL_PIN_READ, &away, reterr);
    if (r < 0)
        return r;
    if (away && buffer->chunk->window.fd >= 0)
        n_read = pl_window_read_rows(buffer->pool->memory, &buffer->chunk->window, buffer->bytes,
                                     rows, data);
    char *to = (char *)data + (uint64_t)n_read * rows->row_bytes;
    for (int64_t i = n_read; r == 0 && i < rows->n; i++, to += rows->row_bytes) {
        uint64_t offset = (uint64_t)(rows->offset + rows->rows[i] * rows->stride);
        if (away)
            r = pl_chunk_read_away(buffer->pool, buffer->chunk, buffer->place.offset + offset, to,
                                   rows->row_bytes, reterr);
        else
            memcpy(to, (const char *)pl_buffer_address(buffer) + offset, rows->row_bytes);
    }
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
        memcpy(room, (const char *)pl_buffer_address(buffer) + offset, n);
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
    if (r == 0)
        r = refuse_writing(buffer, reterr);
    if (r == 0)
        r = begin_io(buffer, PL_PIN_WRITE, &away, reterr);
    if (r < 0)
        return r;
    if (away)
        r = pl_spill_write(buffer->pool->spill, buffer->chunk->copy.offset + offset, data, n,
                           reterr);
    else
        memcpy((char *)pl_buffer_address(buffer) + offset, data, n);
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

const char *pl_buffer_path(const pl_buffer *buffer)
{
    return buffer->chunk->window.path;
}

uint64_t pl_buffer_pin_cost_bytes(pl_buffer *buffer)
{
    if (pl_pool_is_inherited(buffer->pool))
        return 0;
    pl_pool_lock(buffer->pool);
    bool resident = pl_chunk_is_resident(buffer->chunk);
    pl_pool_unlock(buffer->pool);
    return resident ? 0 : pl_memory_cost_bytes(buffer->chunk->bytes);
}

static void move_out(pl_buffer *buffer, bool only_clean)
{
    uint64_t gone;
    pl_pool *pool = buffer->pool;
    if (pl_pool_is_inherited(pool))
        return;
    pl_pool_lock(pool);
    if (buffer->chunk->idle && (!only_clean || pl_chunk_is_clean(buffer->chunk)))
        (void)!pl_chunk_move_out(pool, buffer->chunk, &gone,
                                 NULL); /* a clean buffer can be dropped */
    pl_pool_unlock(pool);
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
