/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a chain will read or write, asked for ahead of time.
 *   stream  an operand, or the result, that lies beyond the caches, one element after the other
 *   piece   elements of a strip that a kernel is called for
 *   share   lines of a stream that are asked for before a call
 *
 * While a chain computes on strips that are near, nobody asks the memory for anything, and what the
 * processor fetches by itself ends with each page. So, along with each strip, the lines of the next
 * one are asked for, spread over all calls; pieces are as short as it takes to keep shares short.
 * The processor has room for a few dozen lines that are on their way, and waits if it is asked for
 * more. docs/kernels.md has the measurements.
 *
 * Nothing is read: to ask for what lies behind the end of a value does no harm. */
#ifndef PL_EXEC_STEP_LOOKAHEAD_H
#define PL_EXEC_STEP_LOOKAHEAD_H

#include "plan/program.h"

enum {
    PL_LOOKAHEAD_STREAMS_MAX = PL_CHAIN_OPERANDS_MAX + 1,
    PL_LOOKAHEAD_LINE_BYTES = 64,
    PL_LOOKAHEAD_SHARE_LINES = 16,    /* of all streams together: about so many are wanted */
    PL_LOOKAHEAD_PIECE_ELEMENTS = 64, /* of a kernel's loop; it has slower ones for the rest */
    PL_LOOKAHEAD_PIECE_LEAST = 128,   /* for less, a call would show */
};

/* Smaller values are no streams: they may be near, and to ask for what is near takes as long as a
 * cheap kernel does. Of 4 to 16 MiB in the third-level cache nothing was gained, and little lost.
 */
#define PL_LOOKAHEAD_VALUE_BYTES (4 * PL_MIB)

typedef struct pl_lookahead_stream {
    uintptr_t next, end; /* of what was not yet asked for along with this strip */
    uintptr_t share_bytes;
} pl_lookahead_stream;

typedef struct pl_lookahead {
    pl_lookahead_stream streams[PL_LOOKAHEAD_STREAMS_MAX];
    int n_streams;
    int n_operations;
    bool is_taken; /* by one more call for the whole strip */
    int64_t piece; /* elements */
} pl_lookahead;

static inline int64_t pl_lookahead_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* For strips of so many elements, of which the streams together have so many bytes. */
static inline void pl_lookahead_set_piece(pl_lookahead *ahead, int64_t strip, int64_t strip_bytes)
{
    int64_t n_shares = strip_bytes / (PL_LOOKAHEAD_LINE_BYTES * PL_LOOKAHEAD_SHARE_LINES);
    int64_t n_pieces = pl_lookahead_divide_up(n_shares - ahead->is_taken, ahead->n_operations);
    int64_t piece = pl_lookahead_divide_up(strip, n_pieces > 1 ? n_pieces : 1);
    piece =
        pl_lookahead_divide_up(piece, PL_LOOKAHEAD_PIECE_ELEMENTS) * PL_LOOKAHEAD_PIECE_ELEMENTS;
    ahead->piece = piece > PL_LOOKAHEAD_PIECE_LEAST ? piece : PL_LOOKAHEAD_PIECE_LEAST;
}

/* How many calls there are for a strip of n elements. */
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

/* Before each call. Inline, because gcc takes a function that only asks for one that does nothing,
 * and leaves out its calls. */
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
