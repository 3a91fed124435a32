/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes become values, and which are computed inside of the steps that use them.
 * Spots are where consumers want nodes: choose_private.h.
 *
 * From the last node to the first: a node that is wanted in one spot is computed there. One that is
 * wanted in several becomes a value, unless computing it again costs no more than reading it. */
#include <errno.h>
#include <stdlib.h>

#include "graph/cost.h"
#include "graph/op_region.h"
#include "plan/choose_private.h"
#include "plan/device_work.h"
#include "plan/product.h"
#include "tensor/shape.h"

/* A step that computes more nodes gains nothing, and plans take longer. */
enum { STEP_NODES_MAX = 200 };

/* But where all of a step is small, as one tile, its cost is in being a step: there it computes as
 * many as share its box. Cut off in the middle, nodes that use each other would all be steps. */
enum { SMALL_STEP_NODES_MAX = 1 << 16, SMALL_ELEMENTS = 1 << 14 };

/* Flops per element up to which computing again is no slower than reading from memory. */
#define CHEAP_FLOPS 4

static bool lends_shape_only(const pl_node *node)
{
    return node->op->region == pl_region_for_nothing;
}

static void want_at(pl_want *w, pl_spot at)
{
    w->needed = true;
    for (int i = 0; i < w->n_spots && i < PL_SPOTS_MAX; i++)
        if (w->spots[i].step == at.step && w->spots[i].box == at.box)
            return;
    if (w->n_spots < PL_SPOTS_MAX)
        w->spots[w->n_spots] = at;
    if (w->n_spots <= PL_SPOTS_MAX)
        w->n_spots++;
}

static void want_whole(pl_want *w, const char *why, const pl_node *why_node)
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
static void want_operands(pl_chooser *c, const pl_node *node, pl_spot at)
{
    for (int i = 0; i < node->n_inputs; i++) {
        pl_product_base base = pl_product_base_of(c->plan, NULL, node->inputs[i]);
        pl_want *wanted = &c->wants[base.node->number];
        want_at(wanted, (pl_spot){at.step, ++c->n_boxes});
        want_whole(wanted, "is read again and again by", node);
    }
}

/* The inputs of a node that is computed at `at`. */
static void want_inputs(pl_chooser *c, const pl_node *node, pl_spot at)
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
        pl_want *wanted = &c->wants[input->number];
        want_at(wanted, same ? at : (pl_spot){at.step, ++c->n_boxes});
        if (rereads(node, i) && !is_only_described(input))
            want_whole(wanted, "is read again and again by", node);
        if (pl_is_apart(c->plan, node, input, same))
            want_whole(wanted, "is needed elsewhere than it is made, by", node);
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

static int most_nodes(const pl_chooser *c, const pl_spot *at)
{
    pl_region whole = pl_region_whole(&c->plan->shapes[at->step]);
    bool small = at->box == c->box_of[at->step] && pl_region_count(&whole) <= SMALL_ELEMENTS;
    return small ? SMALL_STEP_NODES_MAX : STEP_NODES_MAX;
}

static const char *why_root(const pl_chooser *c, const pl_node *node)
{
    const pl_want *w = &c->wants[node->number];
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
    if (w->n_spots > PL_SPOTS_MAX || (w->n_spots > 1 && !is_cheap(c, node)))
        return "is used in several places";
    bool elsewhere = pl_device_of(c->plan, node) > 0; /* kernels there are short */
    for (int i = 0; elsewhere && i < w->n_spots; i++)
        if (c->n_in_step[w->spots[i].step] >= PL_DEVICE_NODES_MAX)
            return "comes before a step that is full";
    if (w->n_spots == 1 && c->n_in_step[w->spots[0].step] >= most_nodes(c, &w->spots[0]))
        return "comes before a step that is full";
    return NULL;
}

static void choose_node(pl_chooser *c, const pl_node *node)
{
    pl_want *w = &c->wants[node->number];
    if (!w->needed || w->source || (pl_node_is_generator(node) && !w->root))
        return;
    const char *why = why_root(c, node);
    if (why)
        want_whole(w, why, NULL);
    if (w->root) {
        c->n_in_step[node->number] = 1;
        c->box_of[node->number] = ++c->n_boxes;
        want_inputs(c, node, (pl_spot){node->number, c->n_boxes});
        return;
    }
    for (int i = 0; i < w->n_spots; i++) {
        c->n_in_step[w->spots[i].step]++;
        want_inputs(c, node, w->spots[i]);
    }
}

int pl_plan_choose(pl_plan *plan, const pl_plan_request *request, pl_error *reterr)
{
    size_t n = (size_t)plan->n_nodes + 1;
    pl_chooser c = {.plan = plan, .request = request};
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
        r = pl_chosen_add_source(&c, &request->sources[i], reterr);
    for (int i = 0; r == 0 && i < request->n_fetches; i++) {
        pl_want *w = &c.wants[request->fetches[i].node->number];
        w->needed = true;
        want_whole(w, "is asked for", NULL);
    }
    for (int i = plan->n_nodes - 1; r == 0 && i >= 0; i--)
        choose_node(&c, pl_graph_node(request->graph, i));
    if (r == 0)
        r = pl_chosen_add_all(&c, reterr);
    if (r == 0)
        pl_chosen_keep(&c);
    free(c.wants);
    free(c.n_in_step);
    free(c.box_of);
    return r;
}
