/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a call: what is given to them, their turns, and the plans of their own that some
 * need. See eager_ops.h and session_call.h. */
#include <errno.h>
#include <stdlib.h>

#include "exec/eager/eager_ops.h"
#include "exec/eager/whole_ops.h"
#include "exec/session/session_call.h"

/* ---- a turn for each ---- */

/* What idles is the run's, too; where the run has no budget of its own the runtime's line bounds
 * it, and it is evicted as others are. */
static int budget(void *context, const pl_node *stage, bool exactly, uint64_t *ret_bytes)
{
    pl_call *c = context;
    uint64_t idle = 0;
    int r = c->options && c->options->budget_bytes > 0 ? pl_call_idle_bytes(c, stage, &idle) : 0;
    *ret_bytes = pl_sub_sat_u64(exactly ? pl_call_budget_bytes(c) : pl_call_sure_bytes(c), idle);
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
                            .cancel = outer->options ? outer->options->cancel : NULL,
                            .random_stream = outer->options ? outer->options->random_stream : 0};
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

pl_stages pl_call_stages(pl_call *c)
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
    return c->staged ? 0 : pl_call_no_memory(reterr);
}

int pl_call_gather_given(pl_call *c, pl_error *reterr)
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
    const pl_stages stages = pl_call_stages(c);
    c->turn.may_wait = !pl_run_is_telling();
    int r = pl_call_gather_given(c, reterr);
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
