/* SPDX-License-Identifier: Apache-2.0 */
/* Explains the plan that a run would have, and its cost, as far as they are known before eager ops
 * have read files and strings. See plimsoll/session.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "exec/eager/eager_ops.h"
#include "exec/eager/whole_ops.h"
#include "exec/session/pipeline.h"
#include "exec/step/device_step.h"
#include "tensor/shape.h"
#include "util/text.h"

/* ---- before eager ops have run ---- */

/* Infers shapes as far as they are known before eager ops have run. */
static int infer_before(const pl_pipeline *p, pl_shape *shapes, pl_error *reterr)
{
    const pl_run_request *request = &p->request;
    const pl_graph *graph = request->session->graph;
    pl_feed_shape *feeds = calloc((size_t)request->n_feeds + 1, sizeof *feeds);
    bool *needed = calloc((size_t)pl_graph_n_nodes(graph) + 1, sizeof *needed);
    int r = feeds && needed ? 0 : pl_pipeline_no_memory(reterr);
    for (int i = 0; r == 0 && i < request->n_feeds; i++)
        feeds[i] = (pl_feed_shape){request->feeds[i].placeholder, request->feeds[i].tensor->shape};
    if (r == 0) {
        memcpy(needed, p->check->needed, (size_t)p->check->n_nodes * sizeof *needed);
        r = pl_graph_infer(graph, feeds, request->n_feeds, needed, shapes, reterr);
    }
    free(needed);
    free(feeds);
    return r;
}

/* Gives the plan the values that exist, and those of eager ops as far as their shapes are known.
 * Returns the first value with unknown shape that the plan reads; NULL if there is none. */
static const pl_node *list_known_sources(pl_pipeline *p, const pl_shape *shapes)
{
    const pl_node *unknown = NULL;
    pl_gather_phase *g = &p->gather;
    for (int i = 0; i < p->check->n_planned; i++) {
        const pl_node *node = p->check->planned[i];
        const pl_shape *shape = &shapes[node->number];
        pl_tensor *value = g->values[node->number];
        if (!value && !pl_is_eager(node))
            continue;
        if (value) {
            pl_pipeline_describe(node, value, &g->sources[g->n_sources]);
            g->tensors[g->n_sources++] = pl_tensor_ref(value);
        } else if (pl_shape_is_known(shape)) {
            g->sources[g->n_sources] =
                (pl_plan_source){.node = node, .shape = *shape, .resident = true, .own = true};
            g->tensors[g->n_sources++] = NULL;
        } else if (!unknown) {
            unknown = node;
        }
    }
    return unknown;
}

/* Plans as the run would: values of eager ops are in memory, or on disk if that is too much. */
static int plan_before(pl_pipeline *p, uint64_t left_bytes, pl_error *reterr)
{
    p->eager.held_bytes = left_bytes;
    int r = pl_pipeline_make_plan(p, reterr);
    if (r != PL_EBUDGET || left_bytes == 0)
        return r;
    p->eager.held_bytes = 0;
    for (int i = 0; i < p->gather.n_sources; i++)
        if (p->gather.sources[i].own)
            p->gather.sources[i].own = p->gather.sources[i].resident = false;
    return pl_pipeline_make_plan(p, reterr);
}

/* Foresees an input of an eager op that is not eager itself, as compute_input() of session_eager.c
 * would compute it. */
static int foresee(void *context, const pl_node *node, const pl_shape *shapes, uint64_t live_bytes,
                   uint64_t *ret_bytes, pl_error *reterr)
{
    pl_pipeline *outer = context, nested;
    const pl_fetch fetch = {node, NULL};
    const pl_run_request request = {.session = outer->request.session,
                                    .fetches = &fetch,
                                    .n_fetches = 1,
                                    .options = outer->request.options};
    pl_pipeline_init(&nested, &request, outer);
    int r = pl_pipeline_check(&nested, reterr);
    if (r == 0)
        r = pl_pipeline_gather(&nested, reterr);
    if (r == 0 && !list_known_sources(&nested, shapes))
        r = plan_before(&nested, live_bytes, reterr);
    if (r == 0 && nested.plan.plan) {
        *ret_bytes = nested.plan.plan->peak_bytes;
        r = 1;
    }
    pl_pipeline_done(&nested);
    return r;
}

static void write_cost(const pl_run_cost *cost, bool as_json, FILE *to)
{
    if (as_json) {
        fprintf(to, "],\"stages_peak_bytes\":%" PRIu64 ",\"n_unknown\":%d,", cost->peak_bytes,
                cost->n_unknown);
        return;
    }
    fprintf(to, "eager ops take up to %s at a time", PL_SIZE(cost->peak_bytes));
    if (cost->n_unknown > 0)
        fprintf(to, "; the cost of %d of them is not known yet", cost->n_unknown);
    fputc('\n', to);
}

static void write_all(pl_pipeline *p, const pl_shape *shapes, const pl_node *unknown, bool as_json,
                      const char *plan, FILE *to)
{
    const pl_eager_run run = pl_pipeline_eager_run(p);
    fputs(as_json ? "{\"stages\":[" : "", to);
    pl_eager_explain(&run, shapes, as_json, to);
    write_cost(&p->eager.cost, as_json, to);
    if (plan)
        fputs(as_json ? plan + 1 : plan, to);
    if (!plan && as_json)
        fprintf(to, "\"schema\":1,\"steps\":null,\"waits_for\":\"%s\"}\n", unknown->name);
    else if (!plan)
        fprintf(to, "the rest is planned when the shape of '%s' is known\n", unknown->name);
}

static int write_text(pl_pipeline *p, const pl_shape *shapes, const pl_node *unknown, bool as_json,
                      char **ret_text, pl_error *reterr)
{
    char *plan = p->plan.plan ? pl_plan_explain(p->plan.plan, as_json) : NULL;
    pl_text text = {0};
    if ((plan || !p->plan.plan) && pl_text_open(&text))
        write_all(p, shapes, unknown, as_json, plan, text.to);
    free(plan);
    *ret_text = pl_text_close(&text);
    return *ret_text ? 0 : pl_pipeline_no_memory(reterr);
}

static int explain_eager_ops(pl_pipeline *p, bool as_json, char **ret_text, pl_error *reterr)
{
    int n = pl_graph_n_nodes(p->request.session->graph);
    pl_shape *shapes = calloc((size_t)n + 1, sizeof *shapes);
    const pl_node *unknown = NULL;
    const pl_eager_run run = pl_pipeline_eager_run(p);
    pl_eager_cost cost = {0};
    int r = shapes ? infer_before(p, shapes, reterr) : pl_pipeline_no_memory(reterr);
    if (r == 0)
        r = pl_eager_count(&run, shapes, foresee, &cost, reterr);
    p->eager.cost = (pl_run_cost){.peak_bytes = cost.peak_bytes, .n_unknown = cost.n_unknown};
    if (r == 0 && !(unknown = list_known_sources(p, shapes)))
        r = plan_before(p, cost.left_bytes, reterr);
    if (r == 0 && p->plan.plan)
        pl_plan_tell_fallbacks(p->request.session->runtime, p->plan.plan);
    if (r == 0 && ret_text)
        r = write_text(p, shapes, unknown, as_json, ret_text, reterr);
    free(shapes);
    return r;
}

/* ---- all of it ---- */

static int explain_plan(pl_pipeline *p, bool as_json, char **ret_text, pl_error *reterr)
{
    int r = pl_pipeline_make_plan(p, reterr);
    if (r < 0)
        return r;
    pl_plan_tell_fallbacks(p->request.session->runtime, p->plan.plan);
    if (ret_text)
        *ret_text = pl_plan_explain(p->plan.plan, as_json);
    return !ret_text || *ret_text ? 0 : pl_pipeline_no_memory(reterr);
}

/* check -> gather -> plan. No text if ret_text is NULL. */
static int explain_phases(pl_pipeline *p, bool as_json, char **ret_text, pl_error *reterr)
{
    int r = pl_pipeline_check(p, reterr);
    if (r == 0)
        r = pl_pipeline_gather(p, reterr);
    if (r < 0)
        return r;
    return p->check->has_eager_ops ? explain_eager_ops(p, as_json, ret_text, reterr)
                                   : explain_plan(p, as_json, ret_text, reterr);
}

/* The cost of eager ops, as far as it is known. */
static pl_run_cost cost_of(const pl_pipeline *p)
{
    pl_run_cost cost = p->eager.cost;
    const pl_plan *plan = p->plan.plan;
    if (plan) {
        cost.peak_bytes = pl_max_u64(cost.peak_bytes, plan->peak_bytes);
        cost.disk_bytes = plan->disk_bytes;
        cost.flops = plan->flops;
    }
    return cost;
}

int pl_session_explain(pl_session *session, const pl_fetch *fetches, int n_fetches,
                       const pl_feed *feeds, int n_feeds, const pl_run_options *options,
                       bool as_json, char **ret_text, pl_run_cost *ret_cost, pl_error *reterr)
{
    PL_NOT_NULL(session, reterr);
    PL_NOT_NULL_IF(n_fetches > 0, fetches, reterr);
    PL_NOT_NULL_IF(n_feeds > 0, feeds, reterr);
    PL_TAKE_OPTIONS(pl_run_options, options, random_stream, reterr);
    const pl_run_request request = {session, fetches, n_fetches, feeds, n_feeds, options};
    pl_pipeline p;
    char *text = NULL;
    int r = pl_session_enter(session, NULL, reterr);
    if (r < 0)
        return r;
    pl_pipeline_init(&p, &request, NULL);
    r = explain_phases(&p, as_json, ret_text ? &text : NULL, reterr);
    if (r == 0 && ret_text)
        *ret_text = text;
    if (r == 0 && ret_cost)
        *ret_cost = cost_of(&p);
    pl_pipeline_done(&p);
    pl_session_leave(session, NULL);
    return r;
}
