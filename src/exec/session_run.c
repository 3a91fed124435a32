/* SPDX-License-Identifier: Apache-2.0 */
/* A run: what is given is gathered, stages make what cannot be planned, a plan is made of the
 * descriptions of both, the steps are run, and what is kept goes to the caller and to the
 * variables. See plimsoll/session.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/blas.h"
#include "exec/data.h"
#include "exec/npy_tensor.h"
#include "exec/run.h"
#include "exec/session_private.h"
#include "exec/stages.h"
#include "tensor/pool.h"
#include "tensor/shape.h"

/* One call of run() or explain(). */
typedef struct call {
    pl_session *session;
    const pl_fetch *fetches;
    int n_fetches;
    const pl_feed *feeds;
    int n_feeds;
    const pl_run_options *options;
    bool *needed;        /* by number of the node, as the next two */
    bool *asked;         /* it is fetched */
    pl_tensor **of_node; /* what is given, or was made by a stage */
    bool within;         /* another call, for one of its stages: of_node is that one's */
    pl_plan_source *sources;
    pl_tensor **given; /* by source; borrowed */
    int n_sources;
    bool assigns;
    pl_plan *plan;
    pl_run run;
} call;

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "no memory to describe a run");
}

/* ---- what is given ---- */

static int find_feed(const call *c, const pl_node *node, pl_tensor **ret_tensor, pl_error *reterr)
{
    for (int i = 0; i < c->n_feeds; i++)
        if (c->feeds[i].placeholder == node) {
            *ret_tensor = pl_tensor_ref(c->feeds[i].tensor);
            return pl_session_check(node, c->feeds[i].tensor, reterr);
        }
    *ret_tensor = NULL;
    return 0;
}

/* The tensor of a source, the caller's; NULL if it has none (which choose.c refuses, if it is
 * used). */
static int find_given(const call *c, const pl_node *node, pl_tensor **ret_tensor, pl_error *reterr)
{
    *ret_tensor = NULL;
    switch (node->op->id) {
    case PL_OP_placeholder:
        return find_feed(c, node, ret_tensor, reterr);
    case PL_OP_constant:
        if (pl_node_payload(node))
            *ret_tensor = pl_tensor_ref(pl_node_payload(node));
        return 0;
    case PL_OP_variable:
        *ret_tensor = pl_session_variable(c->session, node);
        return 0;
    case PL_OP_file: {
        int r = pl_tensor_open_npy(c->session->runtime, node->attrs[PL_ATTR_file_path].value.text,
                                   ret_tensor, reterr);
        return r < 0 ? r : pl_session_check(node, *ret_tensor, reterr);
    }
    default:
        return 0;
    }
}

static bool is_in_order(const int axes[PL_RANK_MAX], int rank)
{
    for (int i = 0; i < rank; i++)
        if (axes[i] != i)
            return false;
    return true;
}

static void describe(const pl_node *node, const pl_tensor *tensor, pl_plan_source *source)
{
    int axes[PL_RANK_MAX];
    bool permuted = pl_tensor_order(tensor, axes);
    *source = (pl_plan_source){
        .node = node,
        .shape = tensor->shape,
        .resident = pl_buffer_pin_cost_bytes(tensor->buffer) == 0,
        .permuted = permuted && !is_in_order(axes, tensor->shape.rank),
        .scattered = !permuted,
    };
}

static int gather_given(call *c, pl_error *reterr)
{
    int n = pl_graph_n_nodes(c->session->graph), r = 0;
    for (int i = 0; r == 0 && !c->within && i < n; i++)
        if (c->needed[i])
            r = find_given(c, pl_graph_node(c->session->graph, i), &c->of_node[i], reterr);
    return r;
}

static void list_sources(call *c)
{
    int n = pl_graph_n_nodes(c->session->graph);
    for (int i = 0; i < n; i++)
        if (c->needed[i] && c->of_node[i]) {
            describe(pl_graph_node(c->session->graph, i), c->of_node[i], &c->sources[c->n_sources]);
            c->given[c->n_sources++] = c->of_node[i];
        }
}

static int check_fetches(const call *c, pl_error *reterr)
{
    for (int i = 0; i < c->n_fetches; i++)
        if (c->fetches[i].node->graph != c->session->graph)
            return pl_error_set(reterr, -EINVAL, "%s '%s' is of another graph",
                                c->fetches[i].node->op->name, c->fetches[i].node->name);
    for (int i = 0; i < c->n_feeds; i++) {
        const pl_node *node = c->feeds[i].placeholder;
        if (node->op->id != PL_OP_placeholder || node->graph != c->session->graph)
            return pl_error_set(reterr, -EINVAL, "%s '%s' is no placeholder of this graph",
                                node->op->name, node->name);
        for (int k = 0; k < i; k++)
            if (c->feeds[k].placeholder == node)
                return pl_error_set(reterr, -EINVAL, "placeholder '%s' is fed twice", node->name);
    }
    return 0;
}

/* Two assignments to one variable: which one would it be? */
static int check_assignments(call *c, pl_error *reterr)
{
    int n = pl_graph_n_nodes(c->session->graph), r = 0;
    const pl_node **first = calloc((size_t)n + 1, sizeof(pl_node *));
    if (!first)
        return no_memory(reterr);
    for (int i = 0; r == 0 && i < n; i++) {
        const pl_node *node = pl_graph_node(c->session->graph, i);
        if (!c->needed[i] || node->op->op_class != PL_CLASS_STATE)
            continue;
        const pl_node **of_variable = &first[node->inputs[0]->number];
        c->assigns = true;
        if (*of_variable)
            r = pl_error_set(reterr, -EINVAL, "'%s' and '%s' both assign to '%s' in one run",
                             (*of_variable)->name, node->name, node->inputs[0]->name);
        *of_variable = node;
    }
    free(first);
    return r;
}

/* ---- the plan ---- */

/* Is this the only fetch of its node? Else it is a tensor first. */
static bool is_only_fetch(const call *c, int at)
{
    for (int i = 0; i < c->n_fetches; i++)
        if (i != at && c->fetches[i].node == c->fetches[at].node)
            return false;
    return true;
}

static uint64_t budget_of(const call *c)
{
    pl_pool_state state;
    pl_pool *pool = c->session->runtime->pool;
    pl_pool_state_read(pool, &state);
    uint64_t budget =
        pl_add_sat_u64(pl_memory_headroom_bytes(c->session->runtime->memory), state.idle_bytes);
    if (c->options && c->options->budget_bytes > 0)
        budget = pl_min_u64(budget, c->options->budget_bytes);
    return budget;
}

/* Workers call it side by side, each with one thread. */
static uint64_t blas_bytes(pl_dtype dtype, int64_t rows)
{
    return pl_blas_workspace_bytes(dtype, rows, 1);
}

static int make_plan(call *c, pl_error *reterr)
{
    pl_runtime *runtime = c->session->runtime;
    pl_pool_state state;
    pl_pool_state_read(runtime->pool, &state);
    pl_plan_fetch *fetches = calloc((size_t)c->n_fetches + 1, sizeof *fetches);
    if (!fetches)
        return no_memory(reterr);
    for (int i = 0; i < c->n_fetches; i++)
        fetches[i] = (pl_plan_fetch){c->fetches[i].node,
                                     c->fetches[i].npy_path && is_only_fetch(c, i) &&
                                         c->fetches[i].node->op->op_class != PL_CLASS_STATE};
    const pl_plan_request request = {
        .graph = c->session->graph,
        .fetches = fetches,
        .n_fetches = c->n_fetches,
        .sources = c->sources,
        .n_sources = c->n_sources,
        .budget_bytes = budget_of(c),
        .disk_bytes = state.room_bytes,
        .slab_bytes = runtime->pool->slab_bytes,
        .small_bytes = runtime->pool->slab_bytes / PL_POOL_SMALL_SHARE,
        .library_bytes = blas_bytes,
        .n_threads = pl_threads_count(runtime->threads),
    };
    int r = pl_plan_new(&request, &c->plan, reterr);
    free(fetches);
    return r;
}

static int prepare(call *c, pl_error *reterr)
{
    size_t n = (size_t)pl_graph_n_nodes(c->session->graph) + 1;
    pl_node **nodes = calloc((size_t)c->n_fetches + 1, sizeof(pl_node *));
    c->needed = calloc(n, sizeof *c->needed);
    c->asked = calloc(n, sizeof *c->asked);
    c->sources = calloc(n, sizeof *c->sources);
    c->given = calloc(n, sizeof(pl_tensor *));
    if (!c->within)
        c->of_node = calloc(n, sizeof(pl_tensor *));
    bool all = nodes && c->needed && c->asked && c->sources && c->given && c->of_node;
    int r = all ? check_fetches(c, reterr) : no_memory(reterr);
    for (int i = 0; r == 0 && i < c->n_fetches; i++) {
        nodes[i] = pl_graph_node(c->session->graph, c->fetches[i].node->number);
        c->asked[nodes[i]->number] = true;
    }
    if (r == 0) {
        pl_graph_mark_needed(c->session->graph, nodes, c->n_fetches, c->needed);
        r = check_assignments(c, reterr);
    }
    free(nodes);
    return r;
}

/* ---- before the plan ---- */

static int compute_within(void *context, const pl_node *node, pl_error *reterr);

static uint64_t stage_budget(const void *context)
{
    return budget_of(context);
}

static pl_stages stages_of(call *c)
{
    return (pl_stages){.runtime = c->session->runtime,
                       .graph = c->session->graph,
                       .needed = c->needed,
                       .asked = c->asked,
                       .of_node = c->of_node,
                       .options = c->options,
                       .compute = compute_within,
                       .budget = stage_budget,
                       .context = c};
}

static int run_stages(call *c, pl_error *reterr)
{
    if (c->within || !pl_stages_any(c->session->graph, c->needed))
        return 0;
    const pl_stages stages = stages_of(c);
    return pl_stages_run(&stages, reterr);
}

static int plan_call(call *c, pl_error *reterr)
{
    int r = gather_given(c, reterr);
    if (r == 0)
        r = run_stages(c, reterr);
    if (r == 0) {
        list_sources(c);
        r = make_plan(c, reterr);
    }
    return r;
}

/* ---- the run ---- */

static int set_values(call *c, pl_error *reterr)
{
    pl_run *run = &c->run;
    run->runtime = c->session->runtime;
    run->plan = c->plan;
    run->options = c->options;
    pthread_mutex_init(&run->telling, NULL);
    run->values = calloc((size_t)c->plan->n_values + 1, sizeof *run->values);
    if (!run->values)
        return no_memory(reterr);
    for (int i = 0; i < c->plan->n_values; i++)
        run->values[i].fd = -1;
    for (int i = 0; i < c->n_sources; i++) {
        pl_live_value *value = &run->values[c->plan->value_of[c->sources[i].node->number]];
        const pl_tensor *tensor = c->given[i];
        value->buffer = pl_buffer_ref(tensor->buffer);
        value->offset = (uint64_t)tensor->offset_bytes;
        memcpy(value->strides, tensor->strides, sizeof value->strides);
        pl_tensor_order(tensor, value->order);
    }
    for (int i = 0; i < c->n_fetches; i++)
        run->values[c->plan->value_of[c->fetches[i].node->number]].path = c->fetches[i].npy_path;
    return 0;
}

/* The value of a node that is kept, as a tensor. */
static int kept_tensor(call *c, const pl_node *node, pl_tensor **ret_tensor, pl_error *reterr)
{
    if (c->of_node[node->number]) {
        *ret_tensor = pl_tensor_ref(c->of_node[node->number]);
        return 0;
    }
    pl_live_value *value = &c->run.values[c->plan->value_of[node->number]];
    return pl_tensor_wrap(pl_buffer_ref(value->buffer), node->dtype, &c->plan->shapes[node->number],
                          NULL, 0, ret_tensor, reterr);
}

/* Results that are not in their files yet are written; files get their names later, together. */
static int finish_fetch(call *c, int i, pl_tensor **ret_tensor, pl_error *reterr)
{
    const pl_fetch *fetch = &c->fetches[i];
    const pl_plan_value *value = &c->plan->values[c->plan->value_of[fetch->node->number]];
    if (value->place == PL_PLACE_FILE && !value->from_outside)
        return pl_npy_publish(fetch->npy_path, reterr);
    int r = kept_tensor(c, fetch->node, ret_tensor, reterr);
    if (r < 0 || !fetch->npy_path)
        return r;
    r = pl_tensor_save_npy(*ret_tensor, fetch->npy_path, reterr);
    pl_tensor_unref(PL_TAKE(*ret_tensor));
    return r;
}

static int finish_fetches(call *c, pl_tensor **tensors, pl_error *reterr)
{
    for (int i = 0; i < c->plan->n_values; i++) { /* all is written */
        pl_live_value *value = &c->run.values[i];
        if (value->fd >= 0) {
            int r = close(value->fd) < 0 ? -errno : 0;
            value->fd = -1;
            if (r < 0)
                return pl_error_set(reterr, r, "cannot write '%s': %s", value->path,
                                    pl_error_text(r));
        } else if (c->plan->values[i].kept && value->pinned) {
            pl_buffer_unpin(value->buffer);
            value->pinned = false;
        }
    }
    for (int i = 0; i < c->n_fetches; i++) {
        int r = finish_fetch(c, i, &tensors[i], reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What was assigned by the plan, or by stages before it. */
static int commit_variables(call *c, pl_error *reterr)
{
    int n = c->assigns ? pl_graph_n_nodes(c->session->graph) : 0;
    for (int i = 0; i < n; i++) {
        const pl_node *node = pl_graph_node(c->session->graph, i);
        pl_tensor *tensor = NULL;
        if (!c->needed[i] || node->op->op_class != PL_CLASS_STATE)
            continue;
        int r = kept_tensor(c, node, &tensor, reterr);
        if (r == 0)
            r = pl_session_set(c->session, node->inputs[0], tensor, reterr);
        pl_tensor_unref(tensor);
        if (r < 0)
            return r;
    }
    return 0;
}

static void discard_files(call *c)
{
    for (int i = 0; c->plan && c->run.values && i < c->plan->n_values; i++)
        if (c->plan->values[i].place == PL_PLACE_FILE && !c->plan->values[i].from_outside)
            pl_npy_discard(c->run.values[i].path);
}

static void call_done(call *c)
{
    for (int i = 0; c->run.values && i < c->plan->n_values; i++)
        pl_run_drop_value(&c->run, i);
    if (c->run.runtime)
        pthread_mutex_destroy(&c->run.telling);
    free(c->run.values);
    for (int i = 0; !c->within && c->of_node && i < pl_graph_n_nodes(c->session->graph); i++)
        pl_tensor_unref(c->of_node[i]);
    if (!c->within)
        free(c->of_node);
    pl_plan_free(c->plan);
    free(c->needed);
    free(c->asked);
    free(c->sources);
    free(c->given);
}

static int run_plan(call *c, pl_tensor **tensors, pl_error *reterr)
{
    int r = plan_call(c, reterr);
    if (r == 0)
        r = set_values(c, reterr);
    if (r == 0)
        r = pl_run_steps(&c->run, reterr);
    if (r == 0)
        r = finish_fetches(c, tensors, reterr);
    return r;
}

/* What a stage wants of a node that is none: a plan of its own, in the values of the whole run.
 * Assignments in it become the variables' values with all others. */
static int compute_within(void *context, const pl_node *node, pl_error *reterr)
{
    call *outer = context;
    const pl_fetch fetch = {node, NULL};
    call c = {.session = outer->session,
              .fetches = &fetch,
              .n_fetches = 1,
              .options = outer->options,
              .of_node = outer->of_node,
              .within = true};
    pl_tensor *tensor = NULL;
    int r = prepare(&c, reterr);
    if (r == 0)
        r = run_plan(&c, &tensor, reterr);
    for (int i = 0; r == 0 && c.assigns && i < c.plan->n_steps; i++) {
        const pl_node *state = c.plan->steps[i].node;
        if (state->op->op_class == PL_CLASS_STATE && state != node)
            r = kept_tensor(&c, state, &outer->of_node[state->number], reterr);
    }
    call_done(&c);
    if (r == 0)
        outer->of_node[node->number] = tensor;
    else
        pl_tensor_unref(tensor);
    return r;
}

static int run_call(call *c, pl_tensor **tensors, pl_error *reterr)
{
    int r = run_plan(c, tensors, reterr);
    if (r == 0)
        r = commit_variables(c, reterr);
    if (r < 0)
        discard_files(c);
    return r;
}

int pl_session_run(pl_session *session, const pl_fetch *fetches, int n_fetches,
                   const pl_feed *feeds, int n_feeds, const pl_run_options *options,
                   pl_tensor **ret_tensors, pl_error *reterr)
{
    call c = {session, fetches, n_fetches, feeds, n_feeds, options};
    pl_tensor **tensors = calloc((size_t)n_fetches + 1, sizeof(pl_tensor *));
    int r = tensors ? prepare(&c, reterr) : no_memory(reterr);
    if (r == 0 && c.assigns)
        pthread_mutex_lock(&session->assign);
    bool locked = r == 0 && c.assigns;
    if (r == 0)
        r = run_call(&c, tensors, reterr);
    call_done(&c);
    if (locked)
        pthread_mutex_unlock(&session->assign);
    for (int i = 0; tensors && i < n_fetches; i++)
        if (r == 0 && ret_tensors)
            ret_tensors[i] = tensors[i];
        else
            pl_tensor_unref(tensors[i]);
    free(tensors);
    return r;
}

/* ---- for people ---- */

/* The shapes as far as they are known before stages have run. */
static int infer_before(const call *c, pl_shape *shapes, pl_error *reterr)
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

/* Gives the plan what stages will make, as far as its shape is known. Returns the first node that
 * the plan asks for and whose shape is not known; NULL if there is none. */
static const pl_node *promise_stages(call *c, const pl_shape *shapes)
{
    int n = pl_graph_n_nodes(c->session->graph);
    const pl_node *unknown = NULL;
    list_sources(c);
    for (int i = 0; i < n; i++) {
        const pl_node *node = pl_graph_node(c->session->graph, i);
        if (!c->needed[i] || !pl_data_takes(node))
            continue;
        if (pl_shape_is_known(&shapes[i]))
            c->sources[c->n_sources++] =
                (pl_plan_source){.node = node, .shape = shapes[i], .resident = true};
        else if (!unknown && pl_stages_asked(c->session->graph, c->needed, c->asked, node))
            unknown = node;
    }
    return unknown;
}

static void write_explained(call *c, const pl_shape *shapes, const pl_node *unknown, bool as_json,
                            const char *plan, FILE *to)
{
    const pl_stages stages = stages_of(c);
    fputs(as_json ? "{\"stages\":[" : "", to);
    pl_stages_explain(&stages, shapes, as_json, to);
    if (as_json)
        fprintf(to, "],%s", plan ? plan + 1 : "");
    else if (plan)
        fputs(plan, to);
    if (!plan && as_json)
        fprintf(to, "\"schema\":1,\"steps\":null,\"waits_for\":\"%s\"}\n", unknown->name);
    else if (!plan)
        fprintf(to, "the rest is planned when the shape of '%s' is known\n", unknown->name);
}

static int explain_stages(call *c, bool as_json, char **ret_text, pl_error *reterr)
{
    pl_shape *shapes = calloc((size_t)pl_graph_n_nodes(c->session->graph) + 1, sizeof *shapes);
    const pl_node *unknown = NULL;
    char *plan = NULL, *text = NULL;
    size_t n;
    int r = shapes ? gather_given(c, reterr) : no_memory(reterr);
    if (r == 0)
        r = infer_before(c, shapes, reterr);
    if (r == 0 && !(unknown = promise_stages(c, shapes)))
        r = make_plan(c, reterr);
    if (r == 0 && c->plan && !(plan = pl_plan_explain(c->plan, as_json)))
        r = no_memory(reterr);
    FILE *to = r == 0 ? open_memstream(&text, &n) : NULL;
    if (to) {
        write_explained(c, shapes, unknown, as_json, plan, to);
        if (fclose(to) != 0)
            r = no_memory(reterr);
    } else if (r == 0) {
        r = no_memory(reterr);
    }
    free(plan);
    free(shapes);
    if (r == 0)
        *ret_text = text;
    else
        free(text);
    return r;
}

int pl_session_explain(pl_session *session, const pl_fetch *fetches, int n_fetches,
                       const pl_feed *feeds, int n_feeds, const pl_run_options *options,
                       bool as_json, char **ret_text, pl_run_cost *ret_cost, pl_error *reterr)
{
    call c = {session, fetches, n_fetches, feeds, n_feeds, options};
    char *text = NULL;
    int r = prepare(&c, reterr);
    bool staged = r == 0 && pl_stages_any(session->graph, c.needed);
    if (r == 0)
        r = staged ? explain_stages(&c, as_json, &text, reterr) : plan_call(&c, reterr);
    if (r == 0 && !staged && ret_text) {
        text = pl_plan_explain(c.plan, as_json);
        r = text ? 0 : no_memory(reterr);
    }
    if (r == 0 && ret_text)
        *ret_text = PL_TAKE(text);
    free(text);
    if (r == 0 && ret_cost && c.plan)
        *ret_cost = (pl_run_cost){c.plan->peak_bytes, c.plan->disk_bytes, c.plan->flops};
    else if (r == 0 && ret_cost)
        *ret_cost = (pl_run_cost){0};
    call_done(&c);
    return r;
}
