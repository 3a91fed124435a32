/* SPDX-License-Identifier: Apache-2.0 */
/* See matmul_private.h: loads and writes pieces of matrices while others are computed with. */
#include "exec/matmul/matmul_private.h"

#include <inttypes.h>

#include "base/size.h"
#include "sys/file.h"

int pl_matmul_wait(pl_matmul_state *state, pl_panel_request *q, const char *name)
{
    int r = pl_panel_io_wait(state->io, q);
    if (r == 0)
        return 0;
    return pl_error_set(state->reterr, r, "cannot %s %s at %" PRIu64 " of '%s': %s",
                        q->write ? "write" : "read", PL_SIZE((uint64_t)q->n_rows * q->row_bytes),
                        q->offset, name, pl_error_text(r));
}

/* ---- streams ---- */

int pl_panel_stream_init(pl_matmul_state *state, pl_panel_stream *stream, uint64_t piece_bytes)
{
    int64_t n_pieces = stream->in_blocks
                           ? stream->blocks.n_down * stream->blocks.n_across
                           : (stream->n_rows + stream->piece_rows - 1) / stream->piece_rows;
    int r = 0;
    for (int i = 0; i < 2; i++) {
        stream->slots[i].key = -1;
        if (r == 0 && i < n_pieces)
            r = pl_memory_take(state->job->memory, pl_matmul_buffer_bytes(piece_bytes),
                               stream->matrix->name, &stream->slots[i].block, state->reterr);
    }
    return r;
}

void pl_panel_stream_done(pl_matmul_state *state, pl_panel_stream *stream)
{
    pl_panel_file_close(&stream->file);
    for (int i = 0; i < 2; i++)
        pl_memory_give(state->job->memory, &stream->slots[i].block);
}

/* Finds where a piece lies in the file. A block is dense, whatever its rows. */
static pl_panel_request locate(const pl_panel_stream *s, int64_t key)
{
    pl_panel_request q = {.file = &s->file, .n_rows = 1};
    if (s->in_blocks) {
        int64_t down = key / s->blocks.n_across, across = key % s->blocks.n_across;
        int64_t rows = least(s->blocks.block_rows, s->blocks.rows - down * s->blocks.block_rows);
        int64_t columns =
            least(s->blocks.block_columns, s->blocks.columns - across * s->blocks.block_columns);
        q.offset = s->offset + (uint64_t)key * s->blocks.block_bytes;
        q.row_bytes = (uint64_t)(rows * columns) * s->blocks.item_bytes;
    } else {
        int64_t row = key * s->piece_rows;
        q.offset = s->offset + (uint64_t)row * s->row_bytes;
        q.row_bytes = (uint64_t)least(s->piece_rows, s->n_rows - row) * s->row_bytes;
    }
    q.file_row_bytes = q.data_row_bytes = q.row_bytes;
    return q;
}

static int load(pl_matmul_state *state, pl_panel_stream *s, pl_panel_stream_slot *slot, int64_t key)
{
    pl_panel_request q = locate(s, key);
    slot->data = slot->block.data; /* NULL where a piece has no bytes */
    if (slot->data)
        slot->data += q.offset % PL_FILE_DIRECT_BYTES;
    q.data = slot->data;
    slot->key = -1;
    if (!s->in_blocks && s->matrix->where == PL_MATRIX_COMPUTED) {
        int64_t row = key * s->piece_rows, n_rows = least(s->piece_rows, s->n_rows - row);
        int r = s->matrix->fill(s->matrix->context, row, n_rows, slot->data, state->reterr);
        if (r < 0)
            return r;
        slot->request = (pl_panel_request){0};
    } else {
        slot->request = q;
        pl_panel_io_submit(state->io, &slot->request);
    }
    slot->key = key;
    return 0;
}

int pl_panel_stream_want(pl_matmul_state *state, pl_panel_stream *s, int64_t key)
{
    if (s->slots[0].key == key || s->slots[1].key == key)
        return 0;
    int other = s->slots[s->current].key < 0 ? s->current : 1 - s->current;
    return load(state, s, &s->slots[other], key);
}

int pl_panel_stream_get(pl_matmul_state *state, pl_panel_stream *s, int64_t key,
                        const char **ret_data)
{
    int r = pl_panel_stream_want(state, s, key);
    if (r < 0)
        return r;
    s->current = s->slots[1].key == key;
    *ret_data = s->slots[s->current].data;
    return pl_matmul_wait(state, &s->slots[s->current].request, s->matrix->name);
}

/* ---- strips ---- */

int pl_strip_init(pl_matmul_state *state, pl_strip *strip, const pl_matrix *matrix, uint64_t bytes,
                  const char *what)
{
    strip->matrix = matrix;
    int r = pl_memory_take(state->job->memory, pl_matmul_buffer_bytes(bytes), what, &strip->block,
                           state->reterr);
    if (r < 0)
        return r;
    uint64_t skip = matrix->where == PL_MATRIX_FILE ? matrix->offset % PL_FILE_DIRECT_BYTES : 0;
    strip->data = (char *)strip->block.data + skip;
    if (matrix->where == PL_MATRIX_FILE)
        strip->file = pl_panel_file_open(matrix->fd);
    return 0;
}

void pl_strip_done(pl_matmul_state *state, pl_strip *strip)
{
    pl_panel_file_close(&strip->file);
    pl_memory_give(state->job->memory, &strip->block);
}

int pl_strip_move(pl_matmul_state *state, pl_strip *strip, int64_t group, pl_panel_request request,
                  int64_t row)
{
    if (strip->matrix->where == PL_MATRIX_COMPUTED)
        return strip->matrix->fill(strip->matrix->context, row, request.n_rows, request.data,
                                   state->reterr);
    strip->requests[group] = request;
    strip->requests[group].file = &strip->file;
    pl_panel_io_submit(state->io, &strip->requests[group]);
    return 0;
}

int pl_strip_wait(pl_matmul_state *state, pl_strip *strip, int64_t group)
{
    return pl_matmul_wait(state, &strip->requests[group], strip->matrix->name);
}
