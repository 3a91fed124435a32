/* SPDX-License-Identifier: Apache-2.0 */
/* See plan.h: shapes first, then what is a value (choose.c), then what fits (fit.c). Where that
 * does not fit in memory, steps are put in another order (order.c). */
#include "plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph/infer.h"
#include "graph/op_region.h"
#include "plan/device_step.h"
#include "plan/order.h"
#include "tensor/shape.h"

void pl_plan_free(pl_plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < plan->n_steps; i++) {
        pl_program_done(&plan->steps[i].program);
        free(plan->steps[i].product);
        free(plan->steps[i].uses);
        pl_device_work_free(plan->steps[i].work);
    }
    free(plan->steps);
    free(plan->values);
    free(plan->value_of);
    free(plan->device_of);
    free(plan->fallbacks);
    free(plan->shapes);
    free(plan);
}

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "no memory for a plan");
}

/* What the fetches are made of, down to what is given. */
static void mark_needed(const pl_plan_request *request, const bool *given, bool *needed)
{
    for (int i = 0; i < request->n_fetches; i++)
        needed[request->fetches[i].node->number] = true;
    for (int i = pl_graph_n_nodes(request->graph) - 1; i >= 0; i--) {
        const pl_node *node = pl_graph_node(request->graph, i);
        needed[i] = needed[i] && !given[i];
        for (int k = 0; needed[i] && k < node->n_inputs; k++)
            needed[node->inputs[k]->number] = true;
    }
}

/* With what is given; others keep the shapes that they were made with. */
static int infer_shapes(pl_plan *plan, const pl_plan_request *request, pl_error *reterr)
{
    size_t n = (size_t)plan->n_nodes + 1;
    bool *needed = calloc(n, sizeof *needed), *given = calloc(n, sizeof *given);
    pl_feed_shape *feeds = calloc((size_t)request->n_sources + 1, sizeof *feeds);
    int n_feeds = 0, r = 0;
    if (!needed || !given || !feeds) {
        r = no_memory(reterr);
        goto out;
    }
    for (int i = 0; i < request->n_sources; i++) {
        const pl_plan_source *source = &request->sources[i];
        given[source->node->number] = true;
        if (source->node->op->id == PL_OP_placeholder || source->node->n_inputs > 0)
            feeds[n_feeds++] = (pl_feed_shape){source->node, source->shape};
    }
    mark_needed(request, given, needed);
    r = pl_graph_infer_given(request->graph, feeds, n_feeds, needed, plan->shapes, reterr);
out:
    free(needed);
    free(given);
    free(feeds);
    return r;
}

static void sum_up(pl_plan *plan)
{
    plan->peak_bytes = plan->end_bytes;
    for (int i = 0; i < plan->n_steps; i++) {
        plan->peak_bytes = pl_max_u64(plan->peak_bytes, plan->steps[i].peak_bytes);
        plan->disk_bytes = pl_max_u64(plan->disk_bytes, plan->steps[i].disk_bytes);
        plan->flops += plan->steps[i].flops;
    }
}

static pl_plan *plan_alloc(const pl_plan_request *request)
{
    pl_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return NULL;
    plan->n_nodes = pl_graph_n_nodes(request->graph);
    plan->budget_bytes = request->budget_bytes;
    plan->shapes = calloc((size_t)plan->n_nodes + 1, sizeof *plan->shapes);
    plan->value_of = calloc((size_t)plan->n_nodes + 1, sizeof *plan->value_of);
    if (plan->shapes && plan->value_of)
        return plan;
    pl_plan_free(plan);
    return NULL;
}

/* Steps in one order; NULL: as made. A plan that does not fit is given too, for its steps. */
static int plan_in_order(const pl_plan_request *request, const int *order, pl_plan **ret_plan,
                         pl_error *reterr)
{
    pl_plan *plan = plan_alloc(request);
    if (!plan)
        return no_memory(reterr);
    plan->order = order;
    int r = infer_shapes(plan, request, reterr);
    if (r == 0)
        r = pl_plan_place(plan, request, reterr);
    if (r == 0)
        r = pl_plan_choose(plan, request, reterr);
    plan->order = NULL;
    if (r < 0) {
        pl_plan_free(plan);
        return r;
    }
    r = pl_plan_fit(plan, request, reterr);
    if (r == 0)
        sum_up(plan);
    *ret_plan = plan;
    return r;
}

/* ---- several orders ---- */

static uint64_t spilled_bytes(const pl_plan *plan)
{
    uint64_t bytes = 0;
    for (int i = 0; i < plan->n_values; i++)
        if (!plan->values[i].from_outside && plan->values[i].place == PL_PLACE_SPILL)
            bytes = pl_add_sat_u64(bytes, plan->values[i].bytes);
    return bytes;
}

/* Less on disk, then less in memory. */
static bool is_better(const pl_plan *a, const pl_plan *b)
{
    uint64_t of_a = spilled_bytes(a), of_b = spilled_bytes(b);
    return of_a != of_b ? of_a < of_b : a->peak_bytes < b->peak_bytes;
}

/* The order that takes least, if that is less than what the plan's own takes. 1: there is one. */
static int find_order(const pl_plan *plan, int *nodes)
{
    uint64_t least = pl_plan_order_bytes(plan, NULL);
    int *tried = calloc((size_t)plan->n_steps + 1, sizeof *tried);
    int r = tried ? 0 : -ENOMEM;
    for (int kind = 0; r >= 0 && kind < PL_N_ORDERS; kind++) {
        int tried_r = pl_plan_order(plan, (pl_order_kind)kind, tried);
        uint64_t bytes = tried_r < 0 ? UINT64_MAX : pl_plan_order_bytes(plan, tried);
        if (tried_r < 0)
            r = tried_r;
        else if (bytes < least) {
            least = bytes;
            memcpy(nodes, tried, (size_t)plan->n_steps * sizeof *nodes);
            r = 1;
        }
    }
    free(tried);
    return r;
}

/* Of a plan that spills or does not fit: the same steps in another order, where that is better.
 * Else all is as it was. */
static int try_another_order(const pl_plan_request *request, pl_plan **plan, int r,
                             pl_error *reterr)
{
    pl_plan *another = NULL;
    pl_error error = {0};
    int *order = calloc((size_t)(*plan)->n_steps + 1, sizeof *order);
    int found = order ? find_order(*plan, order) : -ENOMEM;
    int another_r = found > 0 ? plan_in_order(request, order, &another, &error) : found;
    free(order);
    if (found > 0 && another_r == 0 && (r < 0 || is_better(another, *plan))) {
        pl_plan *before = *plan;
        *plan = another;
        another = before;
        r = 0;
    } else if (r == PL_EBUDGET && another_r == PL_EBUDGET &&
               another->least_bytes < (*plan)->least_bytes) {
        pl_error_set(reterr, r, "%s", error.message);
    }
    pl_plan_free(another);
    return another_r == -ENOMEM ? no_memory(reterr) : r;
}

int pl_plan_new(const pl_plan_request *request, pl_plan **ret_plan, pl_error *reterr)
{
    pl_plan *plan = NULL;
    int r = plan_in_order(request, NULL, &plan, reterr);
    if (plan && (r == PL_EBUDGET || r == -ENOSPC || (r == 0 && spilled_bytes(plan) > 0)))
        r = try_another_order(request, &plan, r, reterr);
    if (r < 0) {
        pl_plan_free(plan);
        return r;
    }
    *ret_plan = plan;
    return 0;
}
