/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses which nodes become values, and which are computed inside the steps that use them. See
 * choose_private.h for use sites.
 *
 * Goes from the last node to the first. A node with one use site is computed there. A node with
 * several becomes a value, unless computing it again costs no more than reading it. */
#include <errno.h>
#include <stdlib.h>

#include "graph/cost.h"
#include "graph/op_region.h"
#include "plan/choose_private.h"
#include "plan/device_work.h"
#include "plan/product.h"
#include "tensor/shape.h"

/* A step that computes more nodes than this gains nothing, and planning takes longer. */
enum { STEP_NODES_MAX = 200 };

/* But where a whole step is small enough for one tile, its cost is mostly the fixed cost of a step,
 * so it computes as many nodes as share its box. If it were cut in the middle, nodes that use each
 * other would all become steps. */
enum { SMALL_STEP_NODES_MAX = 1 << 16, SMALL_ELEMENTS = 1 << 14 };

/* Up to this many flops per element, computing again is as fast as reading from memory. */
#define CHEAP_FLOPS 4

static bool lends_shape_only(const pl_node *node)
{
    return node->op->region == pl_region_for_nothing;
}

static void demand_at(pl_node_demand *w, pl_use_site at)
{
    w->needed = true;
    for (int i = 0; i < w->n_sites && i < PL_USE_SITES_MAX; i++)
        if (w->sites[i].step == at.step && w->sites[i].box == at.box)
            return;
    if (w->n_sites < PL_USE_SITES_MAX)
        w->sites[w->n_sites] = at;
    if (w->n_sites <= PL_USE_SITES_MAX)
        w->n_sites++;
}

static void demand_whole(pl_node_demand *w, const char *why, const pl_node *why_node)
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

/* Tiles of these nodes ask for the same elements of their input again and again. */
static bool rereads(const pl_node *node, int i)
{
    return node->op->op_class == PL_CLASS_MATMUL || node->op->id == PL_OP_tile ||
           (node->op->id == PL_OP_gather && i == 0);
}

static bool is_only_described(const pl_node *node)
{
    return node->op->op_class == PL_CLASS_VIEW && node->op->id != PL_OP_reshape;
}

/* Demands the operands of a large product, looking through views. */
static void demand_operands(pl_chooser *c, const pl_node *node, pl_use_site at)
{
    for (int i = 0; i < node->n_inputs; i++) {
        pl_product_base base = pl_product_base_of(c->plan, NULL, node->inputs[i]);
        pl_node_demand *demand = &c->demands[base.node->number];
        demand_at(demand, (pl_use_site){at.step, ++c->n_boxes});
        demand_whole(demand, "is read again and again by", node);
    }
}

/* Demands the inputs of a node that is computed at `at`. */
static void demand_inputs(pl_chooser *c, const pl_node *node, pl_use_site at)
{
    if (lends_shape_only(node))
        return;
    if (node->op->op_class == PL_CLASS_MATMUL && pl_device_of(c->plan, node) == 0 &&
        pl_product_is_large(node, c->plan->shapes)) {
        demand_operands(c, node, at);
        return;
    }
    const pl_shape *shapes = c->plan->shapes;
    for (int i = node->op->id == PL_OP_assign; i < node->n_inputs; i++) {
        const pl_node *input = node->inputs[i];
        bool same =
            keeps_box(node) && pl_shape_equal(&shapes[input->number], &shapes[node->number]);
        pl_node_demand *demand = &c->demands[input->number];
        demand_at(demand, same ? at : (pl_use_site){at.step, ++c->n_boxes});
        if (rereads(node, i) && !is_only_described(input))
            demand_whole(demand, "is read again and again by", node);
        if (pl_is_apart(c->plan, node, input, same))
            demand_whole(demand, "is needed elsewhere than it is made, by", node);
    }
}

static bool is_cheap(const pl_chooser *c, const pl_node *node)
{
    if (pl_node_is_generator(node))
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

static int most_nodes(const pl_chooser *c, const pl_use_site *at)
{
    pl_region whole = pl_region_whole(&c->plan->shapes[at->step]);
    bool small = at->box == c->box_of[at->step] && pl_region_count(&whole) <= SMALL_ELEMENTS;
    return small ? SMALL_STEP_NODES_MAX : STEP_NODES_MAX;
}

static const char *why_root(const pl_chooser *c, const pl_node *node)
{
    const pl_node_demand *w = &c->demands[node->number];
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
    if (w->n_sites > PL_USE_SITES_MAX || (w->n_sites > 1 && !is_cheap(c, node)))
        return "is used in several places";
    bool elsewhere = pl_device_of(c->plan, node) > 0; /* kernels there are short */
    for (int i = 0; elsewhere && i < w->n_sites; i++)
        if (c->n_in_step[w->sites[i].step] >= PL_DEVICE_NODES_MAX)
            return "comes before a step that is full";
    if (w->n_sites == 1 && c->n_in_step[w->sites[0].step] >= most_nodes(c, &w->sites[0]))
        return "comes before a step that is full";
    return NULL;
}

static void choose_node(pl_chooser *c, const pl_node *node)
{
    pl_node_demand *w = &c->demands[node->number];
    if (!w->needed || w->source || (pl_node_is_generator(node) && !w->root))
        return;
    const char *why = why_root(c, node);
    if (why)
        demand_whole(w, why, NULL);
    if (w->root) {
        c->n_in_step[node->number] = 1;
        c->box_of[node->number] = ++c->n_boxes;
        demand_inputs(c, node, (pl_use_site){node->number, c->n_boxes});
        return;
    }
    for (int i = 0; i < w->n_sites; i++) {
        c->n_in_step[w->sites[i].step]++;
        demand_inputs(c, node, w->sites[i]);
    }
}

int pl_plan_choose(pl_plan *plan, const pl_plan_request *request, pl_error *reterr)
{
    size_t n = (size_t)plan->n_nodes + 1;
    pl_chooser c = {.plan = plan, .request = request};
    c.demands = calloc(n, sizeof *c.demands);
    c.n_in_step = calloc(n, sizeof *c.n_in_step);
    c.box_of = calloc(n, sizeof *c.box_of);
    plan->values = calloc(n, sizeof *plan->values);
    plan->steps = calloc(n, sizeof *plan->steps);
    int r = 0;
    if (!c.demands || !c.n_in_step || !c.box_of || !plan->values || !plan->steps)
        r = pl_error_set(reterr, -ENOMEM, "out of memory while planning");
    for (int i = 0; i < plan->n_nodes; i++)
        plan->value_of[i] = -1;
    for (int i = 0; r == 0 && i < request->n_sources; i++)
        r = pl_build_add_source(&c, &request->sources[i], reterr);
    for (int i = 0; r == 0 && i < request->n_fetches; i++) {
        pl_node_demand *w = &c.demands[request->fetches[i].node->number];
        w->needed = true;
        demand_whole(w, "is asked for", NULL);
    }
    for (int i = plan->n_nodes - 1; r == 0 && i >= 0; i--)
        choose_node(&c, pl_graph_node(request->graph, i));
    if (r == 0)
        r = pl_build_steps(&c, reterr);
    if (r == 0)
        pl_build_mark_kept(&c);
    free(c.demands);
    free(c.n_in_step);
    free(c.box_of);
    return r;
}
