/* SPDX-License-Identifier: Apache-2.0 */
/* The other half of a symmetric result: a finished tile, transposed, is also the tile on the other
 * side of the diagonal. If the result is a file, the tile is transposed in place and written a
 * second time. */
#include "exec/matmul/matmul_private.h"
#include "tensor/region.h"

enum { SQUARE = 64 }; /* rows and columns that are swapped at a time: both sides fit in L1 */

typedef struct turn {
    char *data; /* `side` rows and columns, dense */
    int64_t side, item;
} turn;

#define SWAP_LOOP(name, type)                                                                      \
    static void name(type *data, int64_t side, int64_t row, int64_t column)                        \
    {                                                                                              \
        for (int64_t i = row; i < least(row + SQUARE, side); i++)                                  \
            for (int64_t j = column; j < least(column + SQUARE, i); j++) {                         \
                type other = data[j * side + i];                                                   \
                data[j * side + i] = data[i * side + j];                                           \
                data[i * side + j] = other;                                                        \
            }                                                                                      \
    }

SWAP_LOOP(swap_8, uint8_t)
SWAP_LOOP(swap_16, uint16_t)
SWAP_LOOP(swap_32, uint32_t)
SWAP_LOOP(swap_64, uint64_t)

static void swap_squares(const turn *t, int64_t row, int64_t column)
{
    switch (t->item) {
    case 1:
        swap_8((uint8_t *)t->data, t->side, row, column);
        break;
    case 2:
        swap_16((uint16_t *)(void *)t->data, t->side, row, column);
        break;
    case 4:
        swap_32((uint32_t *)(void *)t->data, t->side, row, column);
        break;
    default:
        swap_64((uint64_t *)(void *)t->data, t->side, row, column);
        break;
    }
}

/* Swaps the rows [part * SQUARE, ...) left of the diagonal with their counterparts. */
static int turn_part(void *context, int64_t part, int worker)
{
    (void)worker;
    const turn *t = context;
    for (int64_t column = 0; column <= part * SQUARE; column += SQUARE)
        swap_squares(t, part * SQUARE, column);
    return 0;
}

static int mirror_in_file(pl_matmul_state *s, const pl_matmul_tile *tile, int64_t group_rows)
{
    const pl_matmul_plan *p = s->plan;
    turn t = {s->c_strip.data, p->tile_columns, (int64_t)s->item_bytes};
    int r = 0;
    for (int64_t g = 0; g < p->n_groups && r == 0; g++)
        r = pl_strip_wait(s, &s->c_strip, g);
    if (r == 0)
        r = pl_threads_run(s->job->threads, parts_of(t.side, SQUARE), turn_part, &t);
    for (int64_t row = 0; row < tile->n_columns && r == 0; row += group_rows) {
        pl_panel_request q = pl_matmul_tile_request(s, tile->column + row, tile->row,
                                                    least(group_rows, tile->n_columns - row),
                                                    tile->n_rows, t.data + row * t.side * t.item);
        r = pl_strip_move(s, &s->c_strip, row / group_rows, q, 0);
    }
    return r;
}

static void mirror_in_memory(pl_matmul_state *s, const pl_matmul_tile *tile)
{
    const pl_matrix *c = &s->job->c;
    int64_t item = (int64_t)s->item_bytes;
    const int64_t extents[2] = {tile->n_columns, tile->n_rows};
    const int64_t from[2] = {item, c->row_bytes}, to[2] = {c->row_bytes, item};
    pl_region_copy((char *)c->data + tile->column * c->row_bytes + tile->row * item, to,
                   (const char *)c->data + tile->row * c->row_bytes + tile->column * item, from,
                   extents, 2, s->item_bytes);
}

int pl_matmul_mirror(pl_matmul_state *s, const pl_matmul_tile *tile, int64_t group_rows)
{
    if (s->c_stays)
        return mirror_in_file(s, tile, group_rows);
    mirror_in_memory(s, tile);
    return 0;
}
