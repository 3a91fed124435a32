/* SPDX-License-Identifier: Apache-2.0 */
/* See buffer.h and pool.h: the pool itself, and who has to leave. */
#include "tensor/pool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "util/fork.h"

/* A slab is a 64th of the line, so that a half-empty one does no harm: 1 MiB for lines from 64 MiB
 * on, and at least what a page-aligned block takes. */
static uint64_t choose_slab_bytes(uint64_t limit_bytes)
{
    uint64_t bytes = PL_MEMORY_PAGED_BYTES;
    while (bytes < PL_MIB && bytes * 2 <= limit_bytes / 64)
        bytes *= 2;
    return bytes;
}

static uint64_t evict_for(void *context, uint64_t bytes, pl_error *reterr)
{
    return pl_pool_evict(context, bytes, reterr);
}

int pl_pool_new(pl_memory *memory, const pl_pool_options *options, pl_pool **ret_pool,
                pl_error *reterr)
{
    const pl_pool_options defaults = {0};
    if (!options)
        options = &defaults;
    pl_pool *pool = calloc(1, sizeof *pool);
    if (!pool || pl_fork_watch() < 0) {
        free(pool);
        return pl_error_set(reterr, -ENOMEM, "no memory for a pool of tensors");
    }
    pool->tensors = pl_links_new();
    int r = pool->tensors ? pl_spill_new(options->spill_directory, options->spill_limit_bytes,
                                         &pool->spill, reterr)
                          : pl_error_set(reterr, -ENOMEM, "no memory for a pool of tensors");
    if (r < 0) {
        pl_links_free(pool->tensors);
        free(pool);
        return r;
    }
    atomic_store(&pool->n_refs, 1);
    pool->memory = pl_memory_ref(memory);
    pool->slab_bytes = choose_slab_bytes(pl_memory_limit_bytes(memory));
    pool->generation = pl_fork_generation();
    pthread_mutex_init(&pool->mu, NULL);
    pthread_cond_init(&pool->moved, NULL);
    pl_memory_set_evictor(memory, evict_for, pool);
    *ret_pool = pool;
    return 0;
}

bool pl_pool_is_inherited(const pl_pool *pool)
{
    return pool->generation != pl_fork_generation();
}

/* A forked child frees nothing: its locks may be held by threads that it does not have, and its
 * memory ends with it. */
void pl_pool_unref(pl_pool *pool)
{
    if (!pool || pl_pool_is_inherited(pool) || atomic_fetch_sub(&pool->n_refs, 1) > 1)
        return;
    pl_memory_set_evictor(pool->memory, NULL, NULL);
    pl_spill_free(pool->spill);
    pl_links_free(pool->tensors);
    pl_memory_unref(pool->memory);
    pthread_cond_destroy(&pool->moved);
    pthread_mutex_destroy(&pool->mu);
    free(pool);
}

int pl_pool_enter(pl_pool *pool, pl_error *reterr)
{
    if (!pl_pool_is_inherited(pool))
        return 0;
    return pl_error_set(reterr, -ECHILD,
                        "this tensor belongs to the process that forked this one: make tensors and "
                        "sessions after the fork");
}

void pl_pool_wait(pl_pool *pool)
{
    pool->n_waiting++;
    pthread_cond_wait(&pool->moved, &pool->mu);
    pool->n_waiting--;
}

void pl_pool_tell(pl_pool *pool)
{
    if (pool->n_waiting)
        pthread_cond_broadcast(&pool->moved);
}

/* ---- lists ---- */

static pl_chunk **list_of(pl_pool *pool, const pl_chunk *chunk)
{
    return chunk->is_slab ? &pool->first_slab : &pool->first_large;
}

void pl_pool_add_chunk(pl_pool *pool, pl_chunk *chunk)
{
    pl_chunk **first = list_of(pool, chunk);
    chunk->chunk_after = *first;
    if (chunk->chunk_after)
        chunk->chunk_after->chunk_before = chunk;
    *first = chunk;
}

void pl_pool_remove_chunk(pl_pool *pool, pl_chunk *chunk)
{
    if (chunk->idle)
        pl_pool_remove_idle(pool, chunk);
    if (chunk->chunk_before)
        chunk->chunk_before->chunk_after = chunk->chunk_after;
    else
        *list_of(pool, chunk) = chunk->chunk_after;
    if (chunk->chunk_after)
        chunk->chunk_after->chunk_before = chunk->chunk_before;
}

void pl_pool_add_buffer(pl_pool *pool, pl_buffer *buffer)
{
    buffer->after = pool->first_buffer;
    if (buffer->after)
        buffer->after->before = buffer;
    pool->first_buffer = buffer;
    pool->n_buffers++;
}

void pl_pool_remove_buffer(pl_pool *pool, pl_buffer *buffer)
{
    if (buffer->before)
        buffer->before->after = buffer->after;
    else
        pool->first_buffer = buffer->after;
    if (buffer->after)
        buffer->after->before = buffer->before;
    pool->n_buffers--;
}

void pl_pool_add_idle(pl_pool *pool, pl_chunk *chunk)
{
    chunk->idle_before = pool->last_idle;
    chunk->idle_after = NULL;
    if (pool->last_idle)
        pool->last_idle->idle_after = chunk;
    else
        pool->first_idle = chunk;
    pool->last_idle = chunk;
    pool->idle_bytes += pl_memory_cost_bytes(chunk->bytes);
    pl_memory_add_idle(pool->memory, (int64_t)pl_memory_cost_bytes(chunk->bytes));
    chunk->idle = true;
}

void pl_pool_remove_idle(pl_pool *pool, pl_chunk *chunk)
{
    if (chunk->idle_before)
        chunk->idle_before->idle_after = chunk->idle_after;
    else
        pool->first_idle = chunk->idle_after;
    if (chunk->idle_after)
        chunk->idle_after->idle_before = chunk->idle_before;
    else
        pool->last_idle = chunk->idle_before;
    pool->idle_bytes -= pl_memory_cost_bytes(chunk->bytes);
    pl_memory_add_idle(pool->memory, -(int64_t)pl_memory_cost_bytes(chunk->bytes));
    chunk->idle = false;
}

/* ---- eviction ---- */

static pl_chunk *find_victim(pl_pool *pool, bool only_clean)
{
    pl_chunk *chunk = pool->first_idle;
    while (chunk && only_clean && !pl_chunk_is_clean(chunk))
        chunk = chunk->idle_after;
    return chunk;
}

/* Bytes that others are moving out count too, when nothing is left to move. */
static uint64_t wait_for_others(pl_pool *pool)
{
    uint64_t before = pool->evicted_bytes;
    while (pool->n_leaving > 0 && pool->evicted_bytes == before)
        pl_pool_wait(pool);
    return pool->evicted_bytes - before;
}

/* When the spill file is full, chunks that need no write can still go. */
static uint64_t evict(pl_pool *pool, uint64_t bytes, pl_error *reterr)
{
    uint64_t freed = 0;
    bool only_clean = false;
    while (freed < bytes) {
        pl_chunk *victim = find_victim(pool, only_clean);
        if (!victim && freed == 0 && pool->n_leaving > 0) {
            freed = wait_for_others(pool);
            continue;
        }
        if (!victim)
            break;
        uint64_t gone;
        if (pl_chunk_move_out(pool, victim, &gone, reterr) < 0)
            only_clean = true;
        freed += gone;
    }
    return freed;
}

uint64_t pl_pool_evict(pl_pool *pool, uint64_t bytes, pl_error *reterr)
{
    if (pl_pool_is_inherited(pool))
        return 0;
    pl_pool_lock(pool);
    uint64_t freed = evict(pool, bytes, reterr);
    pl_pool_unlock(pool);
    return freed;
}

/* ---- what is asked of it ---- */

static enum pl_where where_is(const pl_chunk *chunk)
{
    if (pl_chunk_is_resident(chunk))
        return PL_RESIDENT;
    return chunk->window.fd >= 0 ? PL_WINDOW : PL_SPILLED;
}

static pl_buffer_info info_of(const pl_buffer *buffer)
{
    return (pl_buffer_info){
        .what = buffer->what,
        .bytes = buffer->bytes,
        .where = where_is(buffer->chunk),
        .pinned = buffer->chunk->n_pins > 0,
    };
}

pl_buffer_info pl_buffer_look(pl_buffer *buffer)
{
    pl_pool_lock(buffer->pool);
    pl_buffer_info info = info_of(buffer);
    pl_pool_unlock(buffer->pool);
    return info;
}

int pl_pool_list(pl_pool *pool, int (*visit)(void *context, const pl_buffer_info *info),
                 void *context)
{
    int r = pl_pool_enter(pool, NULL);
    if (r < 0)
        return r;
    pl_pool_lock(pool);
    for (const pl_buffer *buffer = pool->first_buffer; buffer && r >= 0; buffer = buffer->after) {
        const pl_buffer_info info = info_of(buffer);
        r = visit(context, &info);
    }
    pl_pool_unlock(pool);
    return r < 0 ? r : 0;
}

uint64_t pl_pool_idle_bytes(pl_pool *pool)
{
    if (pl_pool_is_inherited(pool))
        return 0;
    pl_pool_lock(pool);
    uint64_t bytes = pool->idle_bytes;
    pl_pool_unlock(pool);
    return bytes;
}

void pl_pool_state_read(pl_pool *pool, pl_pool_state *ret_state)
{
    pl_pool_state state = {0};
    *ret_state = state;
    if (pl_pool_is_inherited(pool))
        return;
    pl_pool_lock(pool);
    const pl_chunk *chunk = NULL;
    while ((chunk = pl_pool_next_chunk(pool, chunk))) {
        uint64_t cost = pl_memory_cost_bytes(chunk->bytes);
        if (pl_chunk_is_resident(chunk))
            state.resident_bytes += cost;
    }
    state.idle_bytes = pool->idle_bytes;
    state.n_buffers = pool->n_buffers;
    state.n_out = pool->n_out;
    state.n_in = pool->n_in;
    state.out_bytes = pool->out_bytes;
    state.in_bytes = pool->in_bytes;
    pl_pool_unlock(pool);
    state.spilled_bytes = pl_spill_used_bytes(pool->spill);
    state.room = pl_spill_look_for_room(pool->spill);
    *ret_state = state;
}

static int check_chunk(const pl_chunk *chunk, pl_error *reterr)
{
    bool resident = pl_chunk_is_resident(chunk);
    const char *broken = NULL;
    if (!resident && !pl_chunk_is_clean(chunk) && !chunk->dead)
        broken = "is nowhere";
    else if (chunk->idle !=
                 (resident && chunk->n_pins == 0 && !chunk->leaving && !chunk->arriving) &&
             (chunk->idle || chunk->n_buffers == 0))
        broken = chunk->idle ? "is idle and should not be" : "has no buffer and is kept";
    else if (chunk->n_pins < 0 || chunk->n_io < 0)
        broken = "was let go of too often";
    else if (chunk->is_slab && chunk->places.n_taken != chunk->n_buffers)
        broken = "has other places taken than it has buffers";
    if (!broken)
        return 0;
    return pl_error_set(reterr, PL_ECORRUPT, "a chunk of %" PRIu64 " bytes %s", chunk->bytes,
                        broken);
}

int pl_pool_check(pl_pool *pool, pl_error *reterr)
{
    int r = pl_pool_enter(pool, reterr);
    if (r < 0)
        return r;
    uint64_t n_chunk_buffers = 0, idle_bytes = 0;
    pl_pool_lock(pool);
    const pl_chunk *chunk = NULL;
    while (r == 0 && (chunk = pl_pool_next_chunk(pool, chunk))) {
        n_chunk_buffers += chunk->n_buffers;
        r = check_chunk(chunk, reterr);
    }
    for (chunk = pool->first_idle; chunk && r == 0; chunk = chunk->idle_after) {
        idle_bytes += pl_memory_cost_bytes(chunk->bytes);
        if (!chunk->idle || (chunk->idle_after == NULL && chunk != pool->last_idle))
            r = pl_error_set(reterr, PL_ECORRUPT, "the list of idle chunks is corrupt");
    }
    if (r == 0 && idle_bytes != pool->idle_bytes)
        r = pl_error_set(reterr, PL_ECORRUPT,
                         "%" PRIu64 " bytes are idle, and %" PRIu64 " are counted", idle_bytes,
                         pool->idle_bytes);
    if (r == 0 && n_chunk_buffers != pool->n_buffers)
        r = pl_error_set(reterr, PL_ECORRUPT,
                         "%" PRIu64 " buffers, of which the chunks know %" PRIu64, pool->n_buffers,
                         n_chunk_buffers);
    pl_pool_unlock(pool);
    return r;
}
