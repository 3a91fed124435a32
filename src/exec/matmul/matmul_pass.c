/* SPDX-License-Identifier: Apache-2.0 */
/* Computes all strips or tiles of C, one after the other; for each, sums up all steps.
 *
 * Steps go back and forth: a strip begins with the panel that the one before ended with, which is
 * still in memory. In a strip's first and last step, rows are worked through in groups: as soon as
 * a group of C is finished it is written, and A's rows of the next strip are loaded over the
 * finished ones while other groups are computed. So neither A nor C is in memory twice, and the
 * disk is always busy. */
#include <errno.h>

#include "exec/matmul/matmul_private.h"

typedef struct step {
    bool begins, ends; /* the strip or tile */
    int64_t row, n_rows, column, n_columns, inner, n_inner;
    bool add;
    int64_t a_key, b_key;
    const char *a_piece, *b_piece; /* once read */
} step;

static bool tiled(const pl_matmul_state *s)
{
    return s->plan->strategy == PL_MATMUL_TILES;
}

/* ---- the order ---- */

static int64_t tiles_across(const pl_matmul_state *s)
{
    return tiled(s) ? parts_of(s->plan->question.n, s->plan->tile_columns) : 1;
}

/* In a symmetric result, tiles right of the diagonal are copies. */
static int64_t n_outer(const pl_matmul_state *s)
{
    int64_t n = tiles_across(s);
    if (s->plan->symmetric)
        return n * (n + 1) / 2;
    return parts_of(s->plan->question.m, s->plan->tile_rows) * tiles_across(s);
}

/* At least one, even if k is 0: it sets C to zero. */
static int64_t n_steps(const pl_matmul_state *s)
{
    const pl_matmul_question *q = &s->plan->question;
    int64_t n = tiled(s) ? parts_of(q->k, s->plan->depth)
                         : parts_of(q->b_transposed ? q->n : q->k, s->plan->panel_rows);
    return n > 0 ? n : 1;
}

static void set_keys(const pl_matmul_state *s, step *t, int64_t down, int64_t across, int64_t inner)
{
    const pl_matmul_question *q = &s->plan->question;
    const pl_matmul_blocks *a = &s->a.blocks, *b = &s->b.blocks;
    t->a_key = q->a_transposed ? inner * a->n_across + down : down * a->n_across + inner;
    t->b_key = q->b_transposed ? across * b->n_across + inner : inner * b->n_across + across;
}

static step tile_step(const pl_matmul_state *s, int64_t outer, int64_t turn)
{
    const pl_matmul_plan *p = s->plan;
    const pl_matmul_question *q = &p->question;
    int64_t n_across = tiles_across(s), down = outer / n_across, across = outer % n_across;
    if (p->symmetric) {
        for (down = 0, across = outer; across > down; down++)
            across -= down + 1;
        n_across = down + 1;
    }
    if (down % 2)
        across = n_across - 1 - across;
    step t = {
        .row = down * p->tile_rows,
        .column = across * p->tile_columns,
        .inner = turn * p->depth,
    };
    t.n_columns = least(p->tile_columns, q->n - t.column);
    t.n_inner = least(p->depth, q->k - t.inner);
    set_keys(s, &t, down, across, turn);
    return t;
}

static step strip_step(const pl_matmul_state *s, int64_t outer, int64_t turn)
{
    const pl_matmul_plan *p = s->plan;
    const pl_matmul_question *q = &p->question;
    int64_t first = turn * p->panel_rows;
    step t = {.row = outer * p->tile_rows, .n_columns = q->n, .n_inner = q->k, .b_key = turn};
    if (q->b_transposed) {
        t.column = first;
        t.n_columns = least(p->panel_rows, q->n - first);
    } else {
        t.inner = first;
        t.n_inner = least(p->panel_rows, q->k - first);
    }
    return t;
}

static step step_of(const pl_matmul_state *s, int64_t number)
{
    int64_t n = n_steps(s), outer = number / n, at = number % n;
    int64_t turn = outer % 2 ? n - 1 - at : at;
    step t = tiled(s) ? tile_step(s, outer, turn) : strip_step(s, outer, turn);
    t.n_rows = least(s->plan->tile_rows, s->plan->question.m - t.row);
    t.begins = at == 0;
    t.ends = at == n - 1;
    bool sums = tiled(s) || !s->plan->question.b_transposed;
    t.add = sums && !t.begins;
    return t;
}

/* ---- one product of a step ---- */

static void point_at_a(const pl_matmul_state *s, const step *t, int64_t row, pl_gemm *g)
{
    const pl_matrix *a = &s->job->a;
    int64_t item = (int64_t)s->item_bytes, k = s->plan->question.k;
    g->a_transposed = s->plan->question.a_transposed;
    if (s->a_stays) {
        g->a_row_bytes = k * item;
        g->a = s->a_strip.data + row * g->a_row_bytes + t->inner * item;
    } else if (s->a_streams) {
        g->a_row_bytes = (g->a_transposed ? t->n_rows : t->n_inner) * item;
        g->a = t->a_piece + row * (g->a_transposed ? item : g->a_row_bytes);
    } else {
        int64_t i = t->row + row, p = t->inner;
        g->a_row_bytes = a->row_bytes;
        g->a = (const char *)a->data +
               (g->a_transposed ? p * a->row_bytes + i * item : i * a->row_bytes + p * item);
    }
}

static void point_at_b(const pl_matmul_state *s, const step *t, pl_gemm *g)
{
    const pl_matrix *b = &s->job->b;
    const pl_matmul_question *q = &s->plan->question;
    int64_t item = (int64_t)s->item_bytes;
    g->b_transposed = q->b_transposed;
    if (s->b_streams) {
        int64_t width = g->b_transposed ? t->n_inner : t->n_columns;
        g->b_row_bytes = width * item;
        g->b = t->b_piece;
    } else {
        g->b_row_bytes = b->row_bytes;
        g->b =
            (const char *)b->data + (g->b_transposed ? t->column * b->row_bytes + t->inner * item
                                                     : t->inner * b->row_bytes + t->column * item);
    }
}

static void point_at_c(const pl_matmul_state *s, const step *t, int64_t row, pl_gemm *g)
{
    const pl_matrix *c = &s->job->c;
    int64_t item = (int64_t)s->item_bytes;
    if (!s->c_stays) {
        g->c_row_bytes = c->row_bytes;
        g->c = (char *)c->data + (t->row + row) * c->row_bytes + t->column * item;
    } else {
        g->c_row_bytes = s->plan->tile_columns * item;
        g->c = s->c_strip.data + row * g->c_row_bytes + (tiled(s) ? 0 : t->column * item);
    }
}

static bool go_on(void *context, double fraction)
{
    const pl_matmul_state *s = context;
    (void)fraction;
    return !pl_must_stop(s->job->stop);
}

static int multiply(pl_matmul_state *s, const step *t, int64_t row, int64_t n_rows)
{
    pl_gemm g = {.dtype = s->plan->question.dtype,
                 .m = n_rows,
                 .n = t->n_columns,
                 .k = t->n_inner,
                 .add = t->add};
    point_at_a(s, t, row, &g);
    point_at_b(s, t, &g);
    point_at_c(s, t, row, &g);
    const pl_product_part part = pl_product_part_of(s->job->threads, &g);
    if (!pl_product_run_in_parts(s->job->threads, &g, &part, go_on, s))
        return pl_error_set(s->reterr, -ECANCELED, "cancelled");
    return 0;
}

/* ---- groups of rows ---- */

static int64_t group_rows(const pl_matmul_state *s)
{
    return parts_of(s->plan->tile_rows, s->plan->n_groups);
}

static int load_a(pl_matmul_state *s, const step *t, int64_t group)
{
    int64_t row = group * group_rows(s), n_rows = least(group_rows(s), t->n_rows - row);
    if (!s->a_stays || n_rows <= 0)
        return 0;
    uint64_t row_bytes = (uint64_t)s->plan->question.k * s->item_bytes;
    pl_panel_request q = {
        .data = s->a_strip.data + (uint64_t)row * row_bytes,
        .offset = s->job->a.offset + (uint64_t)(t->row + row) * row_bytes,
        .n_rows = n_rows,
        .row_bytes = row_bytes,
        .file_row_bytes = row_bytes,
        .data_row_bytes = row_bytes,
    };
    return pl_strip_move(s, &s->a_strip, group, q, t->row + row);
}

/* Rows of the C strip are equally long even for narrow tiles at the edge, so a group's rows are
 * always in the same place, and waiting for that group is enough before the next tile goes
 * there. */
static uint64_t c_row_bytes(const pl_matmul_state *s)
{
    return (uint64_t)s->plan->tile_columns * s->item_bytes;
}

/* Rows of a block lie one after the other, along with the padding behind them in the strip. */
static pl_panel_request block_request(const pl_matmul_state *s, int64_t row, int64_t column,
                                      int64_t n_rows, char *data)
{
    const pl_matmul_blocks *b = &s->c_blocks;
    int64_t block = row / b->block_rows * b->n_across + column / b->block_columns;
    uint64_t bytes = (uint64_t)n_rows * c_row_bytes(s);
    return (pl_panel_request){
        .write = true,
        .data = data,
        .offset = s->c_blocks_offset + (uint64_t)block * b->block_bytes +
                  (uint64_t)(row % b->block_rows) * c_row_bytes(s),
        .n_rows = 1,
        .row_bytes = bytes,
        .file_row_bytes = bytes,
        .data_row_bytes = bytes,
    };
}

pl_panel_request pl_matmul_tile_request(const pl_matmul_state *s, int64_t row, int64_t column,
                                        int64_t n_rows, int64_t n_columns, char *data)
{
    uint64_t n = (uint64_t)s->plan->question.n;
    if (s->c_blocks.n_down > 0)
        return block_request(s, row, column, n_rows, data);
    return (pl_panel_request){
        .write = true,
        .data = data,
        .offset = s->job->c.offset + ((uint64_t)row * n + (uint64_t)column) * s->item_bytes,
        .n_rows = n_rows,
        .row_bytes = (uint64_t)n_columns * s->item_bytes,
        .file_row_bytes = n * s->item_bytes,
        .data_row_bytes = c_row_bytes(s),
    };
}

static int write_c(pl_matmul_state *s, const step *t, int64_t group)
{
    int64_t row = group * group_rows(s), n_rows = least(group_rows(s), t->n_rows - row);
    if (!s->c_stays)
        return 0;
    pl_panel_request q = pl_matmul_tile_request(s, t->row + row, tiled(s) ? t->column : 0, n_rows,
                                                tiled(s) ? t->n_columns : s->plan->question.n,
                                                s->c_strip.data + (uint64_t)row * c_row_bytes(s));
    return pl_strip_move(s, &s->c_strip, group, q, 0);
}

static int wait_for_group(pl_matmul_state *s, int64_t group)
{
    int r = s->a_stays ? pl_strip_wait(s, &s->a_strip, group) : 0;
    return r == 0 && s->c_stays ? pl_strip_wait(s, &s->c_strip, group) : r;
}

/* `next`: the first step of the following strip; NULL: none follows. */
static int run_groups(pl_matmul_state *s, const step *t, const step *next)
{
    int r = 0;
    for (int64_t g = 0; g * group_rows(s) < t->n_rows && r == 0; g++) {
        int64_t row = g * group_rows(s);
        if (t->begins)
            r = wait_for_group(s, g);
        if (r < 0)
            return r;
        r = multiply(s, t, row, least(group_rows(s), t->n_rows - row));
        if (r == 0 && t->ends)
            r = write_c(s, t, g);
        if (r == 0 && t->ends && next)
            r = load_a(s, next, g);
    }
    return r;
}

/* ---- all of it ---- */

static int get_pieces(pl_matmul_state *s, step *t)
{
    int r = s->a_streams ? pl_panel_stream_get(s, &s->a, t->a_key, &t->a_piece) : 0;
    return r == 0 && s->b_streams ? pl_panel_stream_get(s, &s->b, t->b_key, &t->b_piece) : r;
}

static int want_pieces(pl_matmul_state *s, const step *t)
{
    int r = s->a_streams ? pl_panel_stream_want(s, &s->a, t->a_key) : 0;
    return r == 0 && s->b_streams ? pl_panel_stream_want(s, &s->b, t->b_key) : r;
}

static int run_step(pl_matmul_state *s, int64_t number, int64_t n_all)
{
    bool more = number + 1 < n_all;
    step t = step_of(s, number), next = more ? step_of(s, number + 1) : t;
    int r = get_pieces(s, &t);
    if (r == 0 && more)
        r = want_pieces(s, &next);
    if (r < 0)
        return r;
    if ((s->a_stays || s->c_stays) && (t.begins || t.ends))
        r = run_groups(s, &t, more ? &next : NULL);
    else
        r = multiply(s, &t, 0, t.n_rows);
    if (r == 0 && s->plan->symmetric && t.ends && t.column < t.row)
        r = pl_matmul_mirror(s, &(pl_matmul_tile){t.row, t.n_rows, t.column, t.n_columns},
                             group_rows(s));
    if (r == 0 && s->job->progress)
        s->job->progress(s->job->progress_context, (double)(number + 1) / (double)n_all);
    return r;
}

int pl_matmul_pass(pl_matmul_state *s)
{
    int64_t n_all = n_outer(s) * n_steps(s);
    step first = step_of(s, 0);
    int r = want_pieces(s, &first);
    for (int64_t g = 0; g < s->plan->n_groups && r == 0; g++)
        r = load_a(s, &first, g);
    for (int64_t i = 0; i < n_all && r == 0; i++)
        r = run_step(s, i, n_all);
    for (int64_t g = 0; g < s->plan->n_groups && r == 0; g++)
        r = s->c_stays ? pl_strip_wait(s, &s->c_strip, g) : 0;
    return r;
}
