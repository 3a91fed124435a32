/* SPDX-License-Identifier: Apache-2.0 */
/* Copies operands to scratch as contiguous blocks, and puts C together from its blocks. Bands of
 * whole rows are read or written sequentially; each is cut into pieces of blocks, each read or
 * written in one request. While one band is being cut, the next is read and the one before is
 * written. */
#include <errno.h>
#include <string.h>

#include "exec/matmul/matmul_private.h"
#include "sys/file.h"
#include "tensor/region.h"

typedef struct band {
    pl_block rows_block, pieces_block;
    char *rows; /* as they are stored */
    pl_panel_request whole;
    pl_panel_request *pieces; /* one for each block across */
    int64_t row, n_rows;
} band;

typedef struct copy {
    pl_matmul_state *state;
    const pl_matrix *matrix;
    const pl_matmul_blocks *blocks;
    bool to_blocks;
    uint64_t offset; /* of the first block in the scratch file */
    pl_panel_file file, scratch;
    pl_block requests;
    band bands[2];
} copy;

static uint64_t row_bytes_of(const copy *c)
{
    return (uint64_t)c->blocks->columns * c->blocks->item_bytes;
}

/* A band ends where its blocks do. */
static int64_t band_rows_at(const copy *c, int64_t row)
{
    int64_t in_block = c->blocks->block_rows - row % c->blocks->block_rows;
    return least(c->state->plan->band_rows, least(in_block, c->blocks->rows - row));
}

/* ---- whole rows ---- */

static void locate_rows(const copy *c, band *b)
{
    uint64_t bytes = row_bytes_of(c), offset = c->matrix->offset + (uint64_t)b->row * bytes;
    b->rows = (char *)b->rows_block.data + offset % PL_FILE_DIRECT_BYTES;
    b->whole = (pl_panel_request){.file = &c->file,
                                  .write = !c->to_blocks,
                                  .data = b->rows,
                                  .offset = offset,
                                  .n_rows = b->n_rows,
                                  .row_bytes = bytes,
                                  .file_row_bytes = bytes,
                                  .data_row_bytes = bytes};
}

static int read_rows(copy *c, band *b)
{
    if (c->matrix->where == PL_MATRIX_COMPUTED) {
        b->rows = b->rows_block.data;
        return c->matrix->fill(c->matrix->context, b->row, b->n_rows, b->rows, c->state->reterr);
    }
    locate_rows(c, b);
    pl_panel_io_submit(c->state->io, &b->whole);
    return 0;
}

/* ---- pieces ---- */

static int64_t width_of(const pl_matmul_blocks *blocks, int64_t across)
{
    return least(blocks->block_columns, blocks->columns - across * blocks->block_columns);
}

static uint64_t piece_row_bytes(const pl_matmul_blocks *blocks, int64_t across)
{
    int64_t columns = blocks->padded ? blocks->block_columns : width_of(blocks, across);
    return (uint64_t)columns * blocks->item_bytes;
}

/* Gives each piece pages of its own, in which it lies as it does in the file. */
static void place_pieces(const copy *c, band *b)
{
    const pl_matmul_blocks *blocks = c->blocks;
    char *free_page = b->pieces_block.data;
    int64_t down = b->row / blocks->block_rows, in_block = b->row % blocks->block_rows;
    for (int64_t i = 0; i < blocks->n_across; i++) {
        uint64_t row_bytes = piece_row_bytes(blocks, i);
        uint64_t offset = c->offset +
                          (uint64_t)(down * blocks->n_across + i) * blocks->block_bytes +
                          (uint64_t)in_block * row_bytes;
        uint64_t bytes = (uint64_t)b->n_rows * row_bytes, skip = offset % PL_FILE_DIRECT_BYTES;
        b->pieces[i] = (pl_panel_request){.file = &c->scratch,
                                          .write = c->to_blocks,
                                          .data = free_page + skip,
                                          .offset = offset,
                                          .n_rows = 1,
                                          .row_bytes = bytes,
                                          .file_row_bytes = bytes,
                                          .data_row_bytes = bytes};
        free_page +=
            (skip + bytes + PL_FILE_DIRECT_BYTES - 1) / PL_FILE_DIRECT_BYTES * PL_FILE_DIRECT_BYTES;
    }
}

static void submit_pieces(copy *c, band *b)
{
    for (int64_t i = 0; i < c->blocks->n_across; i++)
        pl_panel_io_submit(c->state->io, &b->pieces[i]);
}

static int wait_for_pieces(copy *c, band *b)
{
    int r = 0;
    for (int64_t i = 0; i < c->blocks->n_across && r == 0; i++)
        r = pl_matmul_wait(c->state, &b->pieces[i], "scratch");
    return r;
}

typedef struct cut {
    const copy *copy;
    const band *band;
} cut;

static int cut_piece(void *context, int64_t part, int worker)
{
    (void)worker;
    const copy *c = ((const cut *)context)->copy;
    const band *b = ((const cut *)context)->band;
    int64_t item = (int64_t)c->blocks->item_bytes;
    const int64_t extents[2] = {b->n_rows, width_of(c->blocks, part)};
    const int64_t row[2] = {(int64_t)row_bytes_of(c), item};
    const int64_t piece[2] = {(int64_t)piece_row_bytes(c->blocks, part), item};
    char *in_rows = b->rows + part * c->blocks->block_columns * item;
    char *in_piece = b->pieces[part].data;
    if (c->to_blocks)
        pl_region_copy(in_piece, piece, in_rows, row, extents, 2, (size_t)item);
    else
        pl_region_copy(in_rows, row, in_piece, piece, extents, 2, (size_t)item);
    return 0;
}

static int cut_band(copy *c, band *b)
{
    return pl_threads_run(c->state->job->threads, c->blocks->n_across, cut_piece, &(cut){c, b});
}

/* ---- bands ---- */

static int begin_band(copy *c, band *b, int64_t row)
{
    b->row = row;
    b->n_rows = row < c->blocks->rows ? band_rows_at(c, row) : 0;
    if (b->n_rows == 0)
        return 0;
    if (c->to_blocks)
        return read_rows(c, b);
    place_pieces(c, b);
    submit_pieces(c, b);
    return 0;
}

/* Waits for earlier writes from the same memory. */
static int end_band(copy *c, band *b)
{
    int r = pl_matmul_wait(c->state, &b->whole, c->matrix->name);
    if (r == 0)
        r = wait_for_pieces(c, b);
    if (r < 0)
        return r;
    if (c->to_blocks)
        place_pieces(c, b);
    else
        locate_rows(c, b);
    r = cut_band(c, b);
    if (r == 0 && c->to_blocks)
        submit_pieces(c, b);
    else if (r == 0)
        pl_panel_io_submit(c->state->io, &b->whole);
    return r;
}

static int check_stop(const copy *c)
{
    if (pl_must_stop(c->state->job->stop))
        return pl_error_set(c->state->reterr, -ECANCELED, "cancelled");
    return 0;
}

static int run_bands(copy *c)
{
    int64_t row = 0;
    int r = begin_band(c, &c->bands[0], row);
    for (int i = 0; r == 0 && c->bands[i].n_rows > 0; i = 1 - i) {
        row = c->bands[i].row + c->bands[i].n_rows;
        r = check_stop(c);
        if (r == 0)
            r = begin_band(c, &c->bands[1 - i], row);
        if (r == 0)
            r = end_band(c, &c->bands[i]);
    }
    for (int i = 0; i < 2 && r == 0; i++) {
        r = pl_matmul_wait(c->state, &c->bands[i].whole, c->matrix->name);
        if (r == 0)
            r = wait_for_pieces(c, &c->bands[i]);
    }
    return r;
}

/* ---- all of it ---- */

static int take_memory(copy *c)
{
    pl_matmul_state *s = c->state;
    uint64_t rows = (uint64_t)s->plan->band_rows * row_bytes_of(c);
    uint64_t pieces = pl_matmul_pieces_bytes(c->blocks, s->plan->band_rows);
    uint64_t n = (uint64_t)c->blocks->n_across, one = n * sizeof(pl_panel_request);
    int r = pl_memory_take(s->job->memory, 2 * one, "scratch", &c->requests, s->reterr);
    if (r < 0)
        return r;
    memset(c->requests.data, 0, 2 * one);
    for (int i = 0; i < 2 && r == 0; i++) {
        c->bands[i].pieces = (pl_panel_request *)((char *)c->requests.data + (uint64_t)i * one);
        r = pl_memory_take(s->job->memory, pl_matmul_buffer_bytes(rows), c->matrix->name,
                           &c->bands[i].rows_block, s->reterr);
        if (r == 0)
            r = pl_memory_take(s->job->memory, pl_matmul_buffer_bytes(pieces), "scratch",
                               &c->bands[i].pieces_block, s->reterr);
    }
    return r;
}

/* Waits for requests under way, which use the memory, and frees it. */
static void give_memory(copy *c)
{
    for (int i = 0; i < 2; i++) {
        band *b = &c->bands[i];
        (void)!pl_panel_io_wait(c->state->io, &b->whole);
        for (int64_t k = 0; b->pieces && k < c->blocks->n_across; k++)
            (void)!pl_panel_io_wait(c->state->io, &b->pieces[k]);
    }
    for (int i = 0; i < 2; i++) {
        pl_memory_give(c->state->job->memory, &c->bands[i].rows_block);
        pl_memory_give(c->state->job->memory, &c->bands[i].pieces_block);
    }
    pl_memory_give(c->state->job->memory, &c->requests);
}

static int run(copy *c)
{
    c->file = (pl_panel_file){-1, -1};
    if (c->matrix->where == PL_MATRIX_FILE)
        c->file = pl_panel_file_open(c->matrix->fd);
    c->scratch = pl_panel_file_open(c->state->job->scratch_fd);
    int r = take_memory(c);
    if (r == 0)
        r = run_bands(c);
    give_memory(c);
    pl_panel_file_close(&c->file);
    pl_panel_file_close(&c->scratch);
    return r;
}

int pl_matmul_copy_to_blocks(pl_matmul_state *state, const pl_matrix *matrix,
                             const pl_matmul_blocks *blocks, uint64_t offset)
{
    return run(&(copy){
        .state = state, .matrix = matrix, .blocks = blocks, .to_blocks = true, .offset = offset});
}

int pl_matmul_copy_from_blocks(pl_matmul_state *state, const pl_matrix *matrix,
                               const pl_matmul_blocks *blocks, uint64_t offset)
{
    return run(&(copy){.state = state, .matrix = matrix, .blocks = blocks, .offset = offset});
}
