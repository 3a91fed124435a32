/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts tiles of steps that only move elements within memory: transposes, slices, broadcasts. Such
 * steps need no scratch, so tiles may be large; what matters is long rows on both sides, and enough
 * tiles for every thread. See plan.h. */
#include "graph/geometry.h"
#include "plan/plan.h"

enum {
    TILE_MOST = 1 << 18,  /* elements: 512 x 512, a panel of pl_region_copy() */
    TILE_LEAST = 1 << 14, /* less is done before another thread wakes up */
    TILES = 16,           /* wanted, so that threads end at about the same time */
    ROW = 512,            /* elements of both sides' rows */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static const pl_instr *before(const pl_program *program, const pl_instr *instr)
{
    return &program->instrs[program->inputs[instr->first_input]];
}

bool pl_step_only_moves(const pl_plan *plan, const pl_step *step)
{
    const pl_program *program = &step->program;
    const pl_instr *instr = &program->instrs[program->n_instrs - 1];
    if (step->kind != PL_STEP_TILES || instr->kind != PL_INSTR_PACK ||
        plan->values[step->value].place != PL_PLACE_MEMORY)
        return false;
    do
        instr = before(program, instr);
    while (instr->kind == PL_INSTR_VIEW);
    return instr->kind == PL_INSTR_LOAD &&
           plan->values[plan->value_of[instr->value]].place == PL_PLACE_MEMORY;
}

/* The axis of the result along which the source is contiguous, or -1. Axes of size 1 do not
 * count. */
static int inner_axis_of_source(const pl_step *step)
{
    const pl_program *program = &step->program;
    const pl_instr *instr = before(program, &program->instrs[program->n_instrs - 1]);
    int rank = program->boxes[0].shape.rank, in_source[PL_RANK_MAX], axes[PL_RANK_MAX];
    for (int i = 0; i < rank; i++)
        in_source[i] = i;
    for (; instr->kind == PL_INSTR_VIEW; instr = before(program, instr)) {
        int n_new = program->boxes[instr->box].shape.rank -
                    program->boxes[before(program, instr)->box].shape.rank;
        if (instr->node->op->id == PL_OP_transpose)
            pl_transpose_axes(instr->node, axes);
        for (int i = 0; i < rank; i++) {
            if (in_source[i] >= 0 && instr->node->op->id == PL_OP_transpose)
                in_source[i] = axes[in_source[i]];
            else
                in_source[i] -= n_new;
        }
    }
    const pl_shape *source = &program->boxes[instr->box].shape;
    int inner = source->rank - 1;
    while (inner > 0 && source->dims[inner] == 1)
        inner--;
    for (int i = 0; i < rank; i++)
        if (in_source[i] == inner)
            return i;
    return -1;
}

static int64_t tile_elements(const pl_shape *shape)
{
    int64_t n = 1;
    for (int i = 0; i < shape->rank; i++)
        n *= shape->dims[i];
    return least(n / TILES > TILE_LEAST ? n / TILES : TILE_LEAST, TILE_MOST);
}

void pl_cut_move(const pl_step *step, int level, int64_t *extent)
{
    const pl_shape *shape = &step->program.boxes[0].shape;
    int64_t elements = tile_elements(shape) >> least(level, 20), product = 1;
    int last = shape->rank - 1, inner = inner_axis_of_source(step);
    for (int i = 0; i < shape->rank; i++)
        extent[i] = least(1, shape->dims[i]);
    while (last > 0 && shape->dims[last] == 1)
        last--;
    if (inner >= 0 && inner != last) { /* crosswise: rows of both sides first */
        int64_t side = 1;
        while (side < ROW && 4 * side * side <= elements)
            side *= 2;
        extent[inner] = least(side, shape->dims[inner]);
        int64_t room = extent[inner] > 0 ? elements / extent[inner] : 1;
        extent[last] = least(room < ROW ? room : ROW, shape->dims[last]);
        product = extent[inner] * extent[last];
    }
    for (int i = last; i >= 0; i--) { /* then what is left, from the inside */
        if (extent[i] == 0)
            continue;
        int64_t others = product / extent[i];
        int64_t more = others > 0 && others < elements ? elements / others : 1;
        more = least(more, shape->dims[i]);
        if (more > extent[i]) {
            extent[i] = more;
            product = others * more;
        }
    }
}
