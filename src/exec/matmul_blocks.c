/* SPDX-License-Identifier: Apache-2.0 */
/* An operand is copied to scratch, cut into blocks that lie together: bands of whole rows are read
 * in the order that they lie in, cut into pieces of blocks, and written, each piece as one. While
 * one band is cut the next is read and the one before is written. */
#include <errno.h>
#include <string.h>

#include "exec/matmul_private.h"
#include "sys/file.h"
#include "tensor/region.h"

typedef struct band {
    pl_block in, out;
    char *rows; /* as they are stored */
    pl_panel_request read;
    pl_panel_request *writes; /* of out, one for each block across */
    int64_t row, n_rows;
} band;

typedef struct copy {
    pl_matmul_state *state;
    const pl_matrix *matrix;
    const pl_matmul_blocks *blocks;
    uint64_t offset; /* of the first block in the scratch file */
    pl_panel_file from, to;
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

static int begin_band(copy *c, band *b, int64_t row)
{
    b->row = row;
    b->n_rows = row < c->blocks->rows ? band_rows_at(c, row) : 0;
    if (b->n_rows == 0)
        return 0;
    uint64_t bytes = row_bytes_of(c), offset = c->matrix->offset + (uint64_t)row * bytes;
    if (c->matrix->where == PL_MATRIX_COMPUTED) {
        b->rows = b->in.data;
        return c->matrix->fill(c->matrix->context, row, b->n_rows, b->rows, c->state->reterr);
    }
    b->rows = (char *)b->in.data + offset % PL_FILE_DIRECT_BYTES;
    b->read = (pl_panel_request){.file = &c->from,
                                 .data = b->rows,
                                 .offset = offset,
                                 .n_rows = b->n_rows,
                                 .row_bytes = bytes,
                                 .file_row_bytes = bytes,
                                 .data_row_bytes = bytes};
    pl_panel_io_submit(c->state->io, &b->read);
    return 0;
}

static int wait_for_writes(copy *c, band *b)
{
    int r = 0;
    for (int64_t i = 0; i < c->blocks->n_across && r == 0; i++)
        r = pl_matmul_wait(c->state, &b->writes[i], "scratch");
    return r;
}

/* Each piece gets pages of its own, in which it lies as in the file. */
static void place_pieces(const copy *c, band *b)
{
    const pl_matmul_blocks *blocks = c->blocks;
    char *free_page = b->out.data;
    int64_t down = b->row / blocks->block_rows, in_block = b->row % blocks->block_rows;
    for (int64_t i = 0; i < blocks->n_across; i++) {
        int64_t width = least(blocks->block_columns, blocks->columns - i * blocks->block_columns);
        uint64_t width_bytes = (uint64_t)width * blocks->item_bytes;
        uint64_t offset = c->offset +
                          (uint64_t)(down * blocks->n_across + i) * blocks->block_bytes +
                          (uint64_t)in_block * width_bytes;
        uint64_t bytes = (uint64_t)b->n_rows * width_bytes, skip = offset % PL_FILE_DIRECT_BYTES;
        b->writes[i] = (pl_panel_request){.file = &c->to,
                                          .write = true,
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

typedef struct cut {
    const copy *copy;
    const band *band;
} cut;

static int cut_piece(void *context, int64_t part, int worker)
{
    (void)worker;
    const copy *c = ((const cut *)context)->copy;
    const band *b = ((const cut *)context)->band;
    int64_t first = part * c->blocks->block_columns, item = (int64_t)c->blocks->item_bytes;
    int64_t width = least(c->blocks->block_columns, c->blocks->columns - first);
    const int64_t extents[2] = {b->n_rows, width};
    const int64_t from[2] = {(int64_t)row_bytes_of(c), item}, to[2] = {width * item, item};
    pl_region_copy(b->writes[part].data, to, b->rows + first * item, from, extents, 2,
                   (size_t)item);
    return 0;
}

static int end_band(copy *c, band *b)
{
    if (b->n_rows == 0)
        return 0;
    int r = pl_matmul_wait(c->state, &b->read, c->matrix->name);
    if (r == 0)
        r = wait_for_writes(c, b);
    if (r < 0)
        return r;
    place_pieces(c, b);
    r = pl_threads_run(c->state->job->threads, c->blocks->n_across, cut_piece, &(cut){c, b});
    for (int64_t i = 0; i < c->blocks->n_across && r == 0; i++)
        pl_panel_io_submit(c->state->io, &b->writes[i]);
    return r;
}

static int check_stop(const copy *c)
{
    if (pl_matmul_must_stop(&c->state->job->stop))
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
    for (int i = 0; i < 2 && r == 0; i++)
        r = wait_for_writes(c, &c->bands[i]);
    return r;
}

static int take_memory(copy *c)
{
    pl_matmul_state *s = c->state;
    uint64_t in = (uint64_t)s->plan->band_rows * row_bytes_of(c);
    uint64_t out = in + (uint64_t)c->blocks->n_across * 2 * PL_FILE_DIRECT_BYTES;
    uint64_t n = (uint64_t)c->blocks->n_across, one = n * sizeof(pl_panel_request);
    int r = pl_memory_take(s->job->memory, 2 * one, "scratch", &c->requests, s->reterr);
    if (r < 0)
        return r;
    memset(c->requests.data, 0, 2 * one);
    for (int i = 0; i < 2 && r == 0; i++) {
        c->bands[i].writes = (pl_panel_request *)((char *)c->requests.data + (uint64_t)i * one);
        r = pl_memory_take(s->job->memory, pl_matmul_buffer_bytes(in), c->matrix->name,
                           &c->bands[i].in, s->reterr);
        if (r == 0)
            r = pl_memory_take(s->job->memory, pl_matmul_buffer_bytes(out), "scratch",
                               &c->bands[i].out, s->reterr);
    }
    return r;
}

/* Whatever is still under way uses the memory. */
static void give_memory(copy *c)
{
    for (int i = 0; i < 2; i++) {
        band *b = &c->bands[i];
        (void)!pl_panel_io_wait(c->state->io, &b->read);
        for (int64_t k = 0; b->writes && k < c->blocks->n_across; k++)
            (void)!pl_panel_io_wait(c->state->io, &b->writes[k]);
    }
    for (int i = 0; i < 2; i++) {
        pl_memory_give(c->state->job->memory, &c->bands[i].in);
        pl_memory_give(c->state->job->memory, &c->bands[i].out);
    }
    pl_memory_give(c->state->job->memory, &c->requests);
}

int pl_matmul_copy_to_blocks(pl_matmul_state *state, const pl_matrix *matrix,
                             const pl_matmul_blocks *blocks, uint64_t offset)
{
    copy c = {.state = state, .matrix = matrix, .blocks = blocks, .offset = offset};
    c.from = (pl_panel_file){-1, -1};
    if (matrix->where == PL_MATRIX_FILE)
        c.from = pl_panel_file_open(matrix->fd);
    c.to = pl_panel_file_open(state->job->scratch_fd);
    int r = take_memory(&c);
    if (r == 0)
        r = run_bands(&c);
    give_memory(&c);
    pl_panel_file_close(&c.from);
    pl_panel_file_close(&c.to);
    return r;
}
