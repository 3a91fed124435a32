/* SPDX-License-Identifier: Apache-2.0 */
/* Private to matmul*.c: a running product whose matrices are not all in memory.
 *   stream  an operand that is read piece by piece, into two slots: one is used while the other is
 *           loaded; a piece that is still in a slot is not loaded again
 *   strip   rows of A or C that stay while the other operand is streamed, loaded and written in
 *           groups
 *
 * Belongs to the thread that runs the product. */
#ifndef PL_EXEC_MATMUL_MATMUL_PRIVATE_H
#define PL_EXEC_MATMUL_MATMUL_PRIVATE_H

#include "exec/matmul/matmul.h"
#include "exec/matmul/matmul_product.h"
#include "exec/matmul/panel_io.h"
#include "plan/matmul_plan_private.h"

typedef struct pl_panel_stream_slot {
    int64_t key; /* of the piece in it, or being loaded; -1: none */
    pl_block block;
    char *data;
    pl_panel_request request;
} pl_panel_stream_slot;

typedef struct pl_panel_stream {
    const pl_matrix *matrix;
    pl_panel_file file;
    uint64_t offset; /* of the first piece */
    bool in_blocks;  /* pieces are blocks, numbered along rows of blocks */
    pl_matmul_blocks blocks;
    int64_t n_rows, piece_rows; /* else whole rows */
    uint64_t row_bytes;
    int current; /* the slot in use */
    pl_panel_stream_slot slots[2];
} pl_panel_stream;

typedef struct pl_strip {
    const pl_matrix *matrix;
    pl_panel_file file;
    pl_block block;
    char *data;
    pl_panel_request requests[PL_MATMUL_GROUPS_MOST];
} pl_strip;

typedef struct pl_matmul_state {
    const pl_matmul_plan *plan;
    const pl_matmul_job *job;
    pl_error *reterr;
    uint64_t item_bytes;
    pl_block bounce;
    pl_panel_io *io;
    bool a_streams, b_streams, a_stays, c_stays;
    pl_panel_stream a, b;
    pl_strip a_strip, c_strip;
    pl_matmul_blocks c_blocks; /* where tiles of C go first; n_down 0: straight to their place */
    uint64_t c_blocks_offset;
    pl_matrix scratch; /* the file, as if it were a matrix */
} pl_matmul_state;

/* matmul_stream.c: each function returns 0 or a code, with the message set. */
PL_MUST_CHECK int pl_panel_stream_init(pl_matmul_state *state, pl_panel_stream *stream,
                                       uint64_t piece_bytes);
PL_MUST_CHECK int pl_panel_stream_want(pl_matmul_state *state, pl_panel_stream *stream,
                                       int64_t key);
PL_MUST_CHECK int pl_panel_stream_get(pl_matmul_state *state, pl_panel_stream *stream, int64_t key,
                                      const char **ret_data);
void pl_panel_stream_done(pl_matmul_state *state, pl_panel_stream *stream);

/* `matrix` is loaded from or written to; a file's bytes keep their position within a page. */
PL_MUST_CHECK int pl_strip_init(pl_matmul_state *state, pl_strip *strip, const pl_matrix *matrix,
                                uint64_t bytes, const char *what);
PL_MUST_CHECK int pl_strip_move(pl_matmul_state *state, pl_strip *strip, int64_t group,
                                pl_panel_request request, int64_t row);
PL_MUST_CHECK int pl_strip_wait(pl_matmul_state *state, pl_strip *strip, int64_t group);
void pl_strip_done(pl_matmul_state *state, pl_strip *strip);

/* matmul_pass.c: computes all strips or tiles. */
PL_MUST_CHECK int pl_matmul_pass(pl_matmul_state *state);

/* Describes how rows of a tile (or of a transposed tile) that begin at (row, column) of C and lie
 * in the C strip at `data` are written. */
pl_panel_request pl_matmul_tile_request(const pl_matmul_state *state, int64_t row, int64_t column,
                                        int64_t n_rows, int64_t n_columns, char *data);

/* matmul_mirror.c: copies what is finished left of the diagonal to its right. When it returns,
 * groups of this many rows are being written. */
typedef struct pl_matmul_tile {
    int64_t row, n_rows, column, n_columns; /* of C */
} pl_matmul_tile;
PL_MUST_CHECK int pl_matmul_mirror(pl_matmul_state *state, const pl_matmul_tile *tile,
                                   int64_t group_rows);

/* matmul_blocks.c: copies an operand to blocks in the scratch file, from `offset` on; and C from
 * its blocks to its place. */
PL_MUST_CHECK int pl_matmul_copy_to_blocks(pl_matmul_state *state, const pl_matrix *matrix,
                                           const pl_matmul_blocks *blocks, uint64_t offset);
PL_MUST_CHECK int pl_matmul_copy_from_blocks(pl_matmul_state *state, const pl_matrix *matrix,
                                             const pl_matmul_blocks *blocks, uint64_t offset);

/* Waits, and reports what failed: "cannot read 4.0 MiB at 128 of 'a': ..." */
PL_MUST_CHECK int pl_matmul_wait(pl_matmul_state *state, pl_panel_request *request,
                                 const char *name);

#endif
