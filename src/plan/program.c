/* SPDX-License-Identifier: Apache-2.0 */
/* Builds programs: see program.h. layout.c places their slots. */
#include "plan/program.h"

#include <errno.h>
#include <stdlib.h>

#include "tensor/dtype.h"
#include "tensor/shape.h"

void pl_program_done(pl_program *program)
{
    free(program->instrs);
    free(program->inputs);
    free(program->boxes);
    free(program->chains);
    *program = (pl_program){0};
}

pl_dtype pl_program_compute_dtype(pl_dtype dtype)
{
    return pl_dtype_info_of(dtype)->is_storage ? PL_F32 : dtype;
}

/* Makes room for one more item in an array; -ENOMEM. */
static int grow(void **array, int n, int *room, size_t item_bytes)
{
    if (n < *room)
        return 0;
    int more = *room ? 2 * *room : 8;
    void *grown = realloc(*array, (size_t)more * item_bytes);
    if (!grown)
        return -ENOMEM;
    *array = grown;
    *room = more;
    return 0;
}

static int add_box(pl_program *program, pl_box box)
{
    int r = grow((void **)&program->boxes, program->n_boxes, &program->room_boxes, sizeof box);
    if (r < 0)
        return r;
    program->boxes[program->n_boxes] = box;
    return program->n_boxes++;
}

/* The box of input i of a node that is computed in `box`. */
static bool is_in_same_box(const pl_program *program, const pl_program_context *context,
                           const pl_node *node, int i, int box)
{
    const pl_shape *shape = pl_node_input_shape(node, context->shapes, i);
    pl_op_id op = node->op->id;
    bool same = node->op->op_class == PL_CLASS_ELEMENTWISE ||
                node->op->op_class == PL_CLASS_STATE || op == PL_OP_identity ||
                op == PL_OP_ensure_shape;
    return same && pl_shape_equal(shape, &program->boxes[box].shape);
}

static int box_of_input(pl_program *program, const pl_program_context *context, const pl_node *node,
                        int i, int box)
{
    const pl_shape *shape = pl_node_input_shape(node, context->shapes, i);
    if (is_in_same_box(program, context, node, i, box))
        return box;
    return add_box(program, (pl_box){.parent = box, .node = node, .input = i, .shape = *shape});
}

/* Adds an instruction; its inputs follow with add_input(). */
static int add_instr(pl_program *program, pl_instr instr)
{
    int r = grow((void **)&program->instrs, program->n_instrs, &program->room_instrs, sizeof instr);
    if (r < 0)
        return r;
    instr.slot = PL_NO_SLOT;
    instr.earlier = instr.chain = instr.strip = -1;
    program->instrs[program->n_instrs] = instr;
    return program->n_instrs++;
}

static int reserve_inputs(pl_program *program, int n)
{
    for (int i = 0; i < n; i++) {
        int r = grow((void **)&program->inputs, program->n_inputs, &program->room_inputs,
                     sizeof *program->inputs);
        if (r < 0)
            return r;
        program->inputs[program->n_inputs++] = -1;
    }
    return program->n_inputs - n;
}

static int add_of_one(pl_program *program, pl_instr instr, int input)
{
    int first = reserve_inputs(program, 1);
    if (first < 0)
        return first;
    program->inputs[first] = input;
    instr.first_input = first;
    instr.n_inputs = 1;
    return add_instr(program, instr);
}

typedef struct builder {
    pl_program *program;
    const pl_program_context *context;
    pl_error *reterr;
} builder;

static int build(builder *b, const pl_node *node, int box, bool is_root);

/* Both operands of a product may be the same. */
enum { LOOK_BACK = 8 };

static int pack(builder *b, const pl_node *node, int box, int at)
{
    const pl_program *program = b->program;
    for (int i = program->n_instrs - 1; i >= 0 && i >= program->n_instrs - LOOK_BACK; i--)
        if (program->instrs[i].kind == PL_INSTR_PACK && program->instrs[i].box == box &&
            program->inputs[program->instrs[i].first_input] == at)
            return i;
    return add_of_one(
        b->program,
        (pl_instr){.kind = PL_INSTR_PACK, .node = node, .dtype = node->dtype, .box = box}, at);
}

/* Returns the node's register in `box`, packed and in this dtype. */
static int build_packed(builder *b, const pl_node *node, int box, pl_dtype dtype)
{
    int at = build(b, node, box, false);
    if (at < 0)
        return at;
    pl_instr_kind kind = b->program->instrs[at].kind;
    if (kind == PL_INSTR_LOAD || kind == PL_INSTR_VIEW)
        at = pack(b, node, box, at);
    if (at < 0 || dtype == node->dtype)
        return at;
    return add_of_one(b->program,
                      (pl_instr){.kind = PL_INSTR_CAST, .node = node, .dtype = dtype, .box = box},
                      at);
}

/* Loads a stored value; a reshape of one is the same bytes in another shape. */
static int build_load(builder *b, const pl_node *node, const pl_node *value, int box)
{
    return add_instr(b->program, (pl_instr){.kind = PL_INSTR_LOAD,
                                            .node = node,
                                            .dtype = node->dtype,
                                            .box = box,
                                            .value = value->number});
}

static int build_view(builder *b, const pl_node *node, int box)
{
    int in_box = box_of_input(b->program, b->context, node, 0, box);
    int at = in_box < 0 ? in_box : build(b, node->inputs[0], in_box, false);
    if (at < 0)
        return at;
    b->program->transposes |= node->op->id == PL_OP_transpose;
    return add_of_one(
        b->program,
        (pl_instr){.kind = PL_INSTR_VIEW, .node = node, .dtype = node->dtype, .box = box}, at);
}

/* Returns the dtype that input i is computed in: f32 for halves, unless they are only moved. */
static pl_dtype input_dtype(const pl_node *node, int i)
{
    pl_dtype dtype = node->inputs[i]->dtype;
    bool moved = node->op->op_class == PL_CLASS_MOVE || node->op->id == PL_OP_where ||
                 node->op->id == PL_OP_cast || node->op->id == PL_OP_reshape ||
                 node->op->id == PL_OP_assign;
    return moved ? dtype : pl_program_compute_dtype(dtype);
}

static pl_dtype result_dtype(const pl_node *node)
{
    return input_dtype(node, 0) != node->inputs[0]->dtype && node->dtype == node->inputs[0]->dtype
               ? PL_F32
               : node->dtype;
}

bool pl_takes_strides(const pl_node *node, int i)
{
    switch (node->op->id) {
    case PL_OP_concat:
    case PL_OP_pad:
    case PL_OP_tile:
        return true;
    case PL_OP_gather:
        return i == 0;
    default:
        return false;
    }
}

/* Builds input i of an op as the op takes it: packed, or where it lies. */
static int build_input(builder *b, const pl_node *node, int i, int box)
{
    const pl_node *input = node->inputs[i];
    pl_dtype dtype = input_dtype(node, i);
    if (dtype == input->dtype && pl_takes_strides(node, i))
        return build(b, input, box, false);
    return build_packed(b, input, box, dtype);
}

/* Builds an op on its inputs, followed by a cast if it is computed in f32. */
static int build_op(builder *b, const pl_node *node, pl_instr_kind kind, int box)
{
    pl_program *program = b->program;
    int first_of_op = node->op->id == PL_OP_assign ? 1 : 0;
    int n = node->n_inputs - first_of_op;
    int first = reserve_inputs(program, n);
    if (first < 0)
        return first;
    for (int i = 0; i < n; i++) {
        int in_box = box_of_input(program, b->context, node, first_of_op + i, box);
        int at = in_box < 0 ? in_box : build_input(b, node, first_of_op + i, in_box);
        if (at < 0)
            return at;
        program->inputs[first + i] = at;
    }
    if (node->op->id == PL_OP_assign)
        return program->inputs[first];
    int at = add_instr(program, (pl_instr){.kind = kind,
                                           .node = node,
                                           .dtype = result_dtype(node),
                                           .box = box,
                                           .first_input = first,
                                           .n_inputs = n});
    if (at < 0 || program->instrs[at].dtype == node->dtype)
        return at;
    return add_of_one(
        program, (pl_instr){.kind = PL_INSTR_CAST, .node = node, .dtype = node->dtype, .box = box},
        at);
}

static int refuse(builder *b, const pl_node *node)
{
    return pl_error_set(b->reterr, -ENOTSUP, "%s '%s': sessions cannot run it%s", node->op->name,
                        node->name, node->dtype == PL_STRING ? ": it gives strings" : "");
}

static int build_computed(builder *b, const pl_node *node, int box)
{
    if (node->dtype == PL_STRING)
        return refuse(b, node);
    switch (node->op->op_class) {
    case PL_CLASS_SOURCE:
        return add_instr(
            b->program,
            (pl_instr){.kind = PL_INSTR_GENERATE, .node = node, .dtype = node->dtype, .box = box});
    case PL_CLASS_VIEW:
        if (node->op->id == PL_OP_reshape)
            return build_op(b, node, PL_INSTR_MOVE, box);
        return build_view(b, node, box);
    case PL_CLASS_ELEMENTWISE:
        return build_op(b, node, node->op->id == PL_OP_cast ? PL_INSTR_CAST : PL_INSTR_ELEMENTWISE,
                        box);
    case PL_CLASS_STATE:
        return build_op(b, node, PL_INSTR_ELEMENTWISE, box);
    case PL_CLASS_MOVE:
        return build_op(b, node, PL_INSTR_MOVE, box);
    case PL_CLASS_ROW:
        return build_op(b, node, PL_INSTR_ROW, box);
    case PL_CLASS_MATMUL:
        return build_op(b, node, PL_INSTR_MATMUL, box);
    default:
        return refuse(b, node);
    }
}

static int build_new(builder *b, const pl_node *node, int box, bool is_root)
{
    const pl_program_context *context = b->context;
    if (context->stored[node->number] && !is_root)
        return build_load(b, node, node, box);
    if (node->op->id == PL_OP_reshape && context->dense[node->inputs[0]->number])
        return build_load(b, node, node->inputs[0], box);
    return build_computed(b, node, box);
}

static int build(builder *b, const pl_node *node, int box, bool is_root)
{
    int *newest = &b->context->newest[node->number];
    for (int at = *newest; at >= 0; at = b->program->instrs[at].earlier)
        if (b->program->instrs[at].box == box)
            return at;
    int at = build_new(b, node, box, is_root);
    if (at >= 0 && b->program->instrs[at].node == node) {
        b->program->instrs[at].earlier = *newest;
        *newest = at;
    }
    return at;
}

static int build_root(builder *b, const pl_node *node)
{
    int at = build(b, node, 0, true);
    if (at < 0 || (b->program->instrs[at].kind != PL_INSTR_LOAD &&
                   b->program->instrs[at].kind != PL_INSTR_VIEW))
        return at;
    return pack(b, node, 0, at);
}

/* ---- long chains: without recursion, because a thread's stack may be short ---- */

typedef struct visit {
    const pl_node *node;
    int next_input;
} visit;

static bool is_built(const builder *b, const pl_node *node, int box)
{
    int at = b->context->newest[node->number];
    while (at >= 0 && b->program->instrs[at].box != box)
        at = b->program->instrs[at].earlier;
    return at >= 0;
}

/* Returns the next input of a node in box 0 that is computed there as well and not built yet; NULL:
 * none. */
static const pl_node *next_in_box(const builder *b, visit *at)
{
    const pl_node *node = at->node;
    while (at->next_input < node->n_inputs) {
        int i = at->next_input++;
        const pl_node *input = node->inputs[i];
        if (is_in_same_box(b->program, b->context, node, i, 0) &&
            !b->context->stored[input->number] && !is_built(b, input, 0) &&
            !(node->op->id == PL_OP_assign && i == 0))
            return input;
    }
    return NULL;
}

/* Builds all that `root` needs in box 0, in the order of a recursion. */
static int build_ahead(builder *b, const pl_node *root)
{
    visit *stack = NULL;
    int n = 0, room = 0, r = grow((void **)&stack, n, &room, sizeof *stack);
    if (r == 0)
        stack[n++] = (visit){root, 0};
    while (r >= 0 && n > 0) {
        const pl_node *input = next_in_box(b, &stack[n - 1]);
        if (input) {
            r = grow((void **)&stack, n, &room, sizeof *stack);
            if (r == 0)
                stack[n++] = (visit){input, 0};
        } else if (--n > 0) { /* the caller builds the root */
            r = build(b, stack[n].node, 0, false);
        }
    }
    free(stack);
    return r < 0 ? r : 0;
}

/* Clears `newest`. */
static void forget(pl_program *program, const pl_program_context *context)
{
    for (int i = 0; i < program->n_instrs; i++)
        context->newest[program->instrs[i].node->number] = -1;
}

int pl_program_build(pl_program *program, const pl_program_context *context, const pl_node *node,
                     bool as_input, pl_error *reterr)
{
    builder b = {program, context, reterr};
    *program = (pl_program){0};
    int r = add_box(program, (pl_box){.parent = -1, .shape = context->shapes[node->number]});
    if (r == 0 && !(as_input && context->stored[node->number])) /* which is only loaded */
        r = build_ahead(&b, node);
    if (r == 0)
        r = as_input ? build_packed(&b, node, 0, pl_program_compute_dtype(node->dtype))
                     : build_root(&b, node);
    forget(program, context);
    if (r >= 0)
        r = pl_program_find_chains(program);
    if (r == -ENOMEM)
        pl_error_set(reterr, r, "%s '%s': out of memory while planning it", node->op->name,
                     node->name);
    if (r < 0)
        pl_program_done(program);
    return r < 0 ? r : 0;
}
