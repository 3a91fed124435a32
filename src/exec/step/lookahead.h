/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetches the memory that a chain will read or write.
 *   stream  an operand, or the result, that lies beyond the caches, one element after the other
 *   piece   elements of a strip in one kernel call
 *   share   cache lines of a stream that are prefetched before a call
 *
 * While a chain computes on strips in the cache, the memory is idle, and the processor's own
 * prefetching ends with each page. So, along with each strip, the lines of the next one are
 * prefetched, spread over all calls; pieces are short enough to keep shares short. The processor
 * can have a few dozen lines in flight, and stalls if asked for more. docs/kernels.md has the
 * measurements.
 *
 * Nothing is read, so prefetching past the end of a value does no harm. */
#ifndef PL_EXEC_STEP_LOOKAHEAD_H
#define PL_EXEC_STEP_LOOKAHEAD_H

#include "plan/program.h"

enum {
    PL_LOOKAHEAD_STREAMS_MAX = PL_CHAIN_OPERANDS_MAX + 1,
    PL_LOOKAHEAD_LINE_BYTES = 64,
    PL_LOOKAHEAD_SHARE_LINES = 16,    /* of all streams together: about this many are wanted */
    PL_LOOKAHEAD_PIECE_ELEMENTS = 64, /* of a kernel's loop; it has slower ones for the rest */
    PL_LOOKAHEAD_PIECE_LEAST = 128,   /* with fewer, the call overhead would show */
};

/* Smaller values are not streams: they may be cached, and prefetching cached lines takes as long as
 * a cheap kernel does. For 4 to 16 MiB in the third-level cache nothing was gained, and little
 * lost. */
#define PL_LOOKAHEAD_VALUE_BYTES (4 * PL_MIB)

typedef struct pl_lookahead_stream {
    uintptr_t next, end; /* of the lines not yet prefetched along with this strip */
    uintptr_t share_bytes;
} pl_lookahead_stream;

typedef struct pl_lookahead {
    pl_lookahead_stream streams[PL_LOOKAHEAD_STREAMS_MAX];
    int n_streams;
    int n_operations;
    bool is_taken; /* one more call covers the whole strip */
    int64_t piece; /* elements */
} pl_lookahead;

static inline int64_t pl_lookahead_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Sets the piece for strips of this many elements, of which the streams together have this many
 * bytes. */
static inline void pl_lookahead_set_piece(pl_lookahead *ahead, int64_t strip, int64_t strip_bytes)
{
    int64_t n_shares = strip_bytes / (PL_LOOKAHEAD_LINE_BYTES * PL_LOOKAHEAD_SHARE_LINES);
    int64_t n_pieces = pl_lookahead_divide_up(n_shares - ahead->is_taken, ahead->n_operations);
    int64_t piece = pl_lookahead_divide_up(strip, n_pieces > 1 ? n_pieces : 1);
    piece =
        pl_lookahead_divide_up(piece, PL_LOOKAHEAD_PIECE_ELEMENTS) * PL_LOOKAHEAD_PIECE_ELEMENTS;
    ahead->piece = piece > PL_LOOKAHEAD_PIECE_LEAST ? piece : PL_LOOKAHEAD_PIECE_LEAST;
}

/* The number of calls for a strip of n elements. */
static inline int64_t pl_lookahead_n_calls(const pl_lookahead *ahead, int64_t n)
{
    return ahead->n_operations * pl_lookahead_divide_up(n, ahead->piece) + ahead->is_taken;
}

static inline void pl_lookahead_stream_begin(pl_lookahead_stream *s, uintptr_t at, int64_t bytes,
                                             int64_t n_calls)
{
    int64_t n_lines = bytes / PL_LOOKAHEAD_LINE_BYTES;
    s->next = at;
    s->end = at + (uintptr_t)(n_lines * PL_LOOKAHEAD_LINE_BYTES);
    s->share_bytes =
        (uintptr_t)(pl_lookahead_divide_up(n_lines, n_calls) * PL_LOOKAHEAD_LINE_BYTES);
}

/* Call before each kernel call. Inline, because gcc assumes that a function that only prefetches
 * does nothing, and drops calls to it. */
static inline __attribute__((always_inline)) void pl_lookahead_ask(pl_lookahead *ahead)
{
    for (int i = 0; i < ahead->n_streams; i++) {
        pl_lookahead_stream *s = &ahead->streams[i];
        uintptr_t left = s->end - s->next;
        uintptr_t end = s->next + (left < s->share_bytes ? left : s->share_bytes);
        for (; s->next != end; s->next += PL_LOOKAHEAD_LINE_BYTES)
            __builtin_prefetch((const void *)s->next, 0, 2);
    }
}

#endif
