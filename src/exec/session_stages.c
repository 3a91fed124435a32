/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a call: what is given to them, the plans of their own that some need, and how they
 * are told. See stages.h and session_call.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"
#include "exec/data.h"
#include "exec/device_step.h"
#include "exec/session_call.h"
#include "exec/stages.h"
#include "tensor/shape.h"

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "no memory to describe a run");
}

/* ---- a turn for each ---- */

/* What idles is the run's, too; where the run has no budget of its own the runtime's line bounds
 * it, and it is evicted as others are. */
static int budget(void *context, const pl_node *stage, uint64_t *ret_bytes)
{
    pl_call *c = context;
    uint64_t idle = 0;
    int r = c->options && c->options->budget_bytes > 0 ? pl_call_idle_bytes(c, stage, &idle) : 0;
    *ret_bytes = pl_sub_sat_u64(pl_call_budget_bytes(c), idle);
    return r;
}

static bool make_room(void *context, const pl_node *stage)
{
    return pl_call_evict_idle(context, stage);
}

static int promise(void *context, uint64_t bytes)
{
    pl_call *c = context;
    int r = pl_turn_begin(&c->turn, bytes);
    if (r <= 0)
        return r < 0 ? r : PL_EBUDGET;
    c->promised = true;
    c->stage_bytes = bytes;
    return 0;
}

static bool settle(void *context)
{
    pl_call *c = context;
    bool promised = c->promised;
    if (promised)
        pl_turn_end(&c->turn, c->stage_bytes);
    c->promised = false;
    return promised;
}

/* While a stage is urgent no other run begins, also none that it needs: see run_graph(). */
static int wait_for_others(void *context)
{
    pl_call *c = context;
    return pl_turn_wait(&c->turn);
}

static void be_patient(void *context)
{
    pl_call *c = context;
    pl_turn_done(&c->turn);
}

/* ---- plans of their own ---- */

static int keep_assignments(pl_call *c, const pl_node *fetched, pl_error *reterr)
{
    pl_tensor **staged = c->outer->staged;
    for (int i = 0; c->assigns && i < c->plan->n_values; i++) {
        const pl_node *node = c->plan->values[i].node;
        if (node->op->op_class != PL_CLASS_STATE || node == fetched || staged[node->number])
            continue;
        int r = pl_call_kept(c, node, &staged[node->number], reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What the run was given, but that it tells of itself alone, and may take so much. */
static pl_run_options quiet(const pl_call *outer, uint64_t budget_bytes)
{
    return (pl_run_options){.budget_bytes = budget_bytes,
                            .cancel = outer->options ? outer->options->cancel : NULL};
}

/* A node that is no stage, in the values of the whole run. Assignments in it become the variables'
 * values with all others. */
static int compute(void *context, const pl_node *node, pl_error *reterr)
{
    pl_call *outer = context;
    const pl_fetch fetch = {node, NULL};
    const pl_run_options options = quiet(outer, outer->options ? outer->options->budget_bytes : 0);
    pl_call c = {.session = outer->session,
                 .fetches = &fetch,
                 .n_fetches = 1,
                 .options = &options,
                 .staged = outer->staged,
                 .outer = outer};
    pl_tensor *tensor = NULL;
    int r = pl_call_begin(&c, reterr);
    if (r == 0)
        r = pl_call_run_plan(&c, &tensor, reterr);
    if (r == 0)
        r = keep_assignments(&c, node, reterr);
    pl_call_done(&c);
    if (r == 0)
        outer->staged[node->number] = tensor;
    else
        pl_tensor_unref(tensor);
    return r;
}

/* It takes a turn of its own, and would wait for the stage that it is for if that were urgent. */
static int run_graph(void *context, const pl_data_graph *graph, pl_tensor **ret_tensor,
                     pl_error *reterr)
{
    pl_call *outer = context;
    const pl_run_options options = quiet(outer, graph->budget_bytes);
    pl_call c = {.session = graph->session,
                 .fetches = &graph->fetch,
                 .n_fetches = 1,
                 .feeds = graph->feeds,
                 .n_feeds = graph->n_feeds,
                 .options = &options,
                 .outer = outer};
    be_patient(outer);
    int r = pl_call_begin(&c, reterr);
    if (r == 0)
        r = pl_call_run_plan(&c, ret_tensor, reterr);
    pl_call_done(&c);
    return r;
}

static int check(void *context)
{
    return pl_call_check(context);
}

/* ---- all of them ---- */

static pl_stages stages_of(pl_call *c)
{
    return (pl_stages){.runtime = c->session->runtime,
                       .graph = c->session->graph,
                       .needed = c->needed,
                       .asked = c->n_fetched,
                       .of_node = c->staged,
                       .check = check,
                       .compute = compute,
                       .budget = budget,
                       .make_room = make_room,
                       .promise = promise,
                       .settle = settle,
                       .wait = wait_for_others,
                       .be_patient = be_patient,
                       .run_graph = run_graph,
                       .context = c};
}

int pl_call_find_stages(pl_call *c, pl_error *reterr)
{
    if (!pl_stages_any(c->session->graph, c->needed))
        return 0;
    c->staged = calloc((size_t)pl_graph_n_nodes(c->session->graph) + 1, sizeof(pl_tensor *));
    return c->staged ? 0 : no_memory(reterr);
}

/* All at once, so that every variable has the same value wherever it is read. */
static int gather_given(pl_call *c, pl_error *reterr)
{
    pl_tensor **staged = PL_TAKE(c->staged);
    int n = pl_graph_n_nodes(c->session->graph), r = 0;
    for (int i = 0; r == 0 && i < n; i++)
        if (c->needed[i])
            r = pl_call_find_given(c, pl_graph_node(c->session->graph, i), &staged[i], reterr);
    c->staged = staged;
    return r;
}

int pl_call_run_stages(pl_call *c, pl_error *reterr)
{
    const pl_stages stages = stages_of(c);
    c->turn.may_wait = !pl_run_is_telling();
    int r = gather_given(c, reterr);
    return r < 0 ? r : pl_stages_run(&stages, reterr);
}

void pl_call_drop_stages(pl_call *c)
{
    for (int i = 0; c->staged && !c->outer && i < pl_graph_n_nodes(c->session->graph); i++)
        pl_tensor_unref(c->staged[i]);
    if (!c->outer)
        free(c->staged);
    c->staged = NULL;
}

/* ---- for people ---- */

/* The shapes as far as they are known before stages have run. */
static int infer_before(const pl_call *c, pl_shape *shapes, pl_error *reterr)
{
    pl_feed_shape *feeds = calloc((size_t)c->n_feeds + 1, sizeof *feeds);
    if (!feeds)
        return no_memory(reterr);
    for (int i = 0; i < c->n_feeds; i++)
        feeds[i] = (pl_feed_shape){c->feeds[i].placeholder, c->feeds[i].tensor->shape};
    int r = pl_graph_infer(c->session->graph, feeds, c->n_feeds, c->needed, shapes, reterr);
    free(feeds);
    return r;
}

/* Gives the plan what there is, and what stages will make as far as its shape is known. Returns the
 * first node that the plan asks for and whose shape is not known; NULL if there is none. */
static const pl_node *list_sources(pl_call *c, const pl_shape *shapes)
{
    const pl_node *unknown = NULL;
    for (int i = 0; i < pl_graph_n_nodes(c->session->graph); i++) {
        const pl_node *node = pl_graph_node(c->session->graph, i);
        pl_plan_source *source = &c->sources[c->n_sources];
        if (!c->needed[i] || (!c->staged[i] && !pl_data_takes(node)))
            continue;
        if (c->staged[i]) {
            pl_call_describe(node, c->staged[i], source);
            c->given[c->n_sources++] = pl_tensor_ref(c->staged[i]);
        } else if (pl_shape_is_known(&shapes[i])) {
            *source =
                (pl_plan_source){.node = node, .shape = shapes[i], .resident = true, .own = true};
            c->given[c->n_sources++] = NULL;
        } else if (!unknown && pl_stages_asked(c->session->graph, c->needed, c->n_fetched, node)) {
            unknown = node;
        }
    }
    return unknown;
}

/* As the run would: what stages leave is in memory, or on disk where that is too much. */
static int plan_before(pl_call *c, uint64_t left_bytes, pl_error *reterr)
{
    c->own_bytes = left_bytes;
    int r = pl_call_make_plan(c, reterr);
    if (r != PL_EBUDGET || left_bytes == 0)
        return r;
    c->own_bytes = 0;
    for (int i = 0; i < c->n_sources; i++)
        if (c->sources[i].own)
            c->sources[i].own = c->sources[i].resident = false;
    return pl_call_make_plan(c, reterr);
}

static void write_cost(const pl_run_cost *cost, bool as_json, FILE *to)
{
    if (as_json) {
        fprintf(to, "],\"stages_peak_bytes\":%" PRIu64 ",\"n_unknown\":%d,", cost->peak_bytes,
                cost->n_unknown);
        return;
    }
    fprintf(to, "stages have %s at a time", PL_SIZE(cost->peak_bytes));
    if (cost->n_unknown > 0)
        fprintf(to, ", and what is not known before of %d of them", cost->n_unknown);
    fputc('\n', to);
}

static void write_all(pl_call *c, const pl_shape *shapes, const pl_node *unknown, bool as_json,
                      const char *plan, FILE *to)
{
    const pl_stages stages = stages_of(c);
    fputs(as_json ? "{\"stages\":[" : "", to);
    pl_stages_explain(&stages, shapes, as_json, to);
    write_cost(&c->stages_cost, as_json, to);
    if (plan)
        fputs(as_json ? plan + 1 : plan, to);
    if (!plan && as_json)
        fprintf(to, "\"schema\":1,\"steps\":null,\"waits_for\":\"%s\"}\n", unknown->name);
    else if (!plan)
        fprintf(to, "the rest is planned when the shape of '%s' is known\n", unknown->name);
}

static int write_text(pl_call *c, const pl_shape *shapes, const pl_node *unknown, bool as_json,
                      char **ret_text, pl_error *reterr)
{
    char *text = NULL, *plan = c->plan ? pl_plan_explain(c->plan, as_json) : NULL;
    size_t n;
    FILE *to = plan || !c->plan ? open_memstream(&text, &n) : NULL;
    if (to)
        write_all(c, shapes, unknown, as_json, plan, to);
    free(plan);
    if (to && fclose(to) == 0) {
        *ret_text = text;
        return 0;
    }
    free(text);
    return no_memory(reterr);
}

int pl_call_explain_stages(pl_call *c, bool as_json, char **ret_text, pl_error *reterr)
{
    pl_shape *shapes = calloc((size_t)pl_graph_n_nodes(c->session->graph) + 1, sizeof *shapes);
    const pl_node *unknown = NULL;
    const pl_stages stages = stages_of(c);
    pl_stages_cost cost = {0};
    int r = shapes ? gather_given(c, reterr) : no_memory(reterr);
    if (r == 0)
        r = infer_before(c, shapes, reterr);
    if (r == 0 && pl_stages_count(&stages, shapes, &cost) < 0)
        r = no_memory(reterr);
    c->stages_cost = (pl_run_cost){.peak_bytes = cost.peak_bytes, .n_unknown = cost.n_unknown};
    if (r == 0 && !(unknown = list_sources(c, shapes)))
        r = plan_before(c, cost.left_bytes, reterr);
    if (r == 0 && c->plan)
        pl_plan_tell_fallbacks(c->session->runtime, c->plan);
    if (r == 0)
        r = write_text(c, shapes, unknown, as_json, ret_text, reterr);
    free(shapes);
    return r;
}
