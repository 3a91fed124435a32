/* SPDX-License-Identifier: Apache-2.0 */
/* Runs ops on rows longer than memory, part by part: see plan/long_rows.h. A tile's rows are rows
 * of one matrix, or, if axes follow theirs, columns of several. */
#include "exec/step/long_rows.h"

#include <string.h>

#include "exec/step/seats.h"
#include "kernels/elementwise/cast.h"
#include "kernels/reduce/reduce.h"
#include "kernels/row/scan.h"
#include "kernels/row/softmax.h"
#include "kernels/row/sort.h"
#include "tensor/dtype.h"

typedef struct matrix {
    const char *in;
    char *out;
    int64_t in_row_bytes, out_row_bytes;
    int64_t n_rows, n_columns;
    int64_t at; /* its first row's state */
    bool by_rows;
} matrix;

static int64_t n_matrices(const pl_row_part *part)
{
    return part->n_behind == 1 ? 1 : part->n_rows / part->n_behind;
}

static matrix matrix_of(const pl_row_part *part, int64_t number)
{
    const pl_long_rows *rows = &part->run->rows;
    int64_t n = part->tile.extent[rows->axis];
    bool by_rows = part->n_behind == 1;
    matrix m = {.by_rows = by_rows,
                .n_rows = by_rows ? part->n_rows : n,
                .n_columns = by_rows ? n : part->n_behind,
                .at = number * part->n_behind};
    m.in_row_bytes = m.n_columns * pl_dtype_info_of(rows->in)->item_bytes;
    m.out_row_bytes = m.n_columns * pl_dtype_info_of(rows->out)->item_bytes;
    m.in = part->in + number * m.n_rows * m.in_row_bytes;
    m.out = part->space + rows->result + number * m.n_rows * m.out_row_bytes;
    return m;
}

static void scan_part(const pl_row_part *part)
{
    const pl_long_rows *rows = &part->run->rows;
    const pl_node *node = part->run->step->node;
    const pl_scan scan = {rows->in, node->attrs[PL_ATTR_cumsum_exclusive].value.i, rows->backwards};
    for (int64_t i = 0; i < n_matrices(part); i++) {
        matrix m = matrix_of(part, i);
        const pl_scan_tile tile = {m.in,     m.out,      m.in_row_bytes, m.out_row_bytes,
                                   m.n_rows, m.n_columns};
        char *carry = part->space + rows->state + 8 * m.at;
        (m.by_rows ? pl_scan_rows : pl_scan_columns)(scan, &tile, carry);
    }
}

static pl_reduce softmax_sum(const pl_row_part *part)
{
    return (pl_reduce){PL_REDUCE_LOGSUMEXP, part->run->rows.in};
}

static pl_partials partials_of(const pl_row_part *part)
{
    return (pl_partials){part->space + part->run->rows.state, part->n_rows};
}

static void sum_part(const pl_row_part *part)
{
    for (int64_t i = 0; i < n_matrices(part); i++) {
        matrix m = matrix_of(part, i);
        const pl_reduce_tile tile = {.data = m.in,
                                     .row_bytes = m.in_row_bytes,
                                     .n_rows = m.n_rows,
                                     .n_columns = m.n_columns};
        (m.by_rows ? pl_reduce_rows : pl_reduce_columns)(softmax_sum(part), &tile,
                                                         partials_of(part), m.at);
    }
}

static void divide_part(const pl_row_part *part)
{
    bool log = part->run->step->node->op->id == PL_OP_log_softmax;
    for (int64_t i = 0; i < n_matrices(part); i++) {
        matrix m = matrix_of(part, i);
        const pl_softmax_tile tile = {m.in,     m.out,      m.in_row_bytes, m.out_row_bytes,
                                      m.n_rows, m.n_columns};
        (m.by_rows ? pl_softmax_rows_by : pl_softmax_columns_by)(part->run->rows.in, log, &tile,
                                                                 partials_of(part), m.at);
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The best so far come before those of the part, so that equal elements keep their order. */
static void choose_best(const pl_row_part *part)
{
    const pl_long_rows *rows = &part->run->rows;
    const pl_sort sort = {.dtype = rows->in, .descending = true};
    int64_t item = pl_dtype_info_of(rows->in)->item_bytes, k = rows->n_best;
    int64_t n = part->tile.extent[rows->axis];
    int64_t n_had = least(k, part->n_before), n_new = least(k, n), n_best = least(k, n_had + n_new);
    char *values = part->space + rows->candidates, *work = part->space + rows->work;
    int64_t *places = (int64_t *)(void *)(part->space + rows->candidate_places);
    int64_t *chosen = places + 2 * k;
    for (int64_t i = 0; i < part->n_rows; i++) {
        char *best = part->space + rows->state + i * k * item;
        int64_t *best_places = (int64_t *)(void *)(part->space + rows->best_places) + i * k;
        memcpy(values, best, (size_t)(n_had * item));
        memcpy(places, best_places, (size_t)n_had * sizeof *places);
        pl_top_k_row(sort, part->in + i * n * item, n, n_new, part->n_before, values + n_had * item,
                     places + n_had, work);
        pl_top_k_row(sort, values, n_had + n_new, n_best, 0, best, chosen, work);
        for (int64_t j = 0; j < n_best; j++)
            best_places[j] = places[chosen[j]];
    }
}

static int begin_rows(const pl_row_part *part, pl_long_sort *sort)
{
    switch (part->run->step->node->op->id) {
    case PL_OP_cumsum:
        memset(part->space + part->run->rows.state, 0, (size_t)part->n_rows * 8);
        break;
    case PL_OP_softmax:
    case PL_OP_log_softmax:
        pl_reduce_init(softmax_sum(part), partials_of(part), 0, part->n_rows);
        break;
    case PL_OP_sort:
    case PL_OP_argsort:
        return pl_long_sort_init(sort, part);
    default:
        break;
    }
    return 0;
}

static void do_part(const pl_row_part *part, int pass)
{
    switch (part->run->step->node->op->id) {
    case PL_OP_cumsum:
        scan_part(part);
        break;
    case PL_OP_softmax:
    case PL_OP_log_softmax:
        (pass == 0 ? sum_part : divide_part)(part);
        break;
    default:
        choose_best(part);
        break;
    }
}

int pl_row_part_store(const pl_row_part *part)
{
    pl_frame *frame = part->frame;
    const pl_long_rows *rows = &part->run->rows;
    const pl_step *step = part->run->step;
    const char *result = part->space + rows->result;
    pl_region region = part->tile;
    if (rows->ends_with_all) {
        region.begin[rows->axis] = 0;
        region.extent[rows->axis] = rows->n_best;
    }
    if (rows->out != step->node->dtype) {
        char *cast = part->space + rows->cast;
        pl_cast_find(rows->out, step->node->dtype)(cast, result, (size_t)pl_region_count(&region));
        result = cast;
    }
    pl_seats_give(frame->seats);
    int r = pl_run_store(frame->run, step->value, &region, result, &frame->error);
    pl_seats_take(frame->seats);
    return r;
}

/* Sets all axes except the op's to the rows with this number. */
static void set_rows(const pl_long_run *run, int64_t number, pl_row_part *part)
{
    part->tile.rank = run->shape->rank;
    part->n_rows = part->n_behind = 1;
    for (int i = run->shape->rank - 1; i >= 0; i--) {
        int64_t extent = run->step->extent[i], n = (run->shape->dims[i] + extent - 1) / extent;
        if (i == run->rows.axis) {
            part->n_behind = part->n_rows;
            continue;
        }
        part->tile.begin[i] = number % n * extent;
        part->tile.extent[i] = least(extent, run->shape->dims[i] - part->tile.begin[i]);
        part->n_rows *= part->tile.extent[i];
        number /= n;
    }
}

void pl_row_part_set(pl_row_part *part, int64_t number)
{
    const pl_long_run *run = part->run;
    const pl_long_rows *rows = &run->rows;
    int64_t extent = run->step->extent[rows->axis], dim = run->shape->dims[rows->axis];
    int64_t begin = (rows->backwards ? rows->n_parts - 1 - number : number) * extent;
    part->n_before = number == 0 ? 0 : part->n_before + part->tile.extent[rows->axis];
    part->tile.begin[rows->axis] = begin;
    part->tile.extent[rows->axis] = least(extent, dim - begin);
}

static int go_on(pl_row_part *part, const pl_long_sort *sort, int pass, int64_t number)
{
    const pl_long_rows *rows = &part->run->rows;
    bool gives = rows->ends_with_all ? number == rows->n_parts - 1 : pass == rows->n_passes - 1;
    pl_row_part_set(part, number);
    int r = pl_run_check(part->frame->run);
    if (r == 0)
        r = pl_tile_compute(part->frame, &part->tile, &part->in);
    if (r < 0)
        return r;
    if (rows->sorts)
        return pl_long_sort_add(sort, part);
    do_part(part, pass);
    return gives ? pl_row_part_store(part) : 0;
}

static int do_rows(pl_frame *frame, int64_t number, void *context)
{
    const pl_long_run *run = context;
    const pl_long_rows *rows = &run->rows;
    pl_row_part part = {.run = run,
                        .frame = frame,
                        .space = frame->scratch + frame->step->worker_bytes - rows->tile_bytes};
    pl_long_sort sort = {0};
    set_rows(run, number, &part);
    int r = begin_rows(&part, &sort);
    for (int pass = 0; pass < rows->n_passes; pass++)
        for (int64_t i = 0; r == 0 && i < rows->n_parts; i++)
            r = go_on(&part, &sort, pass, i);
    if (r == 0 && rows->sorts)
        r = pl_long_sort_finish(&sort, &part);
    pl_long_sort_done(&sort);
    return r;
}

int pl_run_long_rows(pl_run *run, const pl_step *step, pl_frame *frames, pl_error *reterr)
{
    pl_long_run all = {.step = step,
                       .shape = &step->program.boxes[0].shape,
                       .rows = pl_long_rows_of(step, run->plan->shapes)};
    return pl_run_parallel(run, frames, pl_step_n_frames(step), step->n_tiles, do_rows, &all,
                           reterr);
}
