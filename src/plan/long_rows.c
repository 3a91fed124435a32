/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/long_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "graph/geometry.h"
#include "kernels/reduce/reduce.h"
#include "kernels/row/scan.h"
#include "kernels/row/sort.h"
#include "tensor/dtype.h"

/* Takes room for n items. */
static uint64_t place(pl_long_rows *rows, uint64_t n, uint64_t item_bytes)
{
    uint64_t at = rows->tile_bytes, bytes;
    if (__builtin_mul_overflow(n, item_bytes, &bytes))
        bytes = UINT64_MAX;
    rows->tile_bytes = pl_add_sat_u64(at, pl_add_sat_u64(bytes, 63) / 64 * 64);
    return at;
}

static uint64_t round_to_pages(uint64_t bytes)
{
    return (bytes + 4095) / 4096 * 4096;
}

static uint64_t item_bytes_of(pl_dtype dtype)
{
    return pl_dtype_info_of(dtype)->item_bytes;
}

/* Places the best elements of all rows; next to them, those of one row with its next part, and work
 * space. */
static void place_best(pl_long_rows *rows, uint64_t n_rows, int64_t part)
{
    uint64_t k = (uint64_t)rows->n_best, item = item_bytes_of(rows->in), all;
    if (__builtin_mul_overflow(n_rows, k, &all) || k > INT64_MAX / 64)
        all = UINT64_MAX;
    rows->state = place(rows, all, item);
    rows->best_places = place(rows, all, 8);
    rows->candidates = place(rows, 2 * k, item);
    rows->candidate_places = place(rows, 3 * k, 8);
    int64_t longest = part > 2 * rows->n_best ? part : 2 * rows->n_best;
    rows->work = place(rows, pl_top_k_scratch_bytes(rows->in, longest, rows->n_best), 1);
}

/* Places the buffers for one row at a time. At least two runs are merged, so there is room for two
 * elements. */
static void place_runs(pl_long_rows *rows, const pl_node *node, uint64_t n_rows, int64_t part,
                       int64_t length)
{
    bool with_places = node->op->id == PL_OP_argsort;
    int64_t room = part < 2 ? 2 : part;
    uint64_t n = (uint64_t)room, item = item_bytes_of(rows->in), n_places = with_places ? n : 0;
    rows->candidates = place(rows, n, item);
    rows->sorted = place(rows, n, item);
    rows->blocks = place(rows, n, item);
    rows->candidate_places = place(rows, n_places, 8);
    rows->sorted_places = place(rows, n_places, 8);
    rows->block_places = place(rows, n_places, 8);
    rows->order = place(rows, n_places, 8);
    rows->work = place(rows,
                       with_places ? pl_argsort_scratch_bytes(rows->in, room)
                                   : pl_sort_scratch_bytes(rows->in, room),
                       1);
    uint64_t bytes = n_rows * (uint64_t)length; /* of a shape, whose bytes can be counted */
    rows->disk_bytes =
        2 * (round_to_pages(bytes * item) + (with_places ? round_to_pages(bytes * 8) : 0));
}

/* Places the parts that differ from op to op. */
static uint64_t state_bytes(pl_long_rows *rows, const pl_node *node)
{
    switch (node->op->id) {
    case PL_OP_cumsum:
        rows->out = pl_scan_result(rows->in);
        rows->backwards = node->attrs[PL_ATTR_cumsum_reverse].value.i;
        return 8;
    case PL_OP_softmax:
    case PL_OP_log_softmax:
        rows->n_passes = 2;
        return pl_reduce_bytes((pl_reduce){PL_REDUCE_LOGSUMEXP, rows->in});
    case PL_OP_argsort:
        rows->out = PL_I64;
        rows->sorts = true;
        return 0;
    case PL_OP_sort:
        rows->sorts = true;
        return 0;
    default: /* top_k has its own places */
        rows->ends_with_all = true;
        if (node->op->id == PL_OP_top_k_indices)
            rows->out = PL_I64;
        return 0;
    }
}

pl_long_rows pl_long_rows_of(const pl_step *step, const pl_shape *shapes)
{
    const pl_node *node = step->node;
    const pl_program *program = &step->program;
    const pl_shape *shape = &program->boxes[0].shape;
    pl_dtype in = program->instrs[program->n_instrs - 1].dtype;
    pl_long_rows rows = {.axis = pl_row_axis(node), .n_passes = 1, .in = in, .out = in};
    uint64_t n_rows = 1, each = state_bytes(&rows, node);
    int64_t part = step->extent[rows.axis];
    for (int i = 0; i < shape->rank; i++)
        n_rows *= i == rows.axis ? 1 : (uint64_t)step->extent[i];
    rows.n_parts = (shape->dims[rows.axis] + part - 1) / part;
    rows.n_best = shapes[node->number].dims[rows.axis];
    uint64_t n_results = n_rows * (uint64_t)(rows.ends_with_all ? rows.n_best : part);
    if (rows.ends_with_all) {
        place_best(&rows, n_rows, part);
        rows.result = node->op->id == PL_OP_top_k_values ? rows.state : rows.best_places;
    } else {
        if (rows.sorts)
            place_runs(&rows, node, n_rows, part, shape->dims[rows.axis]);
        rows.state = place(&rows, n_rows, each);
        rows.result = place(&rows, n_results, item_bytes_of(rows.out));
    }
    if (rows.out != node->dtype)
        rows.cast = place(&rows, n_results, item_bytes_of(node->dtype));
    return rows;
}

static bool can_be_long(const pl_plan *plan, const pl_step *step)
{
    const pl_node *node = step->node;
    if (step->kind != PL_STEP_TILES || node->op->op_class != PL_CLASS_ROW)
        return false;
    pl_region in = pl_region_whole(pl_node_input_shape(node, plan->shapes, 0));
    pl_region out = pl_region_whole(&plan->shapes[node->number]);
    return !pl_region_is_empty(&in) && !pl_region_is_empty(&out);
}

/* As when the step was made: see choose.c. */
static int build_input(const pl_plan *plan, const pl_node *node, pl_program *program,
                       pl_error *reterr)
{
    size_t n = (size_t)plan->n_nodes + 1;
    bool *stored = calloc(n, sizeof *stored), *dense = calloc(n, sizeof *dense);
    int *newest = calloc(n, sizeof *newest);
    int r = stored && dense && newest ? 0 : -ENOMEM;
    for (int i = 0; r == 0 && i < plan->n_nodes; i++) {
        const pl_plan_value *value =
            plan->value_of[i] < 0 ? NULL : &plan->values[plan->value_of[i]];
        stored[i] = value;
        dense[i] = value && !value->permuted && !value->scattered;
        newest[i] = -1;
    }
    const pl_program_context context = {plan->shapes, stored, dense, newest};
    if (r == 0)
        r = pl_program_build(program, &context, node->inputs[0], true, reterr);
    else
        pl_error_set(reterr, r, "out of memory while planning");
    free(stored);
    free(dense);
    free(newest);
    return r;
}

int pl_step_make_long_rows(pl_plan *plan, pl_step *step, pl_error *reterr)
{
    pl_program program;
    if (!can_be_long(plan, step))
        return 0;
    int r = build_input(plan, step->node, &program, reterr);
    if (r < 0)
        return r;
    pl_program_done(&step->program);
    step->program = program;
    step->kind = PL_STEP_LONG_ROWS;
    step->why = "has rows that do not fit, and goes along them in parts";
    return 1;
}
