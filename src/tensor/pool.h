/* SPDX-License-Identifier: Apache-2.0 */
/* The pool from inside: buffer.c knows buffers, chunk.c moves chunks, pool.c keeps and evicts them.
 *   chunk  bytes that are moved as one: a large buffer's, or a slab that small ones share
 *   copy   the chunk's place in the spill file, while what is there is what the chunk holds
 *   io     somebody reads from, or writes to, the copy or the window, without the lock
 *
 * Where a chunk is:
 *
 *                      leaving: being written          arriving: being read
 *   new -> resident ------------------------> away ------------------------> resident
 *
 *   - resident: block.data is not NULL; away: there is a copy or a window;
 *   - borrowed memory is resident, and pinned by the pool as long as it lives;
 *   - in the idle list: resident, no pins, neither leaving nor arriving;
 *   - a chunk that is leaving can be pinned for reading: it then stays, with a good copy;
 *   - a copy is dropped before the resident bytes are written to, with no io in progress;
 *   - a dead chunk (its last buffer is gone) is freed by the thread that moves it, else at once.
 *
 * One lock, held for a few loads and stores: never during I/O, nor while memory is taken or given.
 */
#ifndef PL_TENSOR_POOL_H
#define PL_TENSOR_POOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "tensor/buffer.h"
#include "tensor/spill.h"
#include "util/links.h"

/* The largest part of a slab that a small buffer may take, so that little is lost at a slab's end.
 */
#define PL_POOL_SMALL_SHARE 16

typedef struct pl_window_map pl_window_map; /* window_rows.c's */

typedef struct pl_window {
    int fd;             /* -1: not a window */
    _Atomic int direct; /* opened for direct access on demand; -1: not yet, -2: not possible */
    uint64_t offset;
    char *path;
    _Atomic(pl_window_map *) map; /* made on demand; NULL: not yet */
} pl_window;

typedef struct pl_chunk {
    uint64_t bytes;                 /* constant */
    pl_window window;               /* constant */
    void (*release)(void *context); /* for borrowed memory; constant, as is the context */
    void *release_context;
    pl_block block; /* guarded by the lock, as is all that follows */
    pl_extent copy; /* bytes 0: there is none */
    int n_pins;
    int n_io;
    uint32_t n_buffers;
    bool is_slab;
    bool arriving, leaving, dead, idle;
    pl_extents places;                           /* of a slab's buffers */
    struct pl_chunk *idle_before, *idle_after;   /* least recently used first */
    struct pl_chunk *chunk_before, *chunk_after; /* large ones, or slabs */
} pl_chunk;

struct pl_pool {
    _Atomic int n_refs;
    pl_memory *memory; /* constant, as is all down to generation */
    pl_spill *spill;
    uint64_t slab_bytes;
    pl_links *tensors;    /* that are live: see tensor.h */
    uint32_t generation;  /* of the process that made it */
    pthread_mutex_t mu;   /* leaf lock */
    pthread_cond_t moved; /* mu; a chunk has moved, or its last io ended */
    int n_waiting;        /* mu, as is all that follows */
    int n_leaving;
    uint64_t evicted_bytes; /* total freed by moves */
    pl_chunk *first_idle, *last_idle;
    uint64_t idle_bytes; /* what these cost of the memory */
    pl_chunk *first_large;
    pl_chunk *first_slab;
    pl_buffer *first_buffer;
    uint64_t n_buffers;
    uint64_t n_out, n_in, out_bytes, in_bytes;
};

struct pl_buffer {
    _Atomic int n_refs;
    pl_pool *pool; /* constant, as are bytes, chunk, place and what */
    uint64_t bytes;
    pl_chunk *chunk;
    pl_extent place;           /* in its slab; of a large one all zero */
    pl_buffer *before, *after; /* the pool's lock */
    char what[];
};

/* Returns the address of a pinned buffer. */
static inline void *pl_buffer_address(const pl_buffer *buffer)
{
    return (char *)buffer->chunk->block.data + buffer->place.offset;
}

/* Frees a buffer that has no chunk, or whose chunk no longer knows it: buffer_new.c. NULL is
 * allowed. */
void pl_buffer_drop(pl_buffer *buffer);

static inline void pl_pool_lock(pl_pool *pool)
{
    pl_memory_hold(pool->memory, 1);
    pthread_mutex_lock(&pool->mu);
}

static inline void pl_pool_unlock(pl_pool *pool)
{
    pthread_mutex_unlock(&pool->mu);
    pl_memory_hold(pool->memory, -1);
}

/* ---- pool.c ---- */

/* -ECHILD in a forked child. */
PL_MUST_CHECK int pl_pool_enter(pl_pool *pool, pl_error *reterr);
bool pl_pool_is_inherited(const pl_pool *pool);

/* Waits, with the lock held, until a chunk has moved; or wakes the waiters. */
void pl_pool_wait(pl_pool *pool);
void pl_pool_tell(pl_pool *pool);

/* Links and unlinks, with the lock held. */
void pl_pool_add_chunk(pl_pool *pool, pl_chunk *chunk);
void pl_pool_remove_chunk(pl_pool *pool, pl_chunk *chunk);
void pl_pool_add_buffer(pl_pool *pool, pl_buffer *buffer);
void pl_pool_remove_buffer(pl_pool *pool, pl_buffer *buffer);
void pl_pool_add_idle(pl_pool *pool, pl_chunk *chunk);
void pl_pool_remove_idle(pl_pool *pool, pl_chunk *chunk);

/* ---- chunk.c ---- */

/* Makes a chunk that is not linked yet; a slab has its list of places. -ENOMEM. */
PL_MUST_CHECK int pl_chunk_new(uint64_t bytes, bool is_slab, pl_chunk **ret_chunk);

/* Frees everything it has, without the lock; it is not linked. */
void pl_chunk_free(pl_pool *pool, pl_chunk *chunk);

/* Reserves a place in the spill file, giving up copies of resident chunks if necessary; no lock
 * held. */
PL_MUST_CHECK int pl_chunk_reserve_copy(pl_pool *pool, uint64_t bytes, pl_extent *ret_copy,
                                        pl_error *reterr);

/* These are called with the lock held, and give it up for as long as bytes move. */
PL_MUST_CHECK int pl_chunk_pin(pl_pool *pool, pl_chunk *chunk, enum pl_pin access, pl_stop stop,
                               const char *what, pl_error *reterr);
void pl_chunk_unpin(pl_pool *pool, pl_chunk *chunk);

/* Moves an idle chunk out. *ret_bytes is what was freed: 0 if it was wanted in the meantime. On
 * failure it is idle again. */
PL_MUST_CHECK int pl_chunk_move_out(pl_pool *pool, pl_chunk *chunk, uint64_t *ret_bytes,
                                    pl_error *reterr);

/* Ends a chunk whose last buffer is gone. */
void pl_chunk_end(pl_pool *pool, pl_chunk *chunk);

static inline bool pl_chunk_is_resident(const pl_chunk *chunk)
{
    return chunk->block.data != NULL;
}

/* Returns whether it can leave without a write. */
static inline bool pl_chunk_is_clean(const pl_chunk *chunk)
{
    return chunk->copy.bytes > 0 || chunk->window.fd >= 0;
}

/* Returns the next of all chunks, with the lock held; after NULL the first. */
static inline pl_chunk *pl_pool_next_chunk(const pl_pool *pool, const pl_chunk *chunk)
{
    if (!chunk)
        return pool->first_large ? pool->first_large : pool->first_slab;
    return chunk->chunk_after || chunk->is_slab ? chunk->chunk_after : pool->first_slab;
}

/* Reads bytes of a chunk that is away, from its copy or window; no lock held, io counted. */
PL_MUST_CHECK int pl_chunk_read_away(pl_pool *pool, const pl_chunk *chunk, uint64_t offset,
                                     void *data, size_t n, pl_error *reterr);
PL_MUST_CHECK int pl_chunk_read_around(pl_pool *pool, pl_chunk *chunk, uint64_t offset, void *room,
                                       size_t n, void **ret_data, pl_error *reterr);

/* ---- window_rows.c ---- */

/* Reads rows inside the window with few system calls, as far as possible. Returns how many were
 * read, from the first on; the others, and errors, are left to pl_chunk_read_away(). */
PL_MUST_CHECK int64_t pl_window_read_rows(pl_memory *memory, pl_window *window,
                                          uint64_t window_bytes, const pl_buffer_rows *rows,
                                          char *to);
void pl_window_unmap(pl_memory *memory, pl_window *window);

#endif
