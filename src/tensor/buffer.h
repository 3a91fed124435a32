/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: the bytes of tensors, wherever they are.
 *   resident  in memory, inside of a claim
 *   spilled   in the pool's spill file
 *   window    in a user's file, read only: never copied whole, unless it is pinned; comes into
 *             memory and is dropped again, and the file is never written
 *   borrowed  memory of somebody else's, who is told when it is no longer needed: it is always
 *             resident, costs nothing of the account, and is not written
 *   pinned    somebody holds its address: it stays resident
 *   idle      resident and not pinned: evicted when room is needed, least recently used first
 *   pool      all buffers of one memory, with one spill file
 *
 * A value is never lost: it leaves memory only after its bytes are in the spill file (the write has
 * returned), and a write that fails leaves it where it is. Its copy in the file stays good until
 * somebody pins the buffer for writing, so what is only read is written out once. The file of a
 * window is the user's: if it is cut off or cannot be read, that is an error, not a signal.
 *
 * Small buffers share slabs, which are moved as one: while one is pinned, so is its slab. To look
 * at a small one that is spilled, pl_buffer_read() is cheaper.
 *
 * Whoever writes to a buffer is the only one to use it (it is new, or nobody else has it): pool and
 * evictor keep out of the way, other users are the caller's affair. Otherwise all is safe from any
 * thread. A pool belongs to the process that made it: in a forked child its buffers can be let go
 * of, and everything else is refused (-ECHILD), because the spill file is the parent's. */
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
    uint64_t spill_limit_bytes;  /* 0: what the disk has */
} pl_pool_options;

/* `options` may be NULL. The pool is the memory's evictor, and keeps it alive. */
PL_MUST_CHECK int pl_pool_new(pl_memory *memory, const pl_pool_options *options, pl_pool **ret_pool,
                              pl_error *reterr);

/* Buffers keep their pool alive as well. NULL is allowed. */
void pl_pool_unref(pl_pool *pool);

/* The most that slabs take whose buffers cost `bytes` together, and none of them more than
 * `small_bytes`: a slab that has less left than that may take no more. */
static inline uint64_t pl_slabs_bytes(uint64_t slab_bytes, uint64_t small_bytes, uint64_t bytes)
{
    uint64_t used = pl_sub_sat_u64(slab_bytes, small_bytes);
    return bytes > 0 && used > 0 ? (1 + bytes / used) * slab_bytes : 0;
}

/* The most that a new value claims: a small one may need a slab. */
uint64_t pl_buffer_new_cost_bytes(const pl_pool *pool, uint64_t bytes);

/* A new value, resident, not zeroed, and pinned by the caller for writing. */
PL_MUST_CHECK int pl_buffer_new(pl_pool *pool, uint64_t bytes, const char *what,
                                pl_buffer **ret_buffer, void **ret_data, pl_error *reterr);

/* One that need never fit into memory: its place in the spill file is taken, to be written piece by
 * piece with pl_buffer_write(). Not for 0 bytes. */
PL_MUST_CHECK int pl_buffer_new_spilled(pl_pool *pool, uint64_t bytes, const char *what,
                                        pl_buffer **ret_buffer, pl_error *reterr);

/* Bytes [offset, offset + bytes) of a regular file. PL_ECORRUPT if it ends before that. */
PL_MUST_CHECK int pl_buffer_open_window(pl_pool *pool, const char *path, uint64_t offset,
                                        uint64_t bytes, const char *what, pl_buffer **ret_buffer,
                                        pl_error *reterr);

/* Nothing is copied. `release` is called without any lock, when the buffer is gone; not if this
 * fails. */
PL_MUST_CHECK int pl_buffer_borrow(pl_pool *pool, const void *data, uint64_t bytes,
                                   void (*release)(void *context), void *context, const char *what,
                                   pl_buffer **ret_buffer, pl_error *reterr);

pl_buffer *pl_buffer_ref(pl_buffer *buffer);

/* The last one lets go of memory and disk at once; the buffer must not be pinned then. NULL is
 * allowed. */
void pl_buffer_unref(pl_buffer *buffer);

enum pl_pin {
    PL_PIN_READ,
    PL_PIN_WRITE, /* -EROFS for a window, or what is borrowed */
};

/* Brings the buffer into memory, where it stays until each pin was taken back; others may be
 * evicted for it. The address is good for as long. PL_EBUDGET with no room; what reading gave. */
PL_MUST_CHECK int pl_buffer_pin(pl_buffer *buffer, enum pl_pin access, void **ret_data,
                                pl_error *reterr);

/* Likewise for reading; asked between pieces of a large one: -ECANCELED. */
PL_MUST_CHECK int pl_buffer_pin_unless(pl_buffer *buffer, pl_stop stop, void **ret_data,
                                       pl_error *reterr);
void pl_buffer_unpin(pl_buffer *buffer);

/* Copies [offset, offset + n) from or to wherever it is, without making the buffer resident. */
PL_MUST_CHECK int pl_buffer_read(pl_buffer *buffer, uint64_t offset, void *data, size_t n,
                                 pl_error *reterr);
/* Rows of one length: row i is rows[i] * stride bytes behind the offset. */
typedef struct pl_buffer_rows {
    int64_t offset, stride;
    size_t row_bytes;
    const int64_t *rows;
    int64_t n;
} pl_buffer_rows;

/* Copies them one after the other to `data`, alike. */
PL_MUST_CHECK int pl_buffer_read_rows(pl_buffer *buffer, const pl_buffer_rows *rows, void *data,
                                      pl_error *reterr);

/* pl_buffer_read(), to somewhere in `room`, which has PL_BUFFER_AROUND_BYTES more; past the page
 * cache where that can be. *ret_data is where. */
#define PL_BUFFER_AROUND_BYTES PL_FILE_AROUND_BYTES
PL_MUST_CHECK int pl_buffer_read_around(pl_buffer *buffer, uint64_t offset, void *room, size_t n,
                                        void **ret_data, pl_error *reterr);

PL_MUST_CHECK int pl_buffer_write(pl_buffer *buffer, uint64_t offset, const void *data, size_t n,
                                  pl_error *reterr);

/* Where in its page of the file a byte of a spilled buffer lies: memory that lies alike is written
 * past the page cache. */
uint64_t pl_buffer_in_page(const pl_buffer *buffer, uint64_t offset);

/* Where it is in a file, to be read, or written by whoever made it spilled, with the caller's own
 * calls: it stays there until pl_buffer_end_file(). False if it is in memory; then there is nothing
 * to end. */
PL_MUST_CHECK bool pl_buffer_begin_file(pl_buffer *buffer, int *ret_fd, uint64_t *ret_offset);
void pl_buffer_end_file(pl_buffer *buffer);

uint64_t pl_buffer_bytes(const pl_buffer *buffer);
const char *pl_buffer_what(const pl_buffer *buffer);
const char *pl_buffer_path(const pl_buffer *buffer); /* of a window's file; NULL: it is none */

/* What a pin would claim now: 0 if it is resident; of a small one its slab. */
uint64_t pl_buffer_pin_cost_bytes(pl_buffer *buffer);

/* Gives back its memory at once if nobody has it pinned and nothing need be written for it. */
void pl_buffer_leave(pl_buffer *buffer);

/* Likewise, but it is written to the spill file if need be. Where that fails it stays. */
void pl_buffer_move_out(pl_buffer *buffer);

/* What is in memory with it while it is pinned: buffers of one holder are pinned as one. *ret_bytes
 * is what the holder costs. Only to be compared. */
const void *pl_buffer_holder(const pl_buffer *buffer, uint64_t *ret_bytes);

/* Moves idle buffers out until `bytes` were given back. Returns how many were: see pl_memory_evict.
 */
uint64_t pl_pool_evict(pl_pool *pool, uint64_t bytes, pl_error *reterr);

enum pl_where { PL_RESIDENT, PL_SPILLED, PL_WINDOW };

typedef struct pl_buffer_info {
    const char *what;
    uint64_t bytes;
    enum pl_where where; /* of a window that is pinned or idle: PL_RESIDENT */
    bool pinned;         /* itself, or what shares a slab with it */
} pl_buffer_info;

/* How it is now. Not in a forked child. */
pl_buffer_info pl_buffer_look(pl_buffer *buffer);

/* Calls `visit` for every live buffer, newest first, with the pool locked: it must not call the
 * pool. A negative result ends the walk and is returned. */
PL_MUST_CHECK int
pl_pool_list(pl_pool *pool, int (*visit)(void *context, const pl_buffer_info *info), void *context);

typedef struct pl_pool_state {
    uint64_t n_buffers;
    uint64_t resident_bytes; /* what they cost of the memory; slabs as wholes */
    uint64_t idle_bytes;     /* part of it: what eviction could give back */
    uint64_t spilled_bytes;  /* of the spill file, with copies of what is resident */
    pl_spill_room room;      /* for what could be spilled */
    uint64_t n_out, n_in;    /* moves to the spill file, and from it or from windows, ever */
    uint64_t out_bytes, in_bytes;
} pl_pool_state;

/* The same as its part of the state, for whoever asks often. */
uint64_t pl_pool_idle_bytes(pl_pool *pool);

void pl_pool_state_read(pl_pool *pool, pl_pool_state *ret_state);

/* Walks every invariant: 0, or PL_ECORRUPT and the first that is broken. */
PL_MUST_CHECK int pl_pool_check(pl_pool *pool, pl_error *reterr);

#endif
