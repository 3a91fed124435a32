/* SPDX-License-Identifier: Apache-2.0 */
/* A run: what is given is gathered, a plan is made of its descriptions, the steps are run, and what
 * is kept goes to the caller and to the variables. See plimsoll/session.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/device_step.h"
#include "exec/npy_tensor.h"
#include "exec/session_call.h"
#include "exec/turns.h"
#include "plan/matmul_plan.h"
#include "tensor/pool.h"

typedef pl_call call;

/* Of one call, with plans for what is left each time. Who makes tensors for ever can still keep it
 * from ending well. */
enum { RUNS_MAX = 5 };

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "no memory to describe a run");
}

/* ---- what is given ---- */

static int find_feed(const call *c, const pl_node *node, pl_tensor **ret_tensor, pl_error *reterr)
{
    int feed = c->feed_of[node->number] - 1;
    if (feed < 0)
        return 0;
    *ret_tensor = pl_tensor_ref(c->feeds[feed].tensor);
    return pl_session_check(node, *ret_tensor, reterr);
}

/* Nothing of it is in memory that the plan does not know of. */
static int open_file(const call *c, const pl_node *node, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_error why;
    int r = pl_npy_open(c->session->runtime, node->attrs[PL_ATTR_file_path].value.text, true,
                        ret_tensor, &why);
    if (r < 0)
        return pl_error_set(reterr, r, "file '%s': %s", node->name, why.message);
    return pl_session_check(node, *ret_tensor, reterr);
}

/* The tensor of a source, the caller's; NULL if it has none (which choose.c refuses, if it is
 * used). */
int pl_call_find_given(const call *c, const pl_node *node, pl_tensor **ret_tensor, pl_error *reterr)
{
    *ret_tensor = NULL;
    if (c->staged) {
        pl_tensor *tensor = c->staged[node->number];
        *ret_tensor = tensor ? pl_tensor_ref(tensor) : NULL;
        return 0;
    }
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
    case PL_OP_file:
        return open_file(c, node, ret_tensor, reterr);
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

static bool swaps_last_two(const int axes[PL_RANK_MAX], int rank)
{
    return rank >= 2 && is_in_order(axes, rank - 2) && axes[rank - 2] == rank - 1;
}

void pl_call_describe(const pl_node *node, const pl_tensor *tensor, pl_plan_source *source)
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
    source->holder = pl_buffer_holder(tensor->buffer, &source->holder_bytes);
    source->swapped = source->permuted && swaps_last_two(axes, tensor->shape.rank);
}

static int gather_sources(call *c, pl_error *reterr)
{
    int n = pl_graph_n_nodes(c->session->graph), r = 0;
    for (int i = 0; r == 0 && i < n; i++) {
        const pl_node *node = pl_graph_node(c->session->graph, i);
        pl_tensor *tensor = NULL;
        if (!c->needed[i])
            continue;
        c->assigns = c->assigns || node->op->op_class == PL_CLASS_STATE;
        r = pl_call_find_given(c, node, &tensor, reterr);
        if (tensor) {
            pl_call_describe(node, tensor, &c->sources[c->n_sources]);
            c->given[c->n_sources++] = tensor;
        }
    }
    return r;
}

void pl_call_drop_sources(call *c)
{
    for (int i = 0; i < c->n_sources; i++)
        pl_tensor_unref(c->given[i]);
    c->n_sources = 0;
}

int pl_call_check_paths(const call *c, pl_error *reterr)
{
    for (int i = 0; i < c->n_fetches; i++)
        for (int k = 0; c->fetches[i].npy_path && k < i; k++)
            if (c->fetches[k].npy_path &&
                strcmp(c->fetches[i].npy_path, c->fetches[k].npy_path) == 0)
                return pl_error_set(reterr, -EINVAL, "'%s' and '%s' are both to be written to '%s'",
                                    c->fetches[k].node->name, c->fetches[i].node->name,
                                    c->fetches[i].npy_path);
    return 0;
}

static int check_fetches(call *c, pl_error *reterr)
{
    for (int i = 0; i < c->n_fetches; i++) {
        const pl_node *node = c->fetches[i].node;
        if (node->graph != c->session->graph)
            return pl_error_set(reterr, -EINVAL, "%s '%s' is of another graph", node->op->name,
                                node->name);
        c->n_fetched[node->number]++;
    }
    for (int i = 0; i < c->n_feeds; i++) {
        const pl_node *node = c->feeds[i].placeholder;
        if (node->op->id != PL_OP_placeholder || node->graph != c->session->graph)
            return pl_error_set(reterr, -EINVAL, "%s '%s' is no placeholder of this graph",
                                node->op->name, node->name);
        if (c->feed_of[node->number] > 0)
            return pl_error_set(reterr, -EINVAL, "placeholder '%s' is fed twice", node->name);
        c->feed_of[node->number] = i + 1;
    }
    return 0;
}

/* Two assignments to one variable: which one would it be? */
static int check_assignments(const call *c, pl_error *reterr)
{
    int n = pl_graph_n_nodes(c->session->graph);
    const pl_node **by = c->assigns ? calloc((size_t)n + 1, sizeof(pl_node *)) : NULL;
    int r = c->assigns && !by ? no_memory(reterr) : 0;
    for (int i = 0; r == 0 && c->assigns && i < n; i++) {
        const pl_node *node = pl_graph_node(c->session->graph, i);
        if (!c->needed[i] || node->op->op_class != PL_CLASS_STATE)
            continue;
        const pl_node **other = &by[node->inputs[0]->number];
        if (*other)
            r = pl_error_set(reterr, -EINVAL, "'%s' and '%s' both assign to '%s' in one run",
                             (*other)->name, node->name, node->inputs[0]->name);
        *other = node;
    }
    free(by);
    return r;
}

/* ---- the plan ---- */

static bool is_given(const call *c, const pl_node *node)
{
    for (int i = 0; i < c->n_sources; i++)
        if (c->sources[i].node == node)
            return true;
    return false;
}

/* What is fetched twice is a tensor first; but of what is from outside, all that are to be written
 * count. */
static bool goes_to_file(const call *c, int at)
{
    const pl_node *node = c->fetches[at].node;
    bool alone = c->n_fetched[node->number] == 1 && node->op->op_class != PL_CLASS_STATE;
    return c->fetches[at].npy_path && (alone || is_given(c, node));
}

static uint64_t most_bytes(const call *c)
{
    bool given = c->options && c->options->budget_bytes > 0;
    return given ? c->options->budget_bytes : UINT64_MAX;
}

uint64_t pl_call_budget_bytes(call *c)
{
    return pl_turn_budget_bytes(&c->turn, most_bytes(c));
}

bool pl_call_has_budget(call *c, uint64_t bytes)
{
    return pl_turn_allows(&c->turn, bytes, most_bytes(c));
}

/* Workers call it side by side, each with one thread. */
static uint64_t blas_bytes(pl_dtype dtype, int64_t rows)
{
    return pl_matmul_workspace_bytes(dtype, rows, 1);
}

int pl_call_make_plan(call *c, pl_error *reterr)
{
    pl_runtime *runtime = c->session->runtime;
    pl_pool_state state;
    pl_pool_state_read(runtime->pool, &state);
    pl_plan_fetch *fetches = calloc((size_t)c->n_fetches + 1, sizeof *fetches);
    if (!fetches)
        return no_memory(reterr);
    for (int i = 0; i < c->n_fetches; i++)
        fetches[i] = (pl_plan_fetch){c->fetches[i].node, goes_to_file(c, i)};
    pl_plan_device *devices;
    pl_plan_request request = {
        .graph = c->session->graph,
        .fetches = fetches,
        .n_fetches = c->n_fetches,
        .sources = c->sources,
        .n_sources = c->n_sources,
        .budget_bytes = pl_call_budget_bytes(c),
        .own_bytes = c->own_bytes,
        .disk_bytes = state.room_bytes,
        .slab_bytes = runtime->pool->slab_bytes,
        .small_bytes = runtime->pool->slab_bytes / PL_POOL_SMALL_SHARE,
        .library_bytes = blas_bytes,
        .n_threads = pl_threads_count(runtime->threads),
    };
    int r = pl_request_devices(runtime, &request, &devices, reterr);
    if (r == 0)
        r = pl_plan_new(&request, &c->plan, reterr);
    free(devices);
    free(fetches);
    return r;
}

int pl_call_prepare(call *c, pl_error *reterr)
{
    size_t n = (size_t)pl_graph_n_nodes(c->session->graph) + 1;
    pl_node **nodes = calloc((size_t)c->n_fetches + 1, sizeof(pl_node *));
    c->needed = calloc(n, sizeof *c->needed);
    c->feed_of = calloc(n, sizeof *c->feed_of);
    c->n_fetched = calloc(n, sizeof *c->n_fetched);
    c->sources = calloc(n, sizeof *c->sources);
    c->given = calloc(n, sizeof(pl_tensor *));
    bool made = nodes && c->needed && c->feed_of && c->n_fetched && c->sources && c->given;
    int r = made ? check_fetches(c, reterr) : no_memory(reterr);
    if (r == 0)
        r = pl_call_check_paths(c, reterr);
    for (int i = 0; r == 0 && i < c->n_fetches; i++)
        nodes[i] = pl_graph_node(c->session->graph, c->fetches[i].node->number);
    if (r == 0) {
        pl_graph_mark_needed(c->session->graph, nodes, c->n_fetches, c->needed);
        for (size_t i = 0; i + 1 < n; i++)
            if (c->needed[i])
                c->assigns |=
                    pl_graph_node(c->session->graph, (int)i)->op->op_class == PL_CLASS_STATE;
        r = check_assignments(c, reterr);
    }
    free(nodes);
    return r;
}

static int gather_and_plan(call *c, pl_error *reterr)
{
    int r = gather_sources(c, reterr);
    if (r == 0 && pl_call_count_own(c) < 0)
        r = no_memory(reterr);
    return r < 0 ? r : pl_call_make_plan(c, reterr);
}

/* What stages have left in memory may be all that is in the way. */
int pl_call_plan(call *c, pl_error *reterr)
{
    int r = gather_and_plan(c, reterr);
    if (r == PL_EBUDGET && c->own_bytes > 0 && pl_call_evict_idle(c, NULL)) {
        pl_call_drop_sources(c);
        r = gather_and_plan(c, reterr);
    }
    if (r == 0)
        pl_plan_tell_fallbacks(c->session->runtime, c->plan);
    return r;
}

/* ---- the run ---- */

static int set_values(call *c, pl_error *reterr)
{
    pl_run *run = &c->run;
    run->runtime = c->session->runtime;
    run->plan = c->plan;
    run->options = c->options;
    run->after_stages = c->staged ? c->mark.name : NULL;
    run->cancelled = c->outer ? &c->outer->mark.cancelled : &c->mark.cancelled;
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

int pl_call_kept(call *c, const pl_node *node, pl_tensor **ret_tensor, pl_error *reterr)
{
    int number = c->plan->value_of[node->number];
    pl_live_value *value = &c->run.values[number];
    if (c->plan->values[number].from_outside) { /* the first values are the sources */
        *ret_tensor = pl_tensor_ref(c->given[number]);
        return 0;
    }
    return pl_tensor_wrap(pl_buffer_ref(value->buffer), node->dtype, &c->plan->shapes[node->number],
                          NULL, 0, ret_tensor, reterr);
}

/* Results that are not in their files yet are written; files get their names later, together. */
static int finish_fetch(call *c, int i, pl_tensor **ret_tensor, pl_error *reterr)
{
    const pl_fetch *fetch = &c->fetches[i];
    const pl_plan_value *value = &c->plan->values[c->plan->value_of[fetch->node->number]];
    if (value->place == PL_PLACE_FILE && !value->from_outside)
        return 0;
    int r = pl_call_kept(c, fetch->node, ret_tensor, reterr);
    if (r < 0 || !fetch->npy_path)
        return r;
    r = pl_npy_write(*ret_tensor, fetch->npy_path, reterr);
    if (value->saved)
        pl_buffer_leave((*ret_tensor)->buffer);
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

/* The variable that a value of the plan is assigned to; NULL: none. Assignments are values of the
 * plan, or were made by stages before it and are sources of it. */
static const pl_node *variable_at(const call *c, int value)
{
    const pl_node *node = c->plan->values[value].node;
    return node->op->op_class == PL_CLASS_STATE ? node->inputs[0] : NULL;
}

/* held[]: by value of the plan. */
static int hold_variables(call *c, pl_tensor **held, pl_error *reterr)
{
    int r = 0;
    for (int i = 0; r == 0 && i < c->plan->n_values; i++) {
        pl_tensor *tensor = NULL;
        if (!variable_at(c, i))
            continue;
        r = pl_call_kept(c, c->plan->values[i].node, &tensor, reterr);
        if (r == 0)
            r = pl_session_hold(c->session, variable_at(c, i), tensor, &held[i], reterr);
        pl_tensor_unref(tensor);
    }
    return r;
}

/* Or lets go of what is held. */
static void put_variables(const call *c, pl_tensor **held, bool well)
{
    for (int i = 0; i < c->plan->n_values; i++)
        if (held[i] && well)
            pl_session_put(c->session, variable_at(c, i), held[i]);
        else
            pl_tensor_let_go(held[i]);
}

/* All of them or none, as far as a look ahead can tell. */
static int publish_files(const call *c, pl_error *reterr)
{
    int r = 0;
    for (int i = 0; r == 0 && i < c->n_fetches; i++)
        if (c->fetches[i].npy_path)
            r = pl_npy_look(c->fetches[i].npy_path, reterr);
    for (int i = 0; r == 0 && i < c->n_fetches; i++)
        if (c->fetches[i].npy_path)
            r = pl_npy_publish(c->fetches[i].npy_path, reterr);
    return r;
}

static void discard_files(const call *c)
{
    for (int i = 0; c->run.values && i < c->n_fetches; i++)
        if (c->fetches[i].npy_path)
            pl_npy_discard(c->fetches[i].npy_path);
}

static void drop_run(call *c)
{
    for (int i = 0; c->run.values && i < c->plan->n_values; i++)
        pl_run_drop_value(&c->run, i);
    if (c->run.runtime)
        pthread_mutex_destroy(&c->run.telling);
    free(c->run.values);
    c->run = (pl_run){0};
}

void pl_call_done(call *c)
{
    drop_run(c);
    pl_call_end_turn(c);
    pl_call_drop_stages(c);
    free(c->needed);
    free(c->feed_of);
    free(c->n_fetched);
    free(c->sources);
    free(c->given);
}

/* What was promised was taken by somebody who asks no one: a user's tensor. *ret_begun: not the
 * plan was refused, but a claim of its run. */
static int run_plan_once(call *c, pl_tensor **tensors, bool *ret_begun, pl_error *reterr)
{
    int r = pl_call_take_turn(c, reterr);
    *ret_begun = r == 0;
    if (r == 0)
        r = set_values(c, reterr);
    if (r == 0)
        atomic_store(&c->mark.peak_bytes, c->plan->peak_bytes);
    if (r == 0)
        r = pl_run_steps(&c->run, reterr);
    if (r == 0)
        r = finish_fetches(c, tensors, reterr);
    return r;
}

/* Nobody has seen anything of it: files have no names yet, and variables are as they were. But that
 * progress was told, which then waits until it is as far again. */
static void undo_run(call *c, pl_tensor **tensors)
{
    double told = c->run.told;
    for (int i = 0; i < c->n_fetches; i++)
        pl_tensor_unref(PL_TAKE(tensors[i]));
    discard_files(c);
    drop_run(c);
    pl_call_end_turn(c);
    c->run.told = told;
}

/* A run that is refused what it was promised is planned anew, in what is left. */
int pl_call_run_plan(call *c, pl_tensor **tensors, pl_error *reterr)
{
    for (int i = 0;; i++) {
        bool begun;
        int r = run_plan_once(c, tensors, &begun, reterr);
        if (r != PL_EBUDGET || !begun || i == RUNS_MAX - 1)
            return r;
        undo_run(c, tensors);
    }
}

/* What can fail comes first, so that files get their names and variables their values, or neither.
 */
static int commit(call *c, pl_error *reterr)
{
    if (!c->assigns)
        return publish_files(c, reterr);
    pl_tensor **held = calloc((size_t)c->plan->n_values + 1, sizeof(pl_tensor *));
    if (!held)
        return no_memory(reterr);
    int r = hold_variables(c, held, reterr);
    if (r == 0)
        r = publish_files(c, reterr);
    put_variables(c, held, r == 0);
    free(held);
    return r;
}

static int run_call(call *c, pl_tensor **tensors, pl_error *reterr)
{
    int r = c->staged ? pl_call_run_stages(c, reterr) : 0;
    if (r == 0)
        r = pl_call_run_plan(c, tensors, reterr);
    if (r == 0)
        r = commit(c, reterr);
    if (r < 0)
        discard_files(c);
    return r;
}

/* Alone among those who assign, for what a run leaves must not be lost to another's. */
static int run_in_turn(call *c, pl_tensor **tensors, pl_error *reterr)
{
    if (!c->assigns)
        return run_call(c, tensors, reterr);
    int r = pl_call_begin_assigning(c, reterr);
    if (r < 0)
        return r;
    r = run_call(c, tensors, reterr);
    pl_call_end_assigning(c);
    return r;
}

int pl_session_run(pl_session *session, const pl_fetch *fetches, int n_fetches,
                   const pl_feed *feeds, int n_feeds, const pl_run_options *options,
                   pl_tensor **ret_tensors, pl_error *reterr)
{
    call c = {session, fetches, n_fetches, feeds, n_feeds, options};
    c.mark.name = n_fetches > 0 ? fetches[0].node->name : "";
    int r = pl_session_enter(session, &c.mark, reterr);
    if (r < 0)
        return r;
    pl_tensor **tensors = calloc((size_t)n_fetches + 1, sizeof(pl_tensor *));
    r = tensors ? pl_call_begin(&c, reterr) : no_memory(reterr);
    if (r == 0 && !c.kept)
        r = pl_call_find_stages(&c, reterr);
    if (r == 0)
        r = run_in_turn(&c, tensors, reterr);
    pl_call_done(&c);
    pl_session_leave(session, &c.mark);
    for (int i = 0; tensors && i < n_fetches; i++)
        if (r == 0 && ret_tensors)
            ret_tensors[i] = tensors[i];
        else
            pl_tensor_unref(tensors[i]);
    free(tensors);
    return r;
}

/* Of stages as far as it is known. */
static pl_run_cost cost_of(const call *c)
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
    call c = {session, fetches, n_fetches, feeds, n_feeds, options};
    char *text = NULL;
    int r = pl_session_enter(session, NULL, reterr);
    if (r < 0)
        return r;
    c.turn.runtime = session->runtime;
    r = pl_call_prepare(&c, reterr);
    if (r == 0)
        r = pl_call_find_stages(&c, reterr);
    if (r == 0)
        r = c.staged ? pl_call_explain_stages(&c, as_json, &text, reterr)
                     : pl_call_plan(&c, reterr);
    if (r == 0 && ret_text && !text) {
        text = pl_plan_explain(c.plan, as_json);
        r = text ? 0 : no_memory(reterr);
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
