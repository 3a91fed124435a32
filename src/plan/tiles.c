/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a step into tiles. See plan.h.
 *
 * Tiles are cut along the outermost axes, so that reads and writes are contiguous. Where something
 * is transposed, tiles are as square as possible, so that both sides have runs of some length. */
#include <string.h>

#include "graph/geometry.h"
#include "plan/device_work.h"
#include "plan/long_rows.h"
#include "plan/plan.h"
#include "plan/reduction.h"
#include "tensor/dtype.h"
#include "tensor/memory.h"

/* Elements of a tile at level 0: all its registers should fit the second-level cache; a read from
 * disk should be a few megabytes, else the system call shows. */
enum { TILE_ELEMENTS = 1 << 16, DISK_TILE_ELEMENTS = 1 << 20 };

/* For a row op along an axis that is not the last: take this many columns at a time, unless such
 * tiles are more than this many times as large as others. Where rows are far apart, each shorter
 * fetch has to be waited for. */
enum { COLUMNS = 64, COLUMN_TILE_FACTOR = 16 };

/* A reduction to few results is done in chunks, so that there is work for several threads. The
 * number is fixed: the order of additions must not depend on the number of threads. */
enum { FEW_TILES = 8, CHUNKS = 16 };
#define CHUNK_BYTES PL_MIB

typedef struct cut {
    pl_plan *plan;
    pl_step *step;
    const pl_shape *shape; /* that is cut */
    int level;             /* 0: the best tiles */
    int64_t elements;      /* wanted in a tile */
    int halvings;          /* of a product's sides */
    int n_workers;
} cut;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return b == 0 ? 0 : a / b + (a % b != 0);
}

static pl_residence residence_of(const void *context, int number)
{
    const pl_plan *plan = context;
    const pl_plan_value *value = &plan->values[plan->value_of[number]];
    if (value->place == PL_PLACE_MEMORY)
        return value->permuted || value->scattered ? PL_IN_MEMORY : PL_DENSE;
    return value->permuted ? PL_PERMUTED : PL_ON_DISK;
}

static bool touches_disk(const pl_plan *plan, const pl_step *step)
{
    for (int i = 0; i < step->n_uses; i++)
        if (plan->values[step->uses[i]].place != PL_PLACE_MEMORY)
            return true;
    return plan->values[step->value].place != PL_PLACE_MEMORY;
}

/* Cuts the outermost axes first. An empty region has no tiles, and no extents. */
static void cut_rows(const pl_shape *shape, int64_t elements, int64_t *extent)
{
    pl_region_tiles tiles;
    pl_region whole = pl_region_whole(shape);
    memset(extent, 0, PL_RANK_MAX * sizeof *extent);
    if (pl_region_tiles_init(&tiles, &whole, 1, (uint64_t)elements) == 0)
        memcpy(extent, tiles.extent, sizeof tiles.extent);
}

static void cut_squares(const pl_shape *shape, int64_t elements, int64_t *extent)
{
    int64_t product = 1;
    for (int i = 0; i < shape->rank; i++)
        extent[i] = least(1, shape->dims[i]);
    for (bool grown = true; grown;) {
        grown = false;
        for (int i = shape->rank - 1; i >= 0; i--) {
            int64_t more = least(2 * extent[i], shape->dims[i]);
            if (more > extent[i] && product / extent[i] * more <= elements) {
                product = product / extent[i] * more;
                extent[i] = more;
                grown = true;
            }
        }
    }
}

static void cut_row_op(const cut *c, int axis, int64_t *extent)
{
    pl_shape others = *c->shape;
    int64_t in = pl_node_input_shape(c->step->node, c->plan->shapes, 0)->dims[axis];
    int64_t longest = in > others.dims[axis] ? in : others.dims[axis];
    int64_t n_rows = longest > 0 ? c->elements / longest : 1;
    if (axis < others.rank - 1) { /* what lies together is more than a few elements of each row */
        int64_t room = c->elements * COLUMN_TILE_FACTOR / (longest > 0 ? longest : 1);
        n_rows = n_rows > COLUMNS ? n_rows : least(COLUMNS, room);
    }
    others.dims[axis] = 1;
    cut_rows(&others, n_rows > 1 ? n_rows : 1, extent);
    extent[axis] = c->shape->dims[axis];
}

/* Takes whole products while they are small, several at a time; else blocks of one product. */
static void cut_product(const cut *c, int64_t *extent)
{
    int rank = c->shape->rank;
    pl_shape batch = *c->shape;
    int64_t rows = batch.dims[rank - 2], columns = batch.dims[rank - 1];
    bool small = rows == 0 || columns <= TILE_ELEMENTS / rows;
    batch.rank -= 2;
    int64_t n_products = small ? c->elements / (rows * columns > 0 ? rows * columns : 1) : 1;
    cut_rows(&batch, n_products > 1 ? n_products : 1, extent);
    if (!small && rows >= 2 * c->n_workers)
        rows = divide_up(rows, c->n_workers);
    for (int i = 0; i < c->halvings; i++) {
        int64_t *side = rows >= columns ? &rows : &columns;
        *side = divide_up(*side, 2);
    }
    extent[rank - 2] = rows;
    extent[rank - 1] = columns;
}

static int64_t count_tiles(const pl_shape *shape, const int64_t *extent, uint32_t axes)
{
    int64_t n = 1;
    for (int i = 0; i < shape->rank; i++)
        if (axes & 1u << i)
            n *= divide_up(shape->dims[i], extent[i]);
    return n;
}

static uint64_t round_up(uint64_t bytes)
{
    return pl_add_sat_u64(bytes, 63) / 64 * 64;
}

/* Plans the partials and results of a reduction. */
static void plan_partials(pl_step *step, const pl_shape *shape)
{
    uint32_t kept = ~pl_reduced_axes(step->node);
    uint64_t n_results = 1, partial_bytes = pl_reduce_bytes(pl_reduction_of(step->node));
    for (int i = 0; i < shape->rank; i++)
        if (kept & 1u << i)
            n_results *= (uint64_t)step->extent[i];
    int64_t n_folded = count_tiles(shape, step->extent, ~kept);
    uint64_t bytes = round_up(n_results * partial_bytes);
    step->n_tiles = count_tiles(shape, step->extent, kept);
    step->n_chunks = 1;
    if (step->n_tiles < FEW_TILES && n_folded > 1) {
        uint64_t room = CHUNK_BYTES / pl_max_u64(bytes * (uint64_t)step->n_tiles, 1);
        step->n_chunks = (int)pl_clamp_u64(room, 1, (uint64_t)least(n_folded, CHUNKS));
    }
    step->shared_bytes =
        step->n_chunks > 1 ? bytes * (uint64_t)(step->n_chunks * step->n_tiles) : 0;
    /* the results, and again in their stored dtype */
    step->tile_bytes = (step->n_chunks > 1 ? 0 : bytes) + 2 * round_up(n_results * 8);
}

static void plan_long_rows(const pl_plan *plan, pl_step *step, const pl_shape *shape)
{
    pl_long_rows rows = pl_long_rows_of(step, plan->shapes);
    step->tile_bytes = rows.tile_bytes;
    step->stash_bytes = rows.disk_bytes;
    step->n_tiles = count_tiles(shape, step->extent, ~(1u << rows.axis));
}

/* Returns whether the reduction can fold its input strip by strip. Where the last axis is kept,
 * rows are added to each other, and the more of them are in memory at once the better. */
static bool folds_strips(const pl_step *step, const pl_shape *shape)
{
    uint32_t folded = pl_reduced_axes(step->node);
    int last = shape->rank - 1;
    while (last >= 0 && shape->dims[last] == 1)
        last--;
    bool in_chain = step->program.instrs[step->program.n_instrs - 1].chain >= 0;
    return in_chain && last >= 0 && folded >> last & 1;
}

static pl_result result_of(const pl_plan *plan, const pl_step *step)
{
    bool on_disk = plan->values[step->value].place != PL_PLACE_MEMORY;
    return step->direct                             ? PL_RESULT_DIRECT
           : step->folds_strips                     ? PL_RESULT_STRIPS
           : on_disk && step->kind == PL_STEP_TILES ? PL_RESULT_DISK
                                                    : PL_RESULT_WHOLE;
}

static void cut_step(cut *c)
{
    pl_step *step = c->step;
    pl_op_class op_class = step->node->op->op_class;
    pl_region whole = pl_region_whole(c->shape);
    if (step->kind == PL_STEP_REDUCE && pl_region_is_empty(&whole)) /* results of nothing */
        memcpy(step->extent, whole.extent, sizeof whole.extent);
    else if (step->kind == PL_STEP_TILES && op_class == PL_CLASS_MATMUL)
        cut_product(c, step->extent);
    else if (step->kind == PL_STEP_TILES && op_class == PL_CLASS_ROW)
        cut_row_op(c, pl_row_axis(step->node), step->extent);
    else if (step->program.transposes && c->shape->rank > 1)
        cut_squares(c->shape, c->elements, step->extent);
    else
        cut_rows(c->shape, c->elements, step->extent);
}

/* As many as there are workers, if there is enough work for them. */
static int count_ahead(const pl_step *step, int64_t n_parts)
{
    int64_t n_left = n_parts > step->n_workers ? n_parts - step->n_workers : 0;
    return (int)least(least(n_left, step->n_workers), PL_STEP_AHEAD_MAX);
}

/* Levels: each halves the elements wanted in a tile, down to one; then, for a product, its
 * sides. */
enum { LEVELS = 20, PRODUCT_LEVELS = 80 };

static bool is_product(const pl_step *step)
{
    return step->node->op->op_class == PL_CLASS_MATMUL;
}

/* A large product at level 0 is whole in memory, so it is halved from the start. */
static bool is_large_product(const pl_step *step, const pl_shape *shape)
{
    if (!is_product(step))
        return false;
    int64_t rows = shape->dims[shape->rank - 2], columns = shape->dims[shape->rank - 1];
    return rows > 0 && columns > TILE_ELEMENTS / rows;
}

static cut cut_at_level(pl_plan *plan, pl_step *step, int level, int n_workers)
{
    const pl_shape *shape = &step->program.boxes[0].shape;
    int64_t most = touches_disk(plan, step) ? DISK_TILE_ELEMENTS : TILE_ELEMENTS;
    int64_t elements = most >> least(level, LEVELS);
    int beyond = level > LEVELS ? level - LEVELS : 0;
    return (cut){.plan = plan,
                 .step = step,
                 .shape = shape,
                 .level = level,
                 .elements = elements > 0 ? elements : 1,
                 .halvings = is_large_product(step, shape) ? level : beyond,
                 .n_workers = n_workers};
}

/* Sets the extents and number of its tiles, and the memory of each besides its program's. */
static void set_tiles(cut *c)
{
    pl_step *step = c->step;
    bool only_moves = pl_step_only_moves(c->plan, step);
    if (only_moves)
        pl_cut_move(step, c->level, step->extent);
    else
        cut_step(c);
    step->tile_bytes = step->shared_bytes = 0;
    step->n_chunks = 1;
    if (step->kind == PL_STEP_REDUCE)
        plan_partials(step, c->shape);
    else if (step->kind == PL_STEP_LONG_ROWS)
        plan_long_rows(c->plan, step, c->shape);
    else
        step->n_tiles = count_tiles(c->shape, step->extent, UINT32_MAX);
    step->direct =
        only_moves || (step->kind == PL_STEP_TILES && pl_is_in_one_piece(c->shape, step->extent) &&
                       c->plan->values[step->value].place == PL_PLACE_MEMORY);
    step->folds_strips = step->kind == PL_STEP_REDUCE && folds_strips(step, c->shape);
}

static void set_workers(const cut *c, bool ahead)
{
    pl_step *step = c->step;
    int64_t n_parts = step->n_tiles * step->n_chunks;
    ahead = ahead && touches_disk(c->plan, step) && !is_product(step);
    step->n_workers = (int)pl_clamp_u64((uint64_t)n_parts, 1, (uint64_t)c->n_workers);
    step->n_ahead = ahead ? count_ahead(step, n_parts) : 0;
}

/* The scratch of all workers, and what BLAS takes. */
static uint64_t claimed_bytes(pl_step *step, const pl_plan_request *request, const pl_shape *shape)
{
    uint64_t workers_bytes;
    if (__builtin_mul_overflow(step->worker_bytes, (uint64_t)pl_step_n_frames(step),
                               &workers_bytes))
        workers_bytes = UINT64_MAX;
    step->library_bytes = 0;
    if (is_product(step) && request->library_bytes)
        step->library_bytes = (uint64_t)step->n_workers *
                              request->library_bytes(pl_program_compute_dtype(step->node->dtype),
                                                     step->extent[shape->rank - 2]);
    uint64_t scratch = pl_add_sat_u64(workers_bytes, step->shared_bytes);
    return pl_add_sat_u64(pl_memory_cost_bytes(scratch), pl_memory_cost_bytes(step->library_bytes));
}

int pl_step_tiles(pl_plan *plan, pl_step *step, const pl_plan_request *request, int level,
                  pl_step_workers workers, uint64_t *ret_bytes, pl_error *reterr)
{
    if (step->kind == PL_STEP_DEVICE)
        return pl_device_step_tiles(plan, step, request, level, ret_bytes, reterr);
    if (level > (is_product(step) ? PRODUCT_LEVELS : LEVELS))
        return 0;
    cut c = cut_at_level(plan, step, level, workers.n_workers);
    set_tiles(&c);
    uint64_t program_bytes;
    int r = pl_program_layout(&step->program, plan->shapes, step->extent, result_of(plan, step),
                              residence_of, plan, &program_bytes);
    if (r < 0)
        return pl_error_set(reterr, r, "out of memory while planning");
    step->worker_bytes = pl_add_sat_u64(program_bytes, step->tile_bytes);
    set_workers(&c, workers.ahead);
    *ret_bytes = claimed_bytes(step, request, c.shape);
    return 1;
}
