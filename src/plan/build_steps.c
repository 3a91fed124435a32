/* SPDX-License-Identifier: Apache-2.0 */
/* Makes values and steps from the nodes that choose.c has chosen. See choose_private.h. */
#include <errno.h>
#include <stdlib.h>

#include "graph/cost.h"
#include "plan/choose_private.h"
#include "plan/device_work.h"
#include "plan/product.h"
#include "tensor/dtype.h"
#include "tensor/memory.h"
#include "tensor/shape.h"

static int add_value(pl_plan *plan, const pl_node *node, bool from_outside, pl_error *reterr)
{
    int64_t bytes;
    size_t item_bytes = pl_dtype_info_of(node->dtype)->item_bytes;
    const pl_shape *shape = &plan->shapes[node->number];
    if (!pl_shape_is_known(shape))
        return pl_error_set(reterr, -EINVAL, "%s '%s': its shape %s is not known: feed it",
                            node->op->name, node->name, PL_SHAPE_TEXT(shape));
    int r = pl_shape_bytes(shape, item_bytes, &bytes, reterr);
    if (r < 0)
        return r;
    plan->value_of[node->number] = plan->n_values;
    plan->values[plan->n_values++] = (pl_plan_value){.node = node,
                                                     .bytes = (uint64_t)bytes,
                                                     .from_outside = from_outside,
                                                     .born = -1,
                                                     .last_use = -1};
    return 0;
}

int pl_build_add_source(pl_chooser *c, const pl_plan_source *source, pl_error *reterr)
{
    pl_plan *plan = c->plan;
    const pl_shape *shape = &plan->shapes[source->node->number];
    if (plan->value_of[source->node->number] >= 0)
        return pl_error_set(reterr, -EINVAL, "'%s' is given twice", source->node->name);
    if (!pl_shape_equal(shape, &source->shape))
        return pl_error_set(reterr, -EINVAL, "%s '%s': its shape is %s, and it is given %s",
                            source->node->op->name, source->node->name, PL_SHAPE_TEXT(shape),
                            PL_SHAPE_TEXT(&source->shape));
    int r = add_value(plan, source->node, true, reterr);
    if (r < 0)
        return r;
    pl_plan_value *value = &plan->values[plan->n_values - 1];
    value->place = source->resident || source->scattered ? PL_PLACE_MEMORY : PL_PLACE_SPILL;
    value->permuted = source->permuted;
    value->swapped = source->swapped;
    value->resident = source->resident;
    value->own = source->own && source->resident;
    value->scattered = source->scattered;
    value->holder = source->holder ? source->holder : source->node;
    value->holder_bytes =
        source->holder ? source->holder_bytes : pl_memory_cost_bytes(value->bytes);
    c->demands[source->node->number].source = true;
    return 0;
}

static int check_given(const pl_chooser *c, const pl_node *node, pl_error *reterr)
{
    const pl_node_demand *w = &c->demands[node->number];
    if (!w->needed || w->source || node->op->op_class != PL_CLASS_SOURCE ||
        pl_node_is_generator(node))
        return 0;
    return pl_error_set(reterr, -EINVAL, "%s '%s' has no value: %s", node->op->name, node->name,
                        node->op->id == PL_OP_placeholder ? "feed it" : "give it one first");
}

static int add_uses(pl_plan *plan, pl_step *step, int number, pl_error *reterr)
{
    const pl_program *program = &step->program;
    step->uses = calloc((size_t)program->n_instrs + 1, sizeof *step->uses);
    if (!step->uses)
        return pl_error_set(reterr, -ENOMEM, "out of memory while planning");
    for (int i = 0; i < program->n_instrs; i++) {
        if (program->instrs[i].kind != PL_INSTR_LOAD)
            continue;
        int value = plan->value_of[program->instrs[i].value];
        if (plan->values[value].last_use < number) {
            plan->values[value].last_use = number;
            step->uses[step->n_uses++] = value;
        }
    }
    return 0;
}

static double step_flops(const pl_plan *plan, const pl_step *step)
{
    double flops = 0;
    const pl_program *program = &step->program;
    if (step->kind == PL_STEP_REDUCE) {
        pl_region whole = pl_region_whole(&plan->shapes[step->node->number]);
        flops =
            (double)pl_region_count(&whole) * pl_node_flops_per_element(step->node, plan->shapes);
    }
    for (int i = 0; i < program->n_instrs; i++) {
        const pl_instr *instr = &program->instrs[i];
        if (instr->kind == PL_INSTR_LOAD || instr->kind == PL_INSTR_PACK)
            continue;
        pl_region whole = pl_region_whole(&program->boxes[instr->box].shape);
        double each =
            instr->kind == PL_INSTR_CAST ? 1 : pl_node_flops_per_element(instr->node, plan->shapes);
        flops += (double)pl_region_count(&whole) * each;
    }
    return flops;
}

/* A matrix times itself takes half the time if it is in memory. */
static int add_product(pl_plan *plan, pl_step *step, const bool *stored, pl_error *reterr)
{
    int r = pl_product_new(plan, stored, step->node, &step->product);
    if (r < 0)
        return pl_error_set(reterr, r, "out of memory while planning");
    if (step->product && step->product->question.b_is_a)
        plan->values[step->product->a.value].place = PL_PLACE_MEMORY;
    return 0;
}

static int add_step(pl_chooser *c, const pl_program_context *context, const pl_node *node,
                    pl_error *reterr)
{
    pl_plan *plan = c->plan;
    const pl_node_demand *w = &c->demands[node->number];
    int number = plan->n_steps;
    pl_step *step = &plan->steps[plan->n_steps++];
    bool reduces = node->op->op_class == PL_CLASS_REDUCE;
    *step = (pl_step){.node = node,
                      .value = plan->value_of[node->number],
                      .kind = reduces ? PL_STEP_REDUCE : PL_STEP_TILES,
                      .why = w->why,
                      .why_node = w->why_node};
    plan->values[step->value].born = number;
    if (pl_device_of(plan, node) > 0)
        return pl_device_step_build(plan, step, c->request, context, reterr);
    int r = pl_program_build(&step->program, context, reduces ? node->inputs[0] : node, reduces,
                             reterr);
    if (r == 0)
        r = add_uses(plan, step, number, reterr);
    if (r == 0)
        step->flops = step_flops(plan, step);
    if (r == 0 && node->op->op_class == PL_CLASS_MATMUL)
        r = add_product(plan, step, context->stored, reterr);
    return r;
}

/* Makes values in the order of their nodes, then a step for each value that does not come from
 * outside. */
int pl_build_steps(pl_chooser *c, pl_error *reterr)
{
    pl_plan *plan = c->plan;
    const pl_graph *graph = c->request->graph;
    int n = plan->n_nodes, r = 0;
    bool *stored = calloc((size_t)n + 1, sizeof *stored);
    bool *dense = calloc((size_t)n + 1, sizeof *dense);
    int *newest = calloc((size_t)n + 1, sizeof *newest);
    if (!stored || !dense || !newest)
        r = pl_error_set(reterr, -ENOMEM, "out of memory while planning");
    for (int i = 0; r == 0 && i < n; i++) {
        const pl_node *node = pl_graph_node(graph, i);
        newest[i] = -1;
        r = check_given(c, node, reterr);
        if (r == 0 && c->demands[i].root && !c->demands[i].source)
            r = add_value(plan, node, false, reterr);
        stored[i] = r == 0 && plan->value_of[i] >= 0;
        dense[i] = stored[i] && !plan->values[plan->value_of[i]].permuted &&
                   !plan->values[plan->value_of[i]].scattered;
    }
    const pl_program_context context = {plan->shapes, stored, dense, newest};
    int n_steps = plan->n_values - c->request->n_sources;
    for (int i = 0; r == 0 && i < (plan->order ? n_steps : n); i++) {
        int number = plan->order ? plan->order[i] : i;
        if (c->demands[number].root && !c->demands[number].source)
            r = add_step(c, &context, pl_graph_node(graph, number), reterr);
    }
    free(stored);
    free(dense);
    free(newest);
    return r;
}

static void keep(pl_plan *plan, int number, bool to_file)
{
    pl_plan_value *value = &plan->values[plan->value_of[number]];
    value->kept = true;
    if (value->from_outside) {
        value->saved = value->saved || (to_file && (value->permuted || value->scattered));
        return;
    }
    value->last_use = plan->n_steps;
    if (to_file)
        value->place = PL_PLACE_FILE;
}

void pl_build_mark_kept(pl_chooser *c)
{
    pl_plan *plan = c->plan;
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].node->op->op_class == PL_CLASS_STATE)
            keep(plan, plan->steps[i].node->number, false);
    for (int i = 0; i < c->request->n_fetches; i++)
        keep(plan, c->request->fetches[i].node->number, c->request->fetches[i].to_file);
}
