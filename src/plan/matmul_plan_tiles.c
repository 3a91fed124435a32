/* SPDX-License-Identifier: Apache-2.0 */
/* Plans tiles: see matmul_plan.h. Searches for the largest square that fits beside two pairs of
 * blocks, and then for the largest bands to copy operands to blocks with, which comes first. */
#include "plan/matmul_plan_private.h"

enum { TILE_UNIT = 16 }; /* rows and columns: blocks of 64 rows are then whole pages */

/* Tiles along a side of a symmetric result, unless they would become small: those on the diagonal
 * are computed whole. */
enum { SYMMETRIC_TILES = 8, SYMMETRIC_ROWS = 512 };

/* Two bands being read, two being written, 16 MiB each. */
#define BANDS_MOST_BYTES (64 * PL_MIB)

static pl_matmul_blocks blocks_of(question *q, int64_t rows, int64_t columns, int64_t block_rows,
                                  int64_t block_columns)
{
    uint64_t block = (uint64_t)block_rows * (uint64_t)block_columns * item_of(q);
    return (pl_matmul_blocks){
        .rows = rows,
        .columns = columns,
        .block_rows = block_rows,
        .block_columns = block_columns,
        .n_down = parts_of(rows, block_rows),
        .n_across = parts_of(columns, block_columns),
        .item_bytes = item_of(q),
        .block_bytes =
            (block + PL_MATMUL_PAGE_BYTES - 1) / PL_MATMUL_PAGE_BYTES * PL_MATMUL_PAGE_BYTES,
    };
}

pl_matmul_blocks pl_matmul_blocks_of(const pl_matmul_plan *plan, bool right)
{
    question *q = &plan->question;
    if (right)
        return q->b_transposed ? blocks_of(q, q->n, q->k, plan->tile_columns, plan->depth)
                               : blocks_of(q, q->k, q->n, plan->depth, plan->tile_columns);
    return q->a_transposed ? blocks_of(q, q->k, q->m, plan->depth, plan->tile_rows)
                           : blocks_of(q, q->m, q->k, plan->tile_rows, plan->depth);
}

pl_matmul_blocks pl_matmul_blocks_of_c(const pl_matmul_plan *plan)
{
    question *q = &plan->question;
    pl_matmul_blocks blocks = blocks_of(q, q->m, q->n, plan->tile_rows, plan->tile_columns);
    blocks.padded = true;
    return blocks;
}

uint64_t pl_matmul_blocks_disk_bytes(const pl_matmul_blocks *blocks)
{
    return (uint64_t)(blocks->n_down * blocks->n_across) * blocks->block_bytes;
}

/* Two bands of whole rows, and two cut into pieces that each lie in a page as they do on disk. */
static uint64_t band_bytes(const pl_matmul_blocks *blocks, int64_t band_rows)
{
    uint64_t band = (uint64_t)band_rows * (uint64_t)blocks->columns * blocks->item_bytes;
    uint64_t n_pieces = 2 * (uint64_t)blocks->n_across;
    return pl_memory_cost_bytes(n_pieces * PL_MATMUL_REQUEST_BYTES) +
           2 * pl_matmul_buffer_bytes(band) +
           2 * pl_matmul_buffer_bytes(pl_matmul_pieces_bytes(blocks, band_rows));
}

uint64_t pl_matmul_pieces_bytes(const pl_matmul_blocks *blocks, int64_t band_rows)
{
    int64_t columns = blocks->padded ? blocks->n_across * blocks->block_columns : blocks->columns;
    return (uint64_t)band_rows * (uint64_t)columns * blocks->item_bytes +
           (uint64_t)blocks->n_across * 2 * PL_MATMUL_PAGE_BYTES;
}

static uint64_t copying_bytes(const pl_matmul_plan *plan, int64_t band_rows)
{
    uint64_t bytes = 0;
    for (int right = 0; right < 2; right++) {
        pl_matmul_blocks blocks = pl_matmul_blocks_of(plan, right);
        if (!(right ? plan->question.b_resident : plan->question.a_resident))
            bytes = pl_max_u64(bytes, band_bytes(&blocks, band_rows));
    }
    pl_matmul_blocks c = pl_matmul_blocks_of_c(plan);
    return plan->c_in_blocks ? pl_max_u64(bytes, band_bytes(&c, band_rows)) : bytes;
}

static uint64_t computing_bytes(pl_matmul_plan *plan)
{
    question *q = &plan->question;
    uint64_t a = matrix_bytes(q, plan->tile_rows, plan->depth);
    uint64_t b = matrix_bytes(q, plan->depth, plan->tile_columns);
    uint64_t c = matrix_bytes(q, plan->tile_rows, plan->tile_columns);
    plan->a_bytes = q->a_resident ? 0 : 2 * pl_matmul_buffer_bytes(a);
    plan->b_bytes = q->b_resident ? 0 : 2 * pl_matmul_buffer_bytes(b);
    plan->c_bytes = q->c_resident ? 0 : pl_matmul_buffer_bytes(c);
    return plan->a_bytes + plan->b_bytes + plan->c_bytes;
}

static void measure_tiles(pl_matmul_plan *plan, int64_t rows, int64_t columns, int64_t band_rows)
{
    plan->tile_rows = least(rows, plan->question.m);
    plan->tile_columns = least(columns, plan->question.n);
    plan->band_rows = band_rows;
    plan->scratch_bytes =
        PL_MATMUL_BOUNCE_BYTES + pl_max_u64(computing_bytes(plan), copying_bytes(plan, band_rows));
    set_workspace(plan, plan->tile_rows);
}

/* The largest square, in units: rows and columns of C cost the same reads. */
static int64_t largest_tile(pl_matmul_plan *plan)
{
    question *q = &plan->question;
    int64_t side = most(q->m, q->n);
    if (plan->symmetric)
        side = least(side, most(parts_of(side, SYMMETRIC_TILES), SYMMETRIC_ROWS));
    int64_t low = 0, high = parts_of(side, TILE_UNIT);
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        measure_tiles(plan, middle * TILE_UNIT, middle * TILE_UNIT, 1);
        if (fits(plan))
            low = middle;
        else
            high = middle - 1;
    }
    return low * TILE_UNIT;
}

/* Bands of many rows make large pieces. Doubles them while they fit, up to where more gains
 * nothing. */
static int64_t largest_band(pl_matmul_plan *plan, int64_t rows, int64_t columns)
{
    int64_t band = 1, most_rows = most(rows, most(columns, plan->depth));
    for (; band < most_rows; band *= 2) {
        measure_tiles(plan, rows, columns, band * 2);
        if (!fits(plan) || copying_bytes(plan, band * 2) > BANDS_MOST_BYTES)
            break;
    }
    return band;
}

static void count_tiles(pl_matmul_plan *plan)
{
    question *q = &plan->question;
    uint64_t down = (uint64_t)parts_of(q->m, plan->tile_rows);
    uint64_t across = (uint64_t)parts_of(q->n, plan->tile_columns);
    double area = (double)q->m * (double)q->n;
    if (plan->symmetric) /* at most, if all on the diagonal are full */
        area = (area + (double)plan->tile_rows * (double)q->n) / 2;
    plan->flops = 2 * area * (double)q->k;
    for (int right = 0; right < 2; right++) {
        if (right ? q->b_resident : q->a_resident)
            continue;
        pl_matmul_blocks blocks = pl_matmul_blocks_of(plan, right);
        uint64_t bytes = matrix_bytes(q, blocks.rows, blocks.columns);
        if (right && plan->symmetric) { /* the same blocks, half of them twice */
            plan->read_bytes += bytes;
            continue;
        }
        plan->scratch_disk_bytes += pl_matmul_blocks_disk_bytes(&blocks);
        plan->read_bytes += bytes + (right ? down : across) * bytes;
        plan->written_bytes += bytes;
    }
    if (!q->c_resident)
        plan->written_bytes += matrix_bytes(q, q->m, q->n);
    if (plan->c_in_blocks) {
        pl_matmul_blocks c = pl_matmul_blocks_of_c(plan);
        plan->scratch_disk_bytes += pl_matmul_blocks_disk_bytes(&c);
        plan->read_bytes += matrix_bytes(q, q->m, q->n);
        plan->written_bytes += matrix_bytes(q, q->m, q->n);
    }
}

/* Returns false if the disk has no room for the scratch. */
static bool lay_out(pl_matmul_plan *plan, int64_t rows, int64_t columns, bool c_in_blocks)
{
    question *q = &plan->question;
    plan->c_in_blocks = c_in_blocks;
    plan->scratch_disk_bytes = plan->read_bytes = plan->written_bytes = 0;
    measure_tiles(plan, rows, columns, largest_band(plan, rows, columns));
    set_groups(plan);
    count_tiles(plan);
    return q->disk_bytes == 0 || plan->scratch_disk_bytes <= q->disk_bytes;
}

bool pl_matmul_plan_tiles(pl_matmul_plan *plan)
{
    question *q = &plan->question;
    if (q->k == 0)
        return false;
    plan->strategy = PL_MATMUL_TILES;
    plan->symmetric = q->b_is_a;
    plan->c_in_blocks = !q->c_resident; /* as long as their width is not known */
    plan->depth = least(depth_of(q), q->k);
    int64_t side = largest_tile(plan);
    for (; side == 0 && plan->depth > 1; side = largest_tile(plan))
        plan->depth /= 2;
    if (side == 0)
        return false;
    int64_t rows = round_up(even_part(q->m, side), TILE_UNIT);
    int64_t columns = round_up(even_part(q->n, side), TILE_UNIT);
    bool narrow = !q->c_resident && columns < q->n;
    return lay_out(plan, rows, columns, narrow) || (narrow && lay_out(plan, rows, columns, false));
}

bool pl_matmul_least_tiles(pl_matmul_plan *plan)
{
    plan->depth = 1;
    plan->c_in_blocks = !plan->question.c_resident;
    measure_tiles(plan, TILE_UNIT, TILE_UNIT, 1);
    return plan->question.k > 0;
}
