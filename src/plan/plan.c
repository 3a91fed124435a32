/* SPDX-License-Identifier: Apache-2.0 */
/* See plan.h: shapes first, then what is a value (choose.c), then what fits (fit.c). */
#include "plan/plan.h"

#include <errno.h>
#include <stdlib.h>

#include "graph/infer.h"
#include "graph/op_region.h"
#include "tensor/shape.h"

void pl_plan_free(pl_plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < plan->n_steps; i++) {
        pl_program_done(&plan->steps[i].program);
        free(plan->steps[i].uses);
    }
    free(plan->steps);
    free(plan->values);
    free(plan->value_of);
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
    for (int i = 0; i < plan->n_steps; i++) {
        plan->peak_bytes = pl_max_u64(plan->peak_bytes, plan->steps[i].peak_bytes);
        plan->disk_bytes = pl_max_u64(plan->disk_bytes, plan->steps[i].disk_bytes);
        plan->flops += plan->steps[i].flops;
    }
}

int pl_plan_new(const pl_plan_request *request, pl_plan **ret_plan, pl_error *reterr)
{
    pl_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return no_memory(reterr);
    plan->n_nodes = pl_graph_n_nodes(request->graph);
    plan->budget_bytes = request->budget_bytes;
    plan->shapes = calloc((size_t)plan->n_nodes + 1, sizeof *plan->shapes);
    plan->value_of = calloc((size_t)plan->n_nodes + 1, sizeof *plan->value_of);
    int r =
        plan->shapes && plan->value_of ? infer_shapes(plan, request, reterr) : no_memory(reterr);
    if (r == 0)
        r = pl_plan_choose(plan, request, reterr);
    if (r == 0)
        r = pl_plan_fit(plan, request, reterr);
    if (r < 0) {
        pl_plan_free(plan);
        return r;
    }
    sum_up(plan);
    *ret_plan = plan;
    return 0;
}
