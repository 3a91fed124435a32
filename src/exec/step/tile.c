/* SPDX-License-Identifier: Apache-2.0 */
/* Computes one tile: the regions of all boxes, from the tile's down, then the instructions in
 * order. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exec/step/run.h"
#include "exec/step/seats.h"
#include "exec/step/strips.h"
#include "graph/geometry.h"
#include "graph/op_region.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* One block holds it all, because a step of ten elements allocates one, too. */
static int alloc_frame(pl_frame *frame, size_t n_boxes, size_t n_instrs)
{
    size_t bytes = n_boxes * (sizeof *frame->regions + sizeof *frame->needed) +
                   n_instrs * sizeof *frame->registers;
    frame->regions = malloc(bytes);
    if (!frame->regions)
        return -ENOMEM;
    memset(frame->regions, 0, bytes);
    frame->registers = (pl_register *)(frame->regions + n_boxes);
    frame->needed = (bool *)(frame->registers + n_instrs);
    return 0;
}

int pl_frame_init(pl_frame *frame, pl_run *run, const pl_step *step, char *scratch,
                  pl_error *reterr)
{
    const pl_program *program = &step->program;
    *frame = (pl_frame){.run = run, .step = step, .scratch = scratch};
    int r = alloc_frame(frame, (size_t)program->n_boxes, (size_t)program->n_instrs);
    if (r == 0)
        r = pl_strips_init(frame, reterr);
    if (r == -ENOMEM)
        pl_error_set(reterr, r, "%s '%s': out of memory", step->node->op->name, step->node->name);
    return r;
}

void pl_frame_done(pl_frame *frame)
{
    free(frame->regions);
    pl_strips_done(frame);
}

void pl_region_packed_strides(const pl_region *region, size_t item_bytes,
                              int64_t strides[PL_RANK_MAX])
{
    int64_t stride = (int64_t)item_bytes;
    for (int i = region->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= region->extent[i];
    }
}

static void set_regions(pl_frame *frame, const pl_region *tile)
{
    const pl_program *program = &frame->step->program;
    const pl_shape *shapes = frame->run->plan->shapes;
    frame->regions[0] = *tile;
    frame->needed[0] = !pl_region_is_empty(tile);
    for (int i = 1; i < program->n_boxes; i++) {
        const pl_box *box = &program->boxes[i];
        frame->needed[i] = frame->needed[box->parent] &&
                           pl_op_region(box->node, shapes, &frame->regions[box->parent], box->input,
                                        &frame->regions[i]);
    }
}

/* A contiguous piece of a file bypasses the page cache, if it is so long that the plan has left
 * room. */
static int load_packed(const pl_live_value *value, const pl_box *box, size_t item_bytes,
                       const pl_region *region, uint64_t room_bytes, pl_register *reg,
                       pl_error *reterr)
{
    uint64_t bytes = (uint64_t)pl_region_count(region) * item_bytes;
    if (value->fd >= 0 || room_bytes < bytes + PL_BUFFER_AROUND_BYTES ||
        !pl_is_in_one_piece(&box->shape, region->extent))
        return pl_run_read(value, &box->shape, item_bytes, region, reg->data, reterr);
    int64_t strides[PL_RANK_MAX];
    void *data;
    pl_shape_strides(&box->shape, item_bytes, strides);
    int r = pl_buffer_read_around(value->buffer,
                                  value->offset + (uint64_t)pl_region_offset(region, strides),
                                  reg->data, bytes, &data, reterr);
    if (r == 0)
        reg->data = data;
    return r;
}

static int do_load(pl_frame *frame, const pl_instr *instr, pl_register *reg)
{
    const pl_plan *plan = frame->run->plan;
    int number = plan->value_of[instr->value];
    const pl_live_value *value = &frame->run->values[number];
    const pl_box *box = &frame->step->program.boxes[instr->box];
    const pl_region *region = &frame->regions[instr->box];
    size_t item_bytes = pl_dtype_info_of(instr->dtype)->item_bytes;
    if (value->data) {
        if (instr->node->number == instr->value)
            memcpy(reg->strides, value->strides, sizeof reg->strides);
        else
            pl_shape_strides(&box->shape, item_bytes, reg->strides);
        reg->data = value->data + pl_region_offset(region, reg->strides);
        return 0;
    }
    assert(instr->slot != PL_NO_SLOT); /* the plan knew that it would not be in memory */
    reg->data = frame->scratch + instr->slot;
    pl_seats_give(frame->seats);
    int r;
    if (plan->values[number].permuted) {
        r = pl_run_read_permuted(value, &box->shape, item_bytes, region, reg->data, reg->strides,
                                 &frame->error);
    } else {
        pl_region_packed_strides(region, item_bytes, reg->strides);
        r = load_packed(value, box, item_bytes, region, instr->slot_bytes, reg, &frame->error);
    }
    pl_seats_take(frame->seats);
    return r;
}

static void do_slice(pl_frame *frame, const pl_instr *instr, const pl_region *in, pl_register *reg)
{
    const pl_node *node = instr->node;
    const pl_region *out = &frame->regions[instr->box];
    pl_slice slice = pl_slice_of(node->op->id, node->attrs,
                                 pl_node_input_shape(node, frame->run->plan->shapes, 0));
    for (int i = 0; i < out->rank; i++) {
        int64_t first = slice.start[i] + out->begin[i] * slice.step[i];
        reg->data += (first - in->begin[i]) * reg->strides[i];
        reg->strides[i] *= slice.step[i];
    }
}

static void do_broadcast(const pl_region *out, const pl_shape *in_shape, pl_register *reg)
{
    int64_t strides[PL_RANK_MAX];
    int n_new = out->rank - in_shape->rank;
    for (int i = 0; i < out->rank; i++)
        strides[i] = i < n_new || in_shape->dims[i - n_new] == 1 ? 0 : reg->strides[i - n_new];
    memcpy(reg->strides, strides, sizeof strides);
}

static void do_view(pl_frame *frame, const pl_instr *instr, pl_register *reg)
{
    const pl_program *program = &frame->step->program;
    int input = program->inputs[instr->first_input];
    const pl_instr *from = &program->instrs[input];
    int axes[PL_RANK_MAX];
    *reg = frame->registers[input];
    switch (instr->node->op->id) {
    case PL_OP_transpose:
        pl_transpose_axes(instr->node, axes);
        for (int i = 0; i < frame->regions[instr->box].rank; i++)
            reg->strides[i] = frame->registers[input].strides[axes[i]];
        break;
    case PL_OP_broadcast_to:
        do_broadcast(&frame->regions[instr->box], &program->boxes[from->box].shape, reg);
        break;
    case PL_OP_slice:
    case PL_OP_crop:
    case PL_OP_reverse:
        do_slice(frame, instr, &frame->regions[from->box], reg);
        break;
    default: /* identity, ensure_shape */
        break;
    }
}

/* Counts how many of its elements, up to the last, are `step` bytes apart. */
static int64_t count_regular(const pl_register *reg, const pl_region *region, int64_t step)
{
    int64_t n = 1;
    for (int i = region->rank - 1; i >= 0; i--) {
        if (region->extent[i] != 1 && reg->strides[i] != step * n)
            break;
        n *= region->extent[i];
    }
    return n;
}

/* Returns whether it can be read in place. Packed, it always can; a chain also takes long rows, or
 * one element for a long row. */
static bool is_readable(const pl_instr *pack, const pl_register *from, const pl_region *region)
{
    int64_t item_bytes = pl_dtype_info_of(pack->dtype)->item_bytes;
    int64_t in_row = count_regular(from, region, item_bytes);
    if (in_row == pl_region_count(region))
        return true;
    return pack->lazy &&
           (in_row >= PL_STRIPS_LONG_ROW || count_regular(from, region, 0) >= PL_STRIPS_LONG_ROW);
}

static void do_pack(pl_frame *frame, const pl_instr *instr, char *to, pl_register *reg)
{
    const pl_register *from = &frame->registers[frame->step->program.inputs[instr->first_input]];
    const pl_region *region = &frame->regions[instr->box];
    size_t item_bytes = pl_dtype_info_of(instr->dtype)->item_bytes;
    bool to_target = to && to == frame->target;
    if (!to_target && is_readable(instr, from, region)) {
        *reg = *from;
        return;
    }
    if (to_target &&
        frame->step->direct) /* which need not be packed: moves are cut to suit both sides */
        memcpy(reg->strides, frame->run->values[frame->step->value].strides, sizeof reg->strides);
    else
        pl_region_packed_strides(region, item_bytes, reg->strides);
    pl_region_copy(to, reg->strides, from->data, from->strides, region->extent, region->rank,
                   item_bytes);
    reg->data = to;
}

static int do_op(const pl_op_call *call)
{
    switch (call->instr->kind) {
    case PL_INSTR_GENERATE:
        return pl_op_generate(call);
    case PL_INSTR_MOVE:
        return pl_op_move(call);
    case PL_INSTR_ROW:
        return pl_op_row(call);
    default:
        return pl_op_matmul(call);
    }
}

static int do_instr(pl_frame *frame, int at)
{
    const pl_program *program = &frame->step->program;
    const pl_instr *instr = &program->instrs[at];
    pl_register *reg = &frame->registers[at];
    bool to_target = frame->target && at == program->n_instrs - 1;
    char *slot = instr->slot == PL_NO_SLOT ? NULL : frame->scratch + instr->slot;
    char *to = to_target ? frame->target : slot;
    switch (instr->kind) {
    case PL_INSTR_LOAD:
        return do_load(frame, instr, reg);
    case PL_INSTR_VIEW:
        do_view(frame, instr, reg);
        return 0;
    case PL_INSTR_PACK:
        do_pack(frame, instr, to, reg);
        return 0;
    case PL_INSTR_ELEMENTWISE:
    case PL_INSTR_CAST:
        if (program->chains[instr->chain].last == at)
            pl_strips_run(frame, instr->chain);
        return 0;
    case PL_INSTR_INSIDE:
        return 0;
    default: {
        pl_op_call call = {frame, instr, &frame->regions[instr->box], to,
                           slot ? slot + instr->work : NULL};
        reg->data = to;
        pl_region_packed_strides(call.out, pl_dtype_info_of(instr->dtype)->item_bytes,
                                 reg->strides);
        return do_op(&call);
    }
    }
}

int pl_tile_compute(pl_frame *frame, const pl_region *tile, const char **ret_data)
{
    const pl_program *program = &frame->step->program;
    set_regions(frame, tile);
    for (int i = 0; i < program->n_instrs; i++) {
        if (!frame->needed[program->instrs[i].box])
            continue;
        int r = do_instr(frame, i);
        if (r < 0)
            return pl_run_name_error(program->instrs[i].node, r, &frame->error, &frame->error);
    }
    *ret_data = frame->registers[program->n_instrs - 1].data;
    return 0;
}
