/* SPDX-License-Identifier: Apache-2.0 */
/* Plans strips: see matmul_plan.h. Searches for the largest strip that fits beside two panels. */
#include "plan/matmul_plan_private.h"

enum { PANEL_DEPTHS_MOST = 3 }; /* more does not give loading the time it needs any better */

static uint64_t b_row_bytes(question *q)
{
    return (uint64_t)(q->b_transposed ? q->k : q->n) * item_of(q);
}

static void measure_strips(pl_matmul_plan *plan, int64_t rows, int64_t panel_rows)
{
    question *q = &plan->question;
    uint64_t panel = pl_matmul_buffer_bytes((uint64_t)panel_rows * b_row_bytes(q));
    plan->tile_rows = rows;
    plan->panel_rows = panel_rows;
    plan->a_bytes = q->a_resident ? 0 : pl_matmul_buffer_bytes(matrix_bytes(q, rows, q->k));
    plan->b_bytes = q->b_resident ? 0 : panel_rows < b_rows(q) ? 2 * panel : panel;
    plan->c_bytes = q->c_resident ? 0 : pl_matmul_buffer_bytes(matrix_bytes(q, rows, q->n));
    plan->scratch_bytes = PL_MATMUL_BOUNCE_BYTES + plan->a_bytes + plan->b_bytes + plan->c_bytes;
    set_workspace(plan, rows);
}

/* Panels take at most a third of the buffers, because a thin strip costs more than a thin panel:
 * all of B is packed anew for each strip. Where panels are columns of the product, A is packed for
 * each instead, and they get half. */
static int64_t panel_rows_for(question *q)
{
    if (q->b_resident)
        return b_rows(q);
    uint64_t fixed = PL_MATMUL_BOUNCE_BYTES + pl_matmul_workspace_bytes(q->dtype, 1, q->n_threads);
    uint64_t share = pl_sub_sat_u64(q->budget_bytes, fixed) / (q->b_transposed ? 2 : 3);
    uint64_t in_share = share / (2 * pl_max_u64(b_row_bytes(q), 1));
    int64_t rows = (int64_t)pl_clamp_u64(in_share, 1, (uint64_t)b_rows(q));
    if (!q->b_transposed && rows > depth_of(q))
        rows = least(rows / depth_of(q), PANEL_DEPTHS_MOST) * depth_of(q);
    return even_part(b_rows(q), rows);
}

/* Strips of a multiple of this many rows begin at the same place in a page, in both A and C. The
 * next strip is then loaded exactly over the finished one, without a copy. */
static int64_t rows_per_page(question *q)
{
    int64_t rows = 1;
    while ((!q->a_resident && (uint64_t)(rows * q->k) * item_of(q) % PL_MATMUL_PAGE_BYTES) ||
           (!q->c_resident && (uint64_t)(rows * q->n) * item_of(q) % PL_MATMUL_PAGE_BYTES))
        rows *= 2;
    return rows;
}

static bool strips_fit(pl_matmul_plan *plan, int64_t rows, int64_t panel_rows)
{
    measure_strips(plan, rows, panel_rows);
    return fits(plan);
}

static int64_t largest_strip(pl_matmul_plan *plan, int64_t panel_rows)
{
    int64_t low = 0, high = plan->question.m;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (strips_fit(plan, middle, panel_rows))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static int64_t even_strip(question *q, int64_t rows)
{
    int64_t unit = rows_per_page(q), even = even_part(q->m, rows);
    if (rows >= q->m || rows < 4 * unit)
        return even;
    rows -= rows % unit;
    return round_up(even_part(q->m, rows), unit);
}

/* False where A's strips would lie across its rows. An empty product can use any strips. */
static bool strips_possible(question *q)
{
    return !q->a_transposed || q->a_resident || q->k == 0;
}

bool pl_matmul_plan_strips(pl_matmul_plan *plan)
{
    question *q = &plan->question;
    if (!strips_possible(q))
        return false;
    plan->strategy = PL_MATMUL_STRIPS;
    plan->flops = 2.0 * (double)q->m * (double)q->n * (double)q->k;
    int64_t panel = panel_rows_for(q), rows = largest_strip(plan, panel);
    for (; rows == 0 && panel > 1; rows = largest_strip(plan, panel))
        panel /= 2;
    if (rows == 0)
        return false;
    measure_strips(plan, even_strip(q, rows), panel);
    plan->tile_columns = q->n;
    plan->depth = q->b_transposed ? q->k : panel;
    set_groups(plan);
    uint64_t n_strips = (uint64_t)parts_of(q->m, plan->tile_rows);
    if (!q->a_resident)
        plan->read_bytes += matrix_bytes(q, q->m, q->k);
    if (!q->b_resident)
        plan->read_bytes += n_strips * matrix_bytes(q, q->k, q->n);
    if (!q->c_resident)
        plan->written_bytes += matrix_bytes(q, q->m, q->n);
    return true;
}

bool pl_matmul_least_strips(pl_matmul_plan *plan)
{
    measure_strips(plan, 1, 1);
    return strips_possible(&plan->question);
}
