/* SPDX-License-Identifier: Apache-2.0 */
/* The plan that a run would have, and its cost: of what hangs on files and strings, as far as it is
 * known before they are read. See plimsoll/session.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"
#include "exec/eager/eager_ops.h"
#include "exec/eager/whole_ops.h"
#include "exec/session/session_call.h"
#include "exec/step/device_step.h"
#include "tensor/shape.h"
#include "util/text.h"

/* ---- before stages have run ---- */

/* The shapes as far as they are known before stages have run. */
static int infer_before(const pl_call *c, pl_shape *shapes, pl_error *reterr)
{
    pl_feed_shape *feeds = calloc((size_t)c->n_feeds + 1, sizeof *feeds);
    if (!feeds)
        return pl_call_no_memory(reterr);
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

/* An input of a stage, that is none itself: as compute() of session_stages.c would. */
static int foresee(void *context, const pl_node *node, const pl_shape *shapes, uint64_t live_bytes,
                   uint64_t *ret_bytes, pl_error *reterr)
{
    pl_call *outer = context;
    const pl_fetch fetch = {node, NULL};
    pl_call c = {.session = outer->session,
                 .fetches = &fetch,
                 .n_fetches = 1,
                 .options = outer->options,
                 .staged = outer->staged,
                 .outer = outer};
    c.turn.runtime = outer->session->runtime;
    int r = pl_call_prepare(&c, reterr);
    if (r == 0 && !list_sources(&c, shapes))
        r = plan_before(&c, live_bytes, reterr);
    if (r == 0 && c.plan) {
        *ret_bytes = c.plan->peak_bytes;
        r = 1;
    }
    pl_call_done(&c);
    return r;
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
    const pl_stages stages = pl_call_stages(c);
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
    char *plan = c->plan ? pl_plan_explain(c->plan, as_json) : NULL;
    pl_text text = {0};
    if ((plan || !c->plan) && pl_text_open(&text))
        write_all(c, shapes, unknown, as_json, plan, text.to);
    free(plan);
    *ret_text = pl_text_close(&text);
    return *ret_text ? 0 : pl_call_no_memory(reterr);
}

static int explain_stages(pl_call *c, bool as_json, char **ret_text, pl_error *reterr)
{
    pl_shape *shapes = calloc((size_t)pl_graph_n_nodes(c->session->graph) + 1, sizeof *shapes);
    const pl_node *unknown = NULL;
    const pl_stages stages = pl_call_stages(c);
    pl_stages_cost cost = {0};
    int r = shapes ? pl_call_gather_given(c, reterr) : pl_call_no_memory(reterr);
    if (r == 0)
        r = infer_before(c, shapes, reterr);
    if (r == 0)
        r = pl_stages_count(&stages, shapes, foresee, &cost, reterr);
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

/* ---- all of it ---- */

/* Of stages as far as it is known. */
static pl_run_cost cost_of(const pl_call *c)
{
    pl_run_cost cost = c->stages_cost;
    if (c->plan) {
        cost.peak_bytes = pl_max_u64(cost.peak_bytes, c->plan->peak_bytes);
        cost.disk_bytes = c->plan->disk_bytes;
        cost.flops = c->plan->flops;
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
    pl_call c = {session, fetches, n_fetches, feeds, n_feeds, options};
    char *text = NULL;
    int r = pl_call_check_given(&c, reterr);
    if (r == 0)
        r = pl_session_enter(session, NULL, reterr);
    if (r < 0)
        return r;
    c.turn.runtime = session->runtime;
    r = pl_call_prepare(&c, reterr);
    if (r == 0)
        r = pl_call_find_stages(&c, reterr);
    if (r == 0)
        r = c.staged ? explain_stages(&c, as_json, &text, reterr) : pl_call_plan(&c, reterr);
    if (r == 0 && ret_text && !text) {
        text = pl_plan_explain(c.plan, as_json);
        r = text ? 0 : pl_call_no_memory(reterr);
    }
    if (r == 0 && ret_text)
        *ret_text = PL_TAKE(text);
    free(text);
    if (r == 0 && ret_cost)
        *ret_cost = cost_of(&c);
    pl_call_done(&c);
    pl_session_leave(session, NULL);
    return r;
}
