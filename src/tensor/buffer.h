/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: the bytes of tensors, wherever they are.
 *   resident  in memory, inside a claim
 *   spilled   in the pool's spill file
 *   window    in a user's file, read only: never copied whole unless it is pinned; it can come into
 *             memory and be dropped again, and the file is never written
 *   borrowed  in the caller's memory, with a callback for when it is no longer needed: always
 *             resident, not charged to the account, not written
 *   pinned    its address is in use: it stays resident
 *   idle      resident and not pinned: evicted when room is needed, least recently used first
 *   pool      all buffers of one memory, with one spill file
 *
 * A value is never lost: it leaves memory only after its bytes are in the spill file (the write has
 * returned), and if a write fails the buffer stays resident. The copy in the file stays valid until
 * the buffer is pinned for writing, so read-only data is written once. The file of a window is the
 * user's: if it is truncated or cannot be read, that is an error, not a signal.
 *
 * Small buffers share slabs, which are moved as one: while one is pinned, so is its slab. To look
 * at a small one that is spilled, pl_buffer_read() is cheaper.
 *
 * A writer must be the only user of its buffer (because it is new, or nobody else has it): pool and
 * evictor stay out of the way, other users are the caller's responsibility. Otherwise everything is
 * safe from any thread. A pool belongs to the process that made it: a forked child can release its
 * buffers, and everything else is refused (-ECHILD), because the spill file is the parent's. */
#ifndef PL_TENSOR_BUFFER_H
#define PL_TENSOR_BUFFER_H

#include "base/stop.h"
#include "sys/file.h"
#include "tensor/memory.h"
#include "tensor/spill.h"

typedef struct pl_pool pl_pool;
typedef struct pl_buffer pl_buffer;

typedef struct pl_pool_options {
    const char *spill_directory; /* NULL: see tensor/spill.h */
    uint64_t spill_limit_bytes;  /* 0: the free disk space */
} pl_pool_options;

/* `options` may be NULL. The pool is the memory's evictor, and keeps it alive. */
PL_MUST_CHECK int pl_pool_new(pl_memory *memory, const pl_pool_options *options, pl_pool **ret_pool,
                              pl_error *reterr);

/* Releases a reference; buffers hold references too. NULL is allowed. */
void pl_pool_unref(pl_pool *pool);

/* Returns the most that slabs take for buffers that cost `bytes` together, each at most
 * `small_bytes`: a slab with less than that left may accept no more. */
static inline uint64_t pl_slabs_bytes(uint64_t slab_bytes, uint64_t small_bytes, uint64_t bytes)
{
    uint64_t used = pl_sub_sat_u64(slab_bytes, small_bytes);
    return bytes > 0 && used > 0 ? (1 + bytes / used) * slab_bytes : 0;
}

/* Returns the most that a new value claims: a small one may need a slab. */
uint64_t pl_buffer_new_cost_bytes(const pl_pool *pool, uint64_t bytes);

/* Makes a buffer that is resident, not zeroed, and pinned by the caller for writing. */
PL_MUST_CHECK int pl_buffer_new(pl_pool *pool, uint64_t bytes, const char *what,
                                pl_buffer **ret_buffer, void **ret_data, pl_error *reterr);

/* Makes a buffer that never needs to fit in memory: its place in the spill file is reserved, to be
 * written piece by piece with pl_buffer_write(). Not for 0 bytes. */
PL_MUST_CHECK int pl_buffer_new_spilled(pl_pool *pool, uint64_t bytes, const char *what,
                                        pl_buffer **ret_buffer, pl_error *reterr);

/* Makes a window on bytes [offset, offset + bytes) of a regular file. PL_ECORRUPT if it ends before
 * that. */
PL_MUST_CHECK int pl_buffer_open_window(pl_pool *pool, const char *path, uint64_t offset,
                                        uint64_t bytes, const char *what, pl_buffer **ret_buffer,
                                        pl_error *reterr);

/* Wraps memory without copying it. `release` is called without any lock when the buffer is gone; it
 * is not called if this fails. */
PL_MUST_CHECK int pl_buffer_borrow(pl_pool *pool, const void *data, uint64_t bytes,
                                   void (*release)(void *context), void *context, const char *what,
                                   pl_buffer **ret_buffer, pl_error *reterr);

pl_buffer *pl_buffer_ref(pl_buffer *buffer);

/* Releases a reference. The last one frees memory and disk at once; the buffer must not be pinned
 * then. NULL is allowed. */
void pl_buffer_unref(pl_buffer *buffer);

enum pl_pin {
    PL_PIN_READ,
    PL_PIN_WRITE, /* -EROFS for a window or borrowed memory */
};

/* Brings the buffer into memory, where it stays until every pin is undone; others may be evicted
 * for it. The address is valid until then. PL_EBUDGET without room; errors of reading. */
PL_MUST_CHECK int pl_buffer_pin(pl_buffer *buffer, enum pl_pin access, void **ret_data,
                                pl_error *reterr);

/* Pins for reading only; calls the hook between pieces of a large one: -ECANCELED. */
PL_MUST_CHECK int pl_buffer_pin_unless(pl_buffer *buffer, pl_stop stop, void **ret_data,
                                       pl_error *reterr);
void pl_buffer_unpin(pl_buffer *buffer);

/* Copies [offset, offset + n) to or from the buffer, without making it resident. */
PL_MUST_CHECK int pl_buffer_read(pl_buffer *buffer, uint64_t offset, void *data, size_t n,
                                 pl_error *reterr);
/* Rows of one length: row i is rows[i] * stride bytes behind the offset. */
typedef struct pl_buffer_rows {
    int64_t offset, stride;
    size_t row_bytes;
    const int64_t *rows;
    int64_t n;
} pl_buffer_rows;

/* Copies them one after the other to `data`, without making the buffer resident. */
PL_MUST_CHECK int pl_buffer_read_rows(pl_buffer *buffer, const pl_buffer_rows *rows, void *data,
                                      pl_error *reterr);

/* Like pl_buffer_read(), to an address inside `room`, which has PL_BUFFER_AROUND_BYTES more; past
 * the page cache if possible. *ret_data is the address. */
#define PL_BUFFER_AROUND_BYTES PL_FILE_AROUND_BYTES
PL_MUST_CHECK int pl_buffer_read_around(pl_buffer *buffer, uint64_t offset, void *room, size_t n,
                                        void **ret_data, pl_error *reterr);

PL_MUST_CHECK int pl_buffer_write(pl_buffer *buffer, uint64_t offset, const void *data, size_t n,
                                  pl_error *reterr);

/* Returns where in its page of the file a byte of a spilled buffer is: data with the same alignment
 * in memory is written past the page cache. */
uint64_t pl_buffer_in_page(const pl_buffer *buffer, uint64_t offset);

/* Gives the place of the buffer in a file, to be read with the caller's own calls, or written by
 * the caller that made it spilled: it stays there until pl_buffer_end_file(). False if it is in
 * memory; then there is nothing to end. */
PL_MUST_CHECK bool pl_buffer_begin_file(pl_buffer *buffer, int *ret_fd, uint64_t *ret_offset);
void pl_buffer_end_file(pl_buffer *buffer);

uint64_t pl_buffer_bytes(const pl_buffer *buffer);
const char *pl_buffer_what(const pl_buffer *buffer);
const char *pl_buffer_path(const pl_buffer *buffer); /* of a window's file; NULL: not a window */

/* Returns what a pin would claim now: 0 if it is resident; for a small one the cost of its slab. */
uint64_t pl_buffer_pin_cost_bytes(pl_buffer *buffer);

/* Frees its memory at once if it is not pinned and nothing needs to be written. */
void pl_buffer_leave(pl_buffer *buffer);

/* Frees its memory, writing to the spill file if necessary. If that fails it stays. */
void pl_buffer_move_out(pl_buffer *buffer);

/* Identifies what is in memory with it while it is pinned: buffers of one holder are pinned
 * together. *ret_bytes is the cost of the holder. Only for comparison. */
const void *pl_buffer_holder(const pl_buffer *buffer, uint64_t *ret_bytes);

/* Evicts idle buffers until `bytes` are freed. Returns how many were: see pl_memory_evict. */
uint64_t pl_pool_evict(pl_pool *pool, uint64_t bytes, pl_error *reterr);

enum pl_where { PL_RESIDENT, PL_SPILLED, PL_WINDOW };

typedef struct pl_buffer_info {
    const char *what;
    uint64_t bytes;
    enum pl_where where; /* a window that is pinned or idle is PL_RESIDENT */
    bool pinned;         /* itself, or a buffer that shares its slab */
} pl_buffer_info;

/* Returns the current state. Not in a forked child. */
pl_buffer_info pl_buffer_look(pl_buffer *buffer);

/* Calls `visit` for every live buffer, newest first, with the pool locked: it must not call the
 * pool. A negative result ends the walk and is returned. */
PL_MUST_CHECK int
pl_pool_list(pl_pool *pool, int (*visit)(void *context, const pl_buffer_info *info), void *context);

typedef struct pl_pool_state {
    uint64_t n_buffers;
    uint64_t resident_bytes; /* cost in memory; slabs count whole */
    uint64_t idle_bytes;     /* the part of it that eviction could free */
    uint64_t spilled_bytes;  /* in the spill file, including copies of resident buffers */
    pl_spill_room room;      /* room left for spilling */
    uint64_t n_out, n_in;    /* moves to the spill file, and from it or from windows, in total */
    uint64_t out_bytes, in_bytes;
} pl_pool_state;

/* The same number alone, for frequent callers. */
uint64_t pl_pool_idle_bytes(pl_pool *pool);

void pl_pool_state_read(pl_pool *pool, pl_pool_state *ret_state);

/* Checks every invariant. Returns 0, or PL_ECORRUPT with the first one broken. */
PL_MUST_CHECK int pl_pool_check(pl_pool *pool, pl_error *reterr);

#endif
