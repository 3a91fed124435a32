/* SPDX-License-Identifier: Apache-2.0 */
/* Steps on a device: what they compute, and in which tiles. See device_work.h. */
#include "plan/device_work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "graph/cost.h"
#include "graph/op_region.h"
#include "tensor/dtype.h"
#include "tensor/memory.h"

/* Elements of a chain's tile at level 0: enough that the transfer takes long compared with the
 * call, while staging stays small. Then the side of a product's tile: larger ones do not multiply
 * faster. */
enum { TILE_ELEMENTS = 1 << 22, PRODUCT_SIDE = 4096, LAST_LEVEL = 64, WHOLE = -1 };

void pl_device_work_free(pl_device_work *work)
{
    if (!work)
        return;
    free(work->terms);
    free(work->inputs);
    free(work->buffer_bytes);
    free(work);
}

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "out of memory while planning");
}

static bool is_product(const pl_step *step)
{
    return step->node->op->op_class == PL_CLASS_MATMUL;
}

/* ---- what is computed ---- */

static int add_term(pl_device_work *work, pl_device_term term, int *newest)
{
    work->terms[work->n_terms] = term;
    *newest = work->n_terms;
    return work->n_terms++;
}

/* Returns the node's term; `newest` has the terms built so far. */
static int build(pl_device_work *work, const pl_program_context *context, const pl_node *node,
                 bool is_root)
{
    int *newest = &context->newest[node->number];
    if (*newest >= 0)
        return *newest;
    if (!is_root && node->op->id == PL_OP_fill)
        return add_term(work, (pl_device_term){.node = node, .input = -1}, newest);
    if (!is_root && context->stored[node->number]) {
        work->inputs[work->n_inputs] = node->number;
        return add_term(work, (pl_device_term){.node = node, .input = work->n_inputs++}, newest);
    }
    pl_device_term term = {.node = node, .input = -1};
    for (int i = 0; i < node->n_inputs; i++)
        term.operands[i] = build(work, context, node->inputs[i], false);
    return add_term(work, term, newest);
}

/* A product's matrices are inputs 0 and 1, even if both are the same value. */
static void build_product(pl_device_work *work, const pl_node *node)
{
    for (int i = 0; i < 2; i++) {
        work->inputs[i] = node->inputs[i]->number;
        work->terms[i] = (pl_device_term){.node = node->inputs[i], .input = i};
    }
    work->terms[2] = (pl_device_term){.node = node, .input = -1, .operands = {0, 1}};
    work->n_inputs = 2;
    work->n_terms = 3;
}

static double flops_of(const pl_plan *plan, const pl_step *step)
{
    pl_region whole = pl_region_whole(&plan->shapes[step->node->number]);
    double each = 0;
    for (int i = 0; i < step->work->n_terms; i++)
        if (step->work->terms[i].input < 0 && step->work->terms[i].node->n_inputs > 0)
            each += pl_node_flops_per_element(step->work->terms[i].node, plan->shapes);
    return each * (double)pl_region_count(&whole);
}

static int add_uses(pl_plan *plan, pl_step *step)
{
    const pl_device_work *work = step->work;
    step->uses = calloc((size_t)work->n_inputs + 1, sizeof *step->uses);
    if (!step->uses)
        return -ENOMEM;
    for (int i = 0; i < work->n_inputs; i++) {
        int value = plan->value_of[work->inputs[i]], now = plan->values[step->value].born;
        if (plan->values[value].last_use < now) { /* else it is both matrices of a product */
            plan->values[value].last_use = now;
            step->uses[step->n_uses++] = value;
        }
    }
    return 0;
}

static int new_work(pl_plan *plan, pl_step *step, const pl_program_context *context)
{
    pl_device_work *work = calloc(1, sizeof *work);
    size_t most = 4 * PL_DEVICE_NODES_MAX; /* each op has at most three inputs */
    step->work = work;
    if (!work)
        return -ENOMEM;
    work->terms = calloc(most, sizeof *work->terms);
    work->inputs = calloc(most, sizeof *work->inputs);
    work->buffer_bytes = calloc(most, sizeof *work->buffer_bytes);
    if (!work->terms || !work->inputs || !work->buffer_bytes)
        return -ENOMEM;
    if (is_product(step))
        build_product(work, step->node);
    else
        build(work, context, step->node, true);
    for (int i = 0; i < work->n_terms; i++)
        context->newest[work->terms[i].node->number] = -1;
    return add_uses(plan, step);
}

/* ---- tiles ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

pl_region pl_device_input_region(const pl_plan *plan, const pl_step *step, int input,
                                 const pl_region *tile)
{
    pl_region region;
    if (!is_product(step))
        return pl_region_of_broadcast(tile, &plan->shapes[step->work->inputs[input]]);
    pl_op_region(step->node, plan->shapes, tile, input, &region);
    return region;
}

/* Cuts a chain along its outermost axes, and a product into blocks of one pair of matrices. */
static void cut(const pl_shape *shape, bool product, int level, int64_t *extent)
{
    memset(extent, 0, PL_RANK_MAX * sizeof *extent);
    if (level == WHOLE) {
        memcpy(extent, shape->dims, (size_t)shape->rank * sizeof *extent);
        return;
    }
    if (!product) {
        pl_region_tiles tiles;
        pl_region whole = pl_region_whole(shape);
        int64_t elements = level < 22 ? TILE_ELEMENTS >> level : 1;
        if (pl_region_tiles_init(&tiles, &whole, 1, (uint64_t)elements) == 0)
            memcpy(extent, tiles.extent, sizeof tiles.extent);
        return;
    }
    for (int i = 0; i < shape->rank; i++)
        extent[i] = least(i < shape->rank - 2 ? 1 : PRODUCT_SIDE, shape->dims[i]);
    int64_t *rows = &extent[shape->rank - 2], *columns = rows + 1;
    for (int i = 0; i < level; i++) {
        int64_t *side = *rows >= *columns ? rows : columns;
        *side = *side / 2 + *side % 2;
    }
}

static bool is_smallest(const pl_shape *shape, bool product, const int64_t *extent)
{
    for (int i = product ? shape->rank - 2 : 0; i < shape->rank; i++)
        if (extent[i] > 1)
            return false;
    return true;
}

static uint64_t region_bytes(const pl_region *region, pl_dtype dtype)
{
    return (uint64_t)pl_region_count(region) * pl_dtype_info_of(dtype)->item_bytes;
}

/* Finds the most workspace over all tile sizes of a product: the tiles at the edges may need more
 * than full ones. */
static int find_workspace(const pl_plan *plan, pl_step *step, const pl_plan_device *device,
                          pl_error *reterr)
{
    const pl_shape *shape = &plan->shapes[step->node->number];
    const pl_shape *a = pl_node_input_shape(step->node, plan->shapes, 0);
    bool turned = step->node->attrs[PL_ATTR_matmul_transpose_a].value.i != 0;
    int64_t k = a->dims[a->rank - (turned ? 2 : 1)], rank = shape->rank;
    step->work->workspace_bytes = 0;
    for (int i = 0; i < 4; i++) {
        int64_t m = step->extent[rank - 2], n = step->extent[rank - 1];
        uint64_t bytes = 0;
        if (i & 1)
            m = m > 0 ? shape->dims[rank - 2] % m : 0;
        if (i & 2)
            n = n > 0 ? shape->dims[rank - 1] % n : 0;
        if (m == 0 || n == 0 || k == 0)
            continue;
        pl_error why = {0};
        int r = device->workspace(device->context, step->node, m, n, k, &bytes, &why);
        if (r < 0)
            return pl_error_set(reterr, r, "%s '%s': %s", step->node->op->name, step->node->name,
                                why.message);
        step->work->workspace_bytes = pl_max_u64(step->work->workspace_bytes, bytes);
    }
    return 0;
}

/* Computes the sizes of a tile's buffers. */
static int size_up(const pl_plan *plan, pl_step *step, const pl_plan_device *device, int level,
                   pl_error *reterr)
{
    pl_device_work *work = step->work;
    const pl_shape *shape = &plan->shapes[step->node->number];
    pl_region tile = {.rank = shape->rank};
    cut(shape, is_product(step), work->whole ? WHOLE : level, step->extent);
    memcpy(tile.extent, step->extent, sizeof tile.extent);
    work->device_bytes = work->turn_bytes = 0;
    for (int i = 0; i <= work->n_inputs; i++) {
        const pl_node *node =
            i < work->n_inputs ? pl_graph_node(step->node->graph, work->inputs[i]) : step->node;
        pl_region part = i < work->n_inputs ? pl_device_input_region(plan, step, i, &tile) : tile;
        work->buffer_bytes[i] = 0;
        if (pl_device_stays(plan, step, i))
            continue;
        work->buffer_bytes[i] = region_bytes(&part, node->dtype);
        work->device_bytes =
            pl_add_sat_u64(work->device_bytes, pl_staging_bytes(work->buffer_bytes[i]));
        if (i < work->n_inputs && plan->values[plan->value_of[node->number]].permuted)
            work->turn_bytes = pl_max_u64(work->turn_bytes, work->buffer_bytes[i]);
    }
    int r = is_product(step) ? find_workspace(plan, step, device, reterr) : 0;
    if (r == 0 && work->workspace_bytes > 0)
        work->device_bytes =
            pl_add_sat_u64(work->device_bytes, pl_staging_bytes(work->workspace_bytes));
    return r;
}

static bool fits(const pl_device_work *work, const pl_plan_device *device)
{
    uint64_t largest = work->workspace_bytes;
    for (int i = 0; i <= work->n_inputs; i++)
        largest = pl_max_u64(largest, work->buffer_bytes[i]);
    return pl_add_sat_u64(work->device_bytes, work->stay_bytes) <= device->budget_bytes &&
           pl_staging_bytes(largest) <= device->largest_bytes;
}

int pl_device_step_fits(const pl_plan *plan, pl_step *step, const pl_plan_device *device,
                        pl_error *reterr)
{
    int r = size_up(plan, step, device, step->work->first_level, reterr);
    return r < 0 ? r : fits(step->work, device);
}

/* Returns 1 if a level fits, 0 if not even the smallest tile does. */
static int find_first_level(const pl_plan *plan, pl_step *step, const pl_plan_device *device,
                            pl_error *reterr)
{
    const pl_node *node = step->node;
    pl_device_work *work = step->work;
    for (int level = 0; level <= LAST_LEVEL; level++) {
        int r = size_up(plan, step, device, level, reterr);
        if (r < 0)
            return r;
        work->first_level = level;
        if (fits(work, device))
            return 1;
        if (is_smallest(&plan->shapes[node->number], is_product(step), step->extent))
            break;
    }
    return 0;
}

static int too_large(pl_plan *plan, const pl_step *step, const pl_plan_request *request,
                     pl_error *reterr)
{
    const pl_node *node = step->node;
    const pl_device_work *work = step->work;
    const pl_plan_device *device = &request->devices[work->device];
    if (!request->strict)
        return pl_plan_displace(plan, step, work->device_bytes, device->budget_bytes, reterr);
    return pl_error_set(reterr, PL_EBUDGET,
                        "%s '%s': its smallest tile needs %s on %s, whose budget is %s: give at "
                        "least %s, place it on /CPU:0, or allow soft placement",
                        node->op->name, node->name, PL_SIZE(work->device_bytes), device->name,
                        PL_SIZE(device->budget_bytes), PL_SIZE(work->device_bytes));
}

int pl_device_step_build(pl_plan *plan, pl_step *step, const pl_plan_request *request,
                         const pl_program_context *context, pl_error *reterr)
{
    int device = pl_device_of(plan, step->node) - 1;
    step->kind = PL_STEP_DEVICE;
    if (new_work(plan, step, context) < 0)
        return no_memory(reterr);
    step->work->device = device;
    step->work->device_name = request->devices[device].name;
    step->flops = flops_of(plan, step);
    int r = find_first_level(plan, step, &request->devices[device], reterr);
    if (r == 0)
        r = too_large(plan, step, request, reterr);
    return r < 0 ? r : 0;
}

static int64_t count_tiles(const pl_shape *shape, const int64_t *extent)
{
    int64_t n = 1;
    for (int i = 0; i < shape->rank; i++)
        n *= extent[i] == 0 ? 0 : shape->dims[i] / extent[i] + (shape->dims[i] % extent[i] != 0);
    return n;
}

int pl_device_step_tiles(pl_plan *plan, pl_step *step, const pl_plan_request *request, int level,
                         uint64_t *ret_bytes, pl_error *reterr)
{
    pl_device_work *work = step->work;
    const pl_shape *shape = &plan->shapes[step->node->number];
    const pl_plan_device *device = &request->devices[work->device];
    int64_t before[PL_RANK_MAX];
    cut(shape, is_product(step), work->first_level + level - (level > 0), before);
    if (level > LAST_LEVEL ||
        (level > 0 && (work->whole || is_smallest(shape, is_product(step), before))))
        return 0;
    int r = size_up(plan, step, device, work->first_level + level, reterr);
    if (r < 0)
        return r;
    step->n_tiles = count_tiles(shape, step->extent);
    step->n_workers = step->n_chunks = 1;
    uint64_t bytes = pl_add_sat_u64(work->device_bytes, work->turn_bytes);
    if (!device->unified && work->workspace_bytes > 0)
        bytes -= pl_staging_bytes(work->workspace_bytes); /* the device's own memory */
    /* The alignment of scratch itself is smaller. */
    step->worker_bytes = pl_add_sat_u64(bytes, PL_DEVICE_ALIGN_BYTES) / 64 * 64 + 64;
    *ret_bytes = pl_memory_cost_bytes(step->worker_bytes);
    return 1;
}
