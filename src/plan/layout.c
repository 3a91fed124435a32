/* SPDX-License-Identifier: Apache-2.0 */
/* Places a program's registers in a worker's scratch. A slot is free again after the last
 * instruction that reads it. Slots are reused whole and never split, which is enough because most
 * registers of a program share one box. */
#include <errno.h>
#include <stdlib.h>

#include "graph/geometry.h"
#include "kernels/reduce/reduce.h"
#include "kernels/row/sort.h"
#include "plan/program.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"

#define ALIGN_BYTES 64

/* Reads and writes of at least this size get room for whole pages around them, and bypass the page
 * cache. Below it, the two extra calls and the copy cost more than the page cache does. */
#define AROUND_FROM_BYTES (256 * PL_KIB)

static uint64_t add(uint64_t a, uint64_t b)
{
    return pl_add_sat_u64(a, b);
}

static uint64_t round_up(uint64_t bytes)
{
    return add(bytes, ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

/* The bytes of a register. */
static uint64_t box_bytes(const pl_program *program, int box, pl_dtype dtype)
{
    uint64_t count = (uint64_t)pl_region_count(&program->boxes[box].bound);
    uint64_t bytes;
    return __builtin_mul_overflow(count, pl_dtype_info_of(dtype)->item_bytes, &bytes) ? UINT64_MAX
                                                                                      : bytes;
}

static const pl_instr *input_of(const pl_program *program, const pl_instr *instr, int i)
{
    return &program->instrs[program->inputs[instr->first_input + i]];
}

bool pl_row_goes_by_columns(const pl_node *row)
{
    return row->op->id == PL_OP_softmax || row->op->id == PL_OP_log_softmax;
}

/* The bytes of a softmax along columns: its sums for each column. */
static uint64_t column_sums_bytes(const pl_program *program, const pl_instr *in, int axis)
{
    const pl_region *bound = &program->boxes[in->box].bound;
    uint64_t bytes = pl_reduce_bytes((pl_reduce){PL_REDUCE_LOGSUMEXP, in->dtype});
    for (int i = axis + 1; i < bound->rank; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)bound->extent[i], &bytes))
            return UINT64_MAX;
    return bytes;
}

/* Room for rows transposed so that their axis is last, for their results, and for what the kernel
 * needs. */
static uint64_t row_work_bytes(const pl_program *program, const pl_instr *row)
{
    const pl_instr *in = input_of(program, row, 0);
    const pl_shape *shape = &program->boxes[in->box].shape;
    int axis = pl_row_axis(row->node);
    int64_t n = shape->dims[axis];
    int64_t k = program->boxes[row->box].shape.dims[axis];
    uint64_t bytes = 0;
    if (pl_row_goes_by_columns(row->node) && axis < shape->rank - 1)
        return column_sums_bytes(program, in, axis);
    if (axis < shape->rank - 1)
        bytes = add(round_up(box_bytes(program, in->box, in->dtype)),
                    round_up(box_bytes(program, row->box, row->dtype)));
    switch (row->node->op->id) {
    case PL_OP_sort:
        return add(bytes, pl_sort_scratch_bytes(in->dtype, n));
    case PL_OP_argsort:
        return add(bytes, pl_argsort_scratch_bytes(in->dtype, n));
    case PL_OP_top_k_values:
    case PL_OP_top_k_indices: /* also values or places that nobody asked for */
        return add(add(bytes, round_up((uint64_t)k * 8)), pl_top_k_scratch_bytes(in->dtype, n, k));
    default:
        return bytes;
    }
}

static uint64_t work_bytes(const pl_program *program, const pl_instr *instr)
{
    if (instr->kind == PL_INSTR_ROW)
        return row_work_bytes(program, instr);
    if (instr->kind == PL_INSTR_MOVE && instr->node->op->id == PL_OP_gather) /* the map */
        return box_bytes(program, input_of(program, instr, 1)->box, PL_I64);
    return 0;
}

bool pl_is_in_one_piece(const pl_shape *shape, const int64_t *extent)
{
    int axis = 0;
    while (axis < shape->rank && extent[axis] == 1)
        axis++;
    for (axis++; axis < shape->rank; axis++)
        if (extent[axis] != shape->dims[axis])
            return false;
    return true;
}

/* Returns whether a load arrives packed, so that its pack has nothing to do: always from disk; in
 * memory, where the whole value is dense and the tile is one piece of it. For other boxes only a
 * bound of the size is known. */
static bool comes_packed(const pl_program *program, const pl_instr *load,
                         pl_program_residence *residence, const void *context)
{
    const pl_box *box = &program->boxes[load->box];
    if (load->kind != PL_INSTR_LOAD)
        return false;
    pl_residence where = residence(context, load->value);
    return where == PL_ON_DISK || (where == PL_DENSE && load->box == 0 &&
                                   pl_is_in_one_piece(&box->shape, box->bound.extent));
}

static bool needs_slot(const pl_program *program, const pl_instr *instr,
                       pl_program_residence *residence, const void *context)
{
    switch (instr->kind) {
    case PL_INSTR_VIEW:
    case PL_INSTR_INSIDE:
        return false;
    case PL_INSTR_LOAD: {
        pl_residence where = residence(context, instr->value);
        return where == PL_ON_DISK || where == PL_PERMUTED;
    }
    case PL_INSTR_PACK:
        return !comes_packed(program, input_of(program, instr, 0), residence, context);
    default:
        return instr->chain < 0 || instr->whole;
    }
}

static uint64_t register_bytes(const pl_program *program, const pl_instr *instr, pl_result result)
{
    uint64_t bytes = round_up(box_bytes(program, instr->box, instr->dtype));
    bool goes_out = result == PL_RESULT_DISK && instr == &program->instrs[program->n_instrs - 1];
    return (instr->kind == PL_INSTR_LOAD || goes_out) && bytes >= AROUND_FROM_BYTES
               ? add(bytes, PL_BUFFER_AROUND_BYTES)
               : bytes;
}

static bool passes_on(const pl_instr *instr)
{
    return instr->kind == PL_INSTR_VIEW || instr->kind == PL_INSTR_PACK;
}

static void set_bounds(pl_program *program, const pl_shape *shapes, const int64_t *extent)
{
    for (int i = 0; i < program->n_boxes; i++) {
        pl_box *box = &program->boxes[i];
        if (box->parent >= 0) {
            box->bound = pl_bound_of_input(box->node, shapes, &program->boxes[box->parent].bound,
                                           box->input);
            continue;
        }
        box->bound = (pl_region){.rank = box->shape.rank};
        for (int k = 0; k < box->shape.rank; k++)
            box->bound.extent[k] = extent[k];
    }
}

typedef struct free_slot {
    uint64_t slot, bytes;
} free_slot;

typedef struct allotment {
    free_slot *free; /* as many as there are instructions */
    int n_free;
    int *last_use;
    uint64_t end;
} allotment;

/* Takes the smallest free slot that is large enough, but at most twice as large. */
static void allot(allotment *a, pl_instr *instr, uint64_t bytes)
{
    int best = -1;
    for (int i = 0; i < a->n_free; i++)
        if (a->free[i].bytes >= bytes && a->free[i].bytes / 2 <= bytes &&
            (best < 0 || a->free[i].bytes < a->free[best].bytes))
            best = i;
    if (best >= 0) {
        instr->slot = a->free[best].slot;
        instr->slot_bytes = a->free[best].bytes;
        a->free[best] = a->free[--a->n_free];
        return;
    }
    instr->slot = a->end;
    instr->slot_bytes = bytes;
    a->end = add(a->end, bytes);
}

/* Returns when the instruction runs: a chain runs as a whole, with its last instruction. */
static int due(const pl_program *program, int at)
{
    int chain = program->instrs[at].chain;
    return chain < 0 ? at : program->chains[chain].last;
}

static void set_last_uses(const pl_program *program, int *last_use)
{
    int n = program->n_instrs;
    for (int i = 0; i < n; i++)
        last_use[i] = i == n - 1 ? n : i;
    for (int i = n - 1; i >= 0; i--)
        for (int k = 0; k < program->instrs[i].n_inputs; k++) {
            int *of_input = &last_use[program->inputs[program->instrs[i].first_input + k]];
            int until = passes_on(&program->instrs[i]) ? last_use[i] : due(program, i);
            *of_input = *of_input > until ? *of_input : until;
        }
}

static void release_one(const pl_program *program, allotment *a, int i, int at)
{
    const pl_instr *instr = &program->instrs[i];
    if (a->last_use[i] == at && instr->slot != PL_NO_SLOT) {
        a->free[a->n_free++] = (free_slot){instr->slot, instr->slot_bytes};
        a->last_use[i] = -1;
    }
    if (passes_on(instr))
        release_one(program, a, program->inputs[instr->first_input], at);
}

static void release_inputs(const pl_program *program, allotment *a, int i, int at)
{
    const pl_instr *instr = &program->instrs[i];
    for (int k = 0; k < instr->n_inputs; k++)
        release_one(program, a, program->inputs[instr->first_input + k], at);
}

/* Frees the slots whose last reader runs at `at`: those of its inputs, and those that its inputs
 * point into. */
static void release(const pl_program *program, allotment *a, int at)
{
    int chain = program->instrs[at].chain;
    if (due(program, at) != at)
        return;
    for (int i = chain < 0 ? at : program->chains[chain].first; i <= at; i++)
        if (i == at || program->instrs[i].chain == chain)
            release_inputs(program, a, i, at);
    release_one(program, a, at, at);
}

/* Chains run one after the other and share one place for strips. */
static uint64_t place_strips(pl_program *program, uint64_t base, pl_result result)
{
    uint64_t end = base;
    for (int i = 0; i < program->n_chains; i++)
        end = pl_max_u64(end, pl_chain_layout(program, i, base, result));
    return end;
}

int pl_program_layout(pl_program *program, const pl_shape *shapes, const int64_t *extent,
                      pl_result result, pl_program_residence *residence, const void *context,
                      uint64_t *ret_bytes)
{
    int n = program->n_instrs;
    allotment a = {.free = calloc((size_t)n, sizeof *a.free),
                   .last_use = calloc((size_t)n, sizeof *a.last_use)};
    if (!a.free || !a.last_use) {
        free(a.free);
        free(a.last_use);
        return -ENOMEM;
    }
    set_bounds(program, shapes, extent);
    set_last_uses(program, a.last_use);
    for (int i = 0; i < n && a.end != UINT64_MAX; i++) {
        pl_instr *instr = &program->instrs[i];
        uint64_t bytes = 0, work = round_up(work_bytes(program, instr));
        bool has_place = i == n - 1 && (result == PL_RESULT_DIRECT || result == PL_RESULT_STRIPS);
        if (needs_slot(program, instr, residence, context) && !has_place)
            bytes = register_bytes(program, instr, result);
        instr->slot = PL_NO_SLOT;
        if (bytes > 0 || work > 0)
            allot(&a, instr, add(bytes, work));
        instr->work = bytes;
        release(program, &a, i);
    }
    free(a.free);
    free(a.last_use);
    *ret_bytes = a.end == UINT64_MAX ? a.end : place_strips(program, a.end, result);
    return 0;
}
