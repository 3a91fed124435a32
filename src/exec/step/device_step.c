/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a step on a device: for each tile, packs the parts of the inputs into staging, sends them,
 * runs the kernel or the product, then fetches and stores the result. Values that stay there are in
 * buffers of their own. See plan/device_work.h. */
#include "exec/step/device_step.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "device/clblast.h"
#include "device/devices.h"
#include "plan/device_work.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* The planner does not depend on src/device, so it has its own copies of these numbers. */
static_assert(PL_DEVICE_ALIGN_BYTES == PL_STAGING_ALIGN_BYTES,
              "buffers take as much as was planned");
static_assert((int)PL_DEVICE_NODES_MAX <= (int)PL_DEVICE_CHAIN_OPS_MAX,
              "all ops of a step are one kernel");

typedef struct device_run {
    pl_run *run;
    const pl_step *step;
    pl_device_job job;
    pl_device_chain chain;
    int axis_of[PL_RANK_MAX]; /* the chain's axis for each axis of the result; -1: it is 1 */
    char *turn;               /* where axes are put in order */
} device_run;

/* ---- the chain ---- */

static bool is_repeated(const pl_shape *in, const pl_shape *out, int axis)
{
    int at = axis - (out->rank - in->rank);
    return at < 0 || (in->dims[at] == 1 && out->dims[axis] != 1);
}

static uint32_t repeats_of(const device_run *d, const pl_shape *in, const pl_shape *out)
{
    uint32_t repeated = 0;
    for (int i = 0; i < out->rank; i++)
        if (d->axis_of[i] >= 0 && is_repeated(in, out, i))
            repeated |= 1u << d->axis_of[i];
    return repeated;
}

/* Returns whether all inputs treat these two axes alike. */
static bool are_alike(const device_run *d, int axis, int other)
{
    const pl_device_work *work = d->step->work;
    const pl_shape *shapes = d->run->plan->shapes, *out = &shapes[d->step->node->number];
    for (int i = 0; i < work->n_inputs; i++)
        if (is_repeated(&shapes[work->inputs[i]], out, axis) !=
            is_repeated(&shapes[work->inputs[i]], out, other))
            return false;
    return true;
}

/* Merges axes by shapes, not by tiles, so that all tiles have the same kernel. */
static void merge_axes(device_run *d)
{
    const pl_shape *out = &d->run->plan->shapes[d->step->node->number];
    int last = -1;
    d->chain.rank = 0;
    for (int i = 0; i < out->rank; i++) {
        d->axis_of[i] = -1;
        if (out->dims[i] == 1)
            continue;
        d->axis_of[i] = last >= 0 && are_alike(d, last, i) ? d->chain.rank - 1 : d->chain.rank++;
        last = i;
    }
    if (d->chain.rank == 0)
        d->chain.rank = 1;
}

static void set_number(const pl_node *fill, pl_device_chain_term *term)
{
    unsigned char element[8] = {0};
    pl_element_of(&fill->attrs[PL_ATTR_fill_value], fill->dtype, element);
    term->kind = PL_TERM_NUMBER;
    for (int i = 0; i < 8; i++)
        term->bits |= (uint64_t)element[i] << (8 * i);
}

static void build_chain(device_run *d)
{
    const pl_device_work *work = d->step->work;
    const pl_shape *shapes = d->run->plan->shapes, *out = &shapes[d->step->node->number];
    d->chain.n_terms = work->n_terms;
    merge_axes(d);
    for (int i = 0; i < work->n_terms; i++) {
        const pl_device_term *from = &work->terms[i];
        pl_device_chain_term *term = &d->chain.terms[i];
        *term = (pl_device_chain_term){.dtype = from->node->dtype};
        memcpy(term->operands, from->operands, sizeof term->operands);
        if (from->input >= 0)
            term->repeated = repeats_of(d, &shapes[work->inputs[from->input]], out);
        else if (from->node->op->id == PL_OP_fill)
            set_number(from->node, term);
        else if (from->node->op->id == PL_OP_cast)
            term->kind = PL_TERM_CAST;
        else {
            term->kind = PL_TERM_OP;
            term->op = pl_elementwise_by_name(from->node->op->name);
        }
    }
}

static int compute_chain(device_run *d, const pl_region *tile, pl_error *reterr)
{
    int64_t extents[PL_RANK_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (int i = 0; i < tile->rank; i++)
        if (d->axis_of[i] >= 0)
            extents[d->axis_of[i]] *= tile->extent[i];
    return pl_device_job_chain(&d->job, &d->chain, extents, reterr);
}

/* ---- products ---- */

static int compute_product(device_run *d, const pl_region *tile, pl_error *reterr)
{
    const pl_node *node = d->step->node;
    pl_region a = pl_device_input_region(d->run->plan, d->step, 0, tile);
    bool a_transposed = node->attrs[PL_ATTR_matmul_transpose_a].value.i != 0;
    const pl_device_product product = {node->dtype,
                                       tile->extent[tile->rank - 2],
                                       tile->extent[tile->rank - 1],
                                       a.extent[a.rank - (a_transposed ? 2 : 1)],
                                       a_transposed,
                                       node->attrs[PL_ATTR_matmul_transpose_b].value.i != 0};
    return pl_clblast_run(&d->job, &product, reterr);
}

/* ---- tiles ---- */

static bool is_product(const pl_step *step)
{
    return step->node->op->op_class == PL_CLASS_MATMUL;
}

/* Reads a value on disk whose axes lie in another order: as they lie, then puts them in order. */
static int read_permuted(device_run *d, const pl_live_value *value, const pl_shape *shape,
                         const pl_region *region, size_t item_bytes, char *to, pl_error *reterr)
{
    int64_t strides[PL_RANK_MAX], wanted[PL_RANK_MAX];
    int r = pl_run_read_permuted(value, shape, item_bytes, region, d->turn, strides, reterr);
    if (r < 0)
        return r;
    pl_region_packed_strides(region, item_bytes, wanted);
    pl_region_copy(to, wanted, d->turn, strides, region->extent, region->rank, item_bytes);
    return 0;
}

/* Packs the region of an input into staging. */
static int load(device_run *d, int input, const pl_region *region, char *to, pl_error *reterr)
{
    const pl_plan *plan = d->run->plan;
    int number = plan->value_of[d->step->work->inputs[input]];
    const pl_node *node = plan->values[number].node;
    const pl_live_value *value = &d->run->values[number];
    const pl_shape *shape = &plan->shapes[node->number];
    size_t item_bytes = pl_dtype_info_of(node->dtype)->item_bytes;
    if (!value->data)
        return plan->values[number].permuted
                   ? read_permuted(d, value, shape, region, item_bytes, to, reterr)
                   : pl_run_read(value, shape, item_bytes, region, to, reterr);
    int64_t strides[PL_RANK_MAX];
    pl_region_packed_strides(region, item_bytes, strides);
    pl_region_copy(to, strides, value->data + pl_region_offset(region, value->strides),
                   value->strides, region->extent, region->rank, item_bytes);
    return 0;
}

static uint64_t region_bytes(const pl_region *region, const pl_node *node)
{
    return (uint64_t)pl_region_count(region) * pl_dtype_info_of(node->dtype)->item_bytes;
}

static int send(device_run *d, const pl_region *tile, pl_error *reterr)
{
    const pl_device_work *work = d->step->work;
    for (int i = 0; i < work->n_inputs; i++) {
        if (pl_device_stays(d->run->plan, d->step, i))
            continue;
        const pl_node *node = pl_graph_node(d->step->node->graph, work->inputs[i]);
        pl_region region = pl_device_input_region(d->run->plan, d->step, i, tile);
        uint64_t bytes = region_bytes(&region, node);
        int r = pl_device_job_fill_begin(&d->job, i, bytes, reterr);
        if (r < 0)
            return r;
        r = load(d, i, &region, d->job.staging[i], reterr);
        int ended = pl_device_job_fill_end(&d->job, i, bytes, r < 0 ? NULL : reterr);
        if (r < 0 || ended < 0)
            return r < 0 ? r : ended;
    }
    return 0;
}

static int fetch(device_run *d, const pl_region *tile, pl_error *reterr)
{
    int result = d->step->work->n_inputs;
    uint64_t bytes = region_bytes(tile, d->step->node);
    if (pl_device_stays(d->run->plan, d->step, result))
        return pl_device_job_wait(&d->job, reterr);
    int r = pl_device_job_fetch_begin(&d->job, result, bytes, reterr);
    if (r < 0)
        return r;
    r = pl_run_store(d->run, d->step->value, tile, d->job.staging[result], reterr);
    int ended = pl_device_job_fetch_end(&d->job, result, r < 0 ? NULL : reterr);
    return r < 0 ? r : ended;
}

/* Stores the result of an empty sum. */
static int store_zeros(device_run *d, const pl_region *tile, pl_error *reterr)
{
    char *staging = d->job.staging[d->step->work->n_inputs];
    memset(staging, 0, region_bytes(tile, d->step->node));
    return pl_run_store(d->run, d->step->value, tile, staging, reterr);
}

static int compute_tile(device_run *d, const pl_region *tile, pl_error *reterr)
{
    if (is_product(d->step)) {
        pl_region a = pl_device_input_region(d->run->plan, d->step, 0, tile);
        if (pl_region_is_empty(&a))
            return store_zeros(d, tile, reterr);
    }
    int r = send(d, tile, reterr);
    if (r == 0)
        r = is_product(d->step) ? compute_product(d, tile, reterr) : compute_chain(d, tile, reterr);
    return r == 0 ? fetch(d, tile, reterr) : r;
}

static int run_part(pl_frame *frame, int64_t part, void *context)
{
    device_run *d = context;
    const pl_node *node = d->step->node;
    pl_error why = {0};
    pl_region tile = pl_region_tile_at(&d->run->plan->shapes[node->number], d->step->extent, part);
    int r = compute_tile(d, &tile, &why);
    if (r < 0)
        pl_run_name_error(node, r, &why, &frame->error);
    return r;
}

/* ---- the step ---- */

static int check_run(const void *context)
{
    return pl_run_check(context);
}

static char *aligned(char *at)
{
    return at + (-(uintptr_t)at & (PL_STAGING_ALIGN_BYTES - 1));
}

/* Claims device memory for this step and, if values stay, for those after it. */
static int claim(const device_run *d, pl_device *device, pl_error *reterr)
{
    const pl_device_work *work = d->step->work;
    pl_run *run = d->run;
    if (work->claim_bytes == 0)
        return 0;
    int r = pl_device_claim(device, work->claim_bytes, (pl_room_check){check_run, run}, reterr);
    if (r < 0)
        return r;
    run->device = work->device;
    run->device_bytes = work->claim_bytes;
    return 0;
}

/* Makes the step's own value, which stays on the device: in a block of host memory if memory is
 * unified. */
static int make_on_device(const device_run *d, pl_device *device, pl_error *reterr)
{
    pl_run *run = d->run;
    const pl_plan_value *planned = &run->plan->values[d->step->value];
    pl_live_value *value = &run->values[d->step->value];
    cl_mem buffer;
    int r = !device->unified
                ? 0
                : pl_memory_take(run->runtime->memory, pl_stay_block_bytes(planned->bytes),
                                 d->step->node->name, &value->block, reterr);
    if (r == 0)
        r = pl_device_buffer_new(device, planned->bytes,
                                 device->unified ? aligned(value->block.data) : NULL, &buffer,
                                 reterr);
    if (r == 0)
        value->on_device = buffer;
    return r;
}

void pl_run_leave_device(pl_live_value *value)
{
    if (value->on_device)
        pl_device_buffer_free(PL_TAKE(value->on_device));
}

void pl_run_release_device(pl_run *run)
{
    for (int i = 0; run->device_bytes > 0 && i < run->plan->n_values; i++)
        if (run->values[i].on_device)
            pl_run_drop_value(run, i);
    if (run->device_bytes > 0)
        pl_device_release(pl_devices_at(pl_devices_of(run->runtime), run->device),
                          run->device_bytes);
    run->device_bytes = 0;
}

static cl_mem buffer_there(const device_run *d, int input)
{
    const pl_plan *plan = d->run->plan;
    const pl_device_work *work = d->step->work;
    int value = input < work->n_inputs ? plan->value_of[work->inputs[input]] : d->step->value;
    return d->run->values[value].on_device;
}

static int begin(device_run *d, pl_device *device, char *scratch, pl_error *reterr)
{
    const pl_device_work *work = d->step->work;
    pl_device_job_buffer buffers[PL_JOB_BUFFERS_MAX];
    int n = work->n_inputs + 1, r = 0;
    char *at = aligned(scratch);
    if (pl_device_stays(d->run->plan, d->step, work->n_inputs))
        r = make_on_device(d, device, reterr);
    for (int i = 0; i < n; i++) {
        buffers[i] = (pl_device_job_buffer){.there = buffer_there(d, i)};
        if (buffers[i].there)
            continue;
        buffers[i] = (pl_device_job_buffer){.bytes = work->buffer_bytes[i], .staging = at};
        at += pl_staging_bytes(work->buffer_bytes[i]);
    }
    if (work->workspace_bytes > 0) {
        buffers[n++] = (pl_device_job_buffer){.bytes = work->workspace_bytes,
                                              .staging = device->unified ? at : NULL};
        at += device->unified ? pl_staging_bytes(work->workspace_bytes) : 0;
    }
    d->turn = at;
    if (r == 0)
        r = pl_device_job_begin(&d->job, device, n, buffers, reterr);
    if (r < 0 || is_product(d->step))
        return r;
    build_chain(d);
    r = pl_device_job_set_chain(&d->job, &d->chain, reterr);
    if (r < 0)
        pl_device_job_end(&d->job);
    return r;
}

int pl_run_device(pl_run *run, const pl_step *step, char *scratch, pl_error *reterr)
{
    device_run d = {.run = run, .step = step};
    pl_frame frame = {.run = run, .step = step};
    pl_error why = {0};
    if (step->n_tiles == 0)
        return 0;
    pl_device *device = pl_devices_at(pl_devices_of(run->runtime), step->work->device);
    int r = claim(&d, device, &why);
    if (r == 0)
        r = begin(&d, device, scratch, &why);
    if (r < 0)
        return pl_run_name_error(step->node, r, &why, reterr);
    r = pl_run_parallel(run, &frame, 1, step->n_tiles, run_part, &d, reterr);
    pl_device_job_end(&d.job);
    return r;
}
