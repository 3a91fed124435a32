/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes become values, and which are computed inside of the steps that use them.
 *   spot  a step and a box in it: where a consumer wants a node. Two consumers that want the same
 *         elements at the same time share a spot
 *
 * From the last node to the first: a node that is wanted in one spot is computed there. One that is
 * wanted in several becomes a value, unless computing it again costs no more than reading it. */
#include <errno.h>
#include <stdlib.h>

#include "graph/cost.h"
#include "graph/op_region.h"
#include "plan/device_work.h"
#include "plan/plan.h"
#include "plan/product.h"
#include "tensor/dtype.h"
#include "tensor/memory.h"
#include "tensor/shape.h"

/* Wanted in more spots, a node is a value, however cheap. */
enum { SPOTS_MAX = 4 };

/* A step that computes more nodes gains nothing, and plans take longer. */
enum { STEP_NODES_MAX = 200 };

/* But where all of a step is small, as one tile, its cost is in being a step: there it computes as
 * many as share its box. Cut off in the middle, nodes that use each other would all be steps. */
enum { SMALL_STEP_NODES_MAX = 1 << 16, SMALL_ELEMENTS = 1 << 14 };

/* Flops per element up to which computing again is no slower than reading from memory. */
#define CHEAP_FLOPS 4

typedef struct spot {
    int step, box;
} spot;

typedef struct want {
    spot spots[SPOTS_MAX];
    int n_spots; /* SPOTS_MAX + 1: too many */
    bool needed, source, root;
    const char *why;
    const pl_node *why_node;
} want;

typedef struct chooser {
    pl_plan *plan;
    const pl_plan_request *request;
    want *wants;    /* by number of the node */
    int *n_in_step; /* nodes, by number of the root */
    int *box_of;    /* of the step, by number of the root */
    int n_boxes;
} chooser;

static bool lends_shape_only(const pl_node *node)
{
    return node->op->region == pl_region_for_nothing;
}

static bool is_generator(const pl_node *node)
{
    return node->op->op_class == PL_CLASS_SOURCE &&
           (node->op->id == PL_OP_fill || node->op->id == PL_OP_range ||
            node->op->id == PL_OP_random_uniform || node->op->id == PL_OP_random_normal ||
            node->op->id == PL_OP_random_truncated);
}

static void want_at(want *w, spot at)
{
    w->needed = true;
    for (int i = 0; i < w->n_spots && i < SPOTS_MAX; i++)
        if (w->spots[i].step == at.step && w->spots[i].box == at.box)
            return;
    if (w->n_spots < SPOTS_MAX)
        w->spots[w->n_spots] = at;
    if (w->n_spots <= SPOTS_MAX)
        w->n_spots++;
}

static void want_whole(want *w, const char *why, const pl_node *why_node)
{
    if (!w->root) {
        w->root = true;
        w->why = why;
        w->why_node = why_node;
    }
}

static bool keeps_box(const pl_node *node)
{
    return node->op->op_class == PL_CLASS_ELEMENTWISE || node->op->op_class == PL_CLASS_STATE ||
           node->op->id == PL_OP_identity || node->op->id == PL_OP_ensure_shape;
}

/* Tiles of these ask for the same elements of their input again and again. */
static bool rereads(const pl_node *node, int i)
{
    return node->op->op_class == PL_CLASS_MATMUL || node->op->id == PL_OP_tile ||
           (node->op->id == PL_OP_gather && i == 0);
}

static bool is_only_described(const pl_node *node)
{
    return node->op->op_class == PL_CLASS_VIEW && node->op->id != PL_OP_reshape;
}

/* What a large product reads, beneath views that it sees through. */
static void want_operands(chooser *c, const pl_node *node, spot at)
{
    for (int i = 0; i < node->n_inputs; i++) {
        pl_product_base base = pl_product_base_of(c->plan, NULL, node->inputs[i]);
        want *wanted = &c->wants[base.node->number];
        want_at(wanted, (spot){at.step, ++c->n_boxes});
        want_whole(wanted, "is read again and again by", node);
    }
}

/* The inputs of a node that is computed at `at`. */
static void want_inputs(chooser *c, const pl_node *node, spot at)
{
    if (lends_shape_only(node))
        return;
    if (node->op->op_class == PL_CLASS_MATMUL && pl_device_of(c->plan, node) == 0 &&
        pl_product_is_large(node, c->plan->shapes)) {
        want_operands(c, node, at);
        return;
    }
    const pl_shape *shapes = c->plan->shapes;
    for (int i = node->op->id == PL_OP_assign; i < node->n_inputs; i++) {
        const pl_node *input = node->inputs[i];
        bool same =
            keeps_box(node) && pl_shape_equal(&shapes[input->number], &shapes[node->number]);
        want *wanted = &c->wants[input->number];
        want_at(wanted, same ? at : (spot){at.step, ++c->n_boxes});
        if (rereads(node, i) && !is_only_described(input))
            want_whole(wanted, "is read again and again by", node);
        if (pl_is_apart(c->plan, node, input, same))
            want_whole(wanted, "is needed elsewhere than it is made, by", node);
    }
}

static bool is_cheap(const chooser *c, const pl_node *node)
{
    if (is_generator(node))
        return true;
    if (is_only_described(node))
        return true;
    if (node->op->op_class != PL_CLASS_ELEMENTWISE ||
        pl_node_flops_per_element(node, c->plan->shapes) > CHEAP_FLOPS)
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        pl_op_class of_input = node->inputs[i]->op->op_class;
        if (of_input != PL_CLASS_SOURCE && of_input != PL_CLASS_REDUCE)
            return false;
    }
    return true;
}

static int most_nodes(const chooser *c, const spot *at)
{
    pl_region whole = pl_region_whole(&c->plan->shapes[at->step]);
    bool small = at->box == c->box_of[at->step] && pl_region_count(&whole) <= SMALL_ELEMENTS;
    return small ? SMALL_STEP_NODES_MAX : STEP_NODES_MAX;
}

static const char *why_root(const chooser *c, const pl_node *node)
{
    const want *w = &c->wants[node->number];
    switch (node->op->op_class) {
    case PL_CLASS_REDUCE:
        return "is a reduction";
    case PL_CLASS_ROW:
        return "needs whole rows";
    case PL_CLASS_MATMUL:
        return "is a product of matrices";
    case PL_CLASS_STATE:
        return "is a variable's new value";
    default:
        break;
    }
    if (w->n_spots > SPOTS_MAX || (w->n_spots > 1 && !is_cheap(c, node)))
        return "is used in several places";
    bool elsewhere = pl_device_of(c->plan, node) > 0; /* kernels there are short */
    for (int i = 0; elsewhere && i < w->n_spots; i++)
        if (c->n_in_step[w->spots[i].step] >= PL_DEVICE_NODES_MAX)
            return "comes before a step that is full";
    if (w->n_spots == 1 && c->n_in_step[w->spots[0].step] >= most_nodes(c, &w->spots[0]))
        return "comes before a step that is full";
    return NULL;
}

static void choose_node(chooser *c, const pl_node *node)
{
    want *w = &c->wants[node->number];
    if (!w->needed || w->source || (is_generator(node) && !w->root))
        return;
    const char *why = why_root(c, node);
    if (why)
        want_whole(w, why, NULL);
    if (w->root) {
        c->n_in_step[node->number] = 1;
        c->box_of[node->number] = ++c->n_boxes;
        want_inputs(c, node, (spot){node->number, c->n_boxes});
        return;
    }
    for (int i = 0; i < w->n_spots; i++) {
        c->n_in_step[w->spots[i].step]++;
        want_inputs(c, node, w->spots[i]);
    }
}

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

static int add_source(chooser *c, const pl_plan_source *source, pl_error *reterr)
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
    c->wants[source->node->number].source = true;
    return 0;
}

static int check_given(const chooser *c, const pl_node *node, pl_error *reterr)
{
    const want *w = &c->wants[node->number];
    if (!w->needed || w->source || node->op->op_class != PL_CLASS_SOURCE || is_generator(node))
        return 0;
    return pl_error_set(reterr, -EINVAL, "%s '%s' has no value: %s", node->op->name, node->name,
                        node->op->id == PL_OP_placeholder ? "feed it" : "give it one first");
}

static int add_uses(pl_plan *plan, pl_step *step, int number, pl_error *reterr)
{
    const pl_program *program = &step->program;
    step->uses = calloc((size_t)program->n_instrs + 1, sizeof *step->uses);
    if (!step->uses)
        return pl_error_set(reterr, -ENOMEM, "no memory for a plan");
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
        return pl_error_set(reterr, r, "no memory for a plan");
    if (step->product && step->product->b_is_a)
        plan->values[step->product->a.value].place = PL_PLACE_MEMORY;
    return 0;
}

static int add_step(chooser *c, const pl_program_context *context, const pl_node *node,
                    pl_error *reterr)
{
    pl_plan *plan = c->plan;
    const want *w = &c->wants[node->number];
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

/* Values in the order of their nodes, then a step for each that is not from outside. */
static int add_all(chooser *c, pl_error *reterr)
{
    pl_plan *plan = c->plan;
    const pl_graph *graph = c->request->graph;
    int n = plan->n_nodes, r = 0;
    bool *stored = calloc((size_t)n + 1, sizeof *stored);
    bool *dense = calloc((size_t)n + 1, sizeof *dense);
    int *newest = calloc((size_t)n + 1, sizeof *newest);
    if (!stored || !dense || !newest)
        r = pl_error_set(reterr, -ENOMEM, "no memory for a plan");
    for (int i = 0; r == 0 && i < n; i++) {
        const pl_node *node = pl_graph_node(graph, i);
        newest[i] = -1;
        r = check_given(c, node, reterr);
        if (r == 0 && c->wants[i].root && !c->wants[i].source)
            r = add_value(plan, node, false, reterr);
        stored[i] = r == 0 && plan->value_of[i] >= 0;
        dense[i] = stored[i] && !plan->values[plan->value_of[i]].permuted &&
                   !plan->values[plan->value_of[i]].scattered;
    }
    const pl_program_context context = {plan->shapes, stored, dense, newest};
    int n_steps = plan->n_values - c->request->n_sources;
    for (int i = 0; r == 0 && i < (plan->order ? n_steps : n); i++) {
        int number = plan->order ? plan->order[i] : i;
        if (c->wants[number].root && !c->wants[number].source)
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

static void keep_all(chooser *c)
{
    pl_plan *plan = c->plan;
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].node->op->op_class == PL_CLASS_STATE)
            keep(plan, plan->steps[i].node->number, false);
    for (int i = 0; i < c->request->n_fetches; i++)
        keep(plan, c->request->fetches[i].node->number, c->request->fetches[i].to_file);
}

int pl_plan_choose(pl_plan *plan, const pl_plan_request *request, pl_error *reterr)
{
    size_t n = (size_t)plan->n_nodes + 1;
    chooser c = {.plan = plan, .request = request};
    c.wants = calloc(n, sizeof *c.wants);
    c.n_in_step = calloc(n, sizeof *c.n_in_step);
    c.box_of = calloc(n, sizeof *c.box_of);
    plan->values = calloc(n, sizeof *plan->values);
    plan->steps = calloc(n, sizeof *plan->steps);
    int r = 0;
    if (!c.wants || !c.n_in_step || !c.box_of || !plan->values || !plan->steps)
        r = pl_error_set(reterr, -ENOMEM, "no memory for a plan");
    for (int i = 0; i < plan->n_nodes; i++)
        plan->value_of[i] = -1;
    for (int i = 0; r == 0 && i < request->n_sources; i++)
        r = add_source(&c, &request->sources[i], reterr);
    for (int i = 0; r == 0 && i < request->n_fetches; i++) {
        want *w = &c.wants[request->fetches[i].node->number];
        w->needed = true;
        want_whole(w, "is asked for", NULL);
    }
    for (int i = plan->n_nodes - 1; r == 0 && i >= 0; i--)
        choose_node(&c, pl_graph_node(request->graph, i));
    if (r == 0)
        r = add_all(&c, reterr);
    if (r == 0)
        keep_all(&c);
    free(c.wants);
    free(c.n_in_step);
    free(c.box_of);
    return r;
}
