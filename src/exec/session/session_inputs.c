/* SPDX-License-Identifier: Apache-2.0 */
/* What a call is given: it is looked at whether that can be, gathered, and planned of its
 * descriptions. See session_call.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exec/matmul/blas.h"
#include "exec/npy/npy_tensor.h"
#include "exec/session/session_call.h"
#include "exec/step/device_step.h"
#include "exec/step/run.h"
#include "plan/matmul_plan.h"
#include "tensor/pool.h"
#include "tensor/shape.h"

typedef pl_call call;

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
    pl_error_init(&why);
    int r = pl_npy_open(c->session->runtime, node->attrs[PL_ATTR_file_path].value.text, true,
                        ret_tensor, &why);
    if (r < 0)
        return pl_run_name_error(node, r, &why, reterr);
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

void pl_call_describe(const pl_node *node, const pl_tensor *tensor, pl_plan_source *source)
{
    int axes[PL_RANK_MAX];
    bool permuted = pl_tensor_order(tensor, axes);
    *source = (pl_plan_source){
        .node = node,
        .shape = tensor->shape,
        .resident = pl_buffer_pin_cost_bytes(tensor->buffer) == 0,
        .permuted = permuted && !pl_axes_in_order(axes, tensor->shape.rank),
        .scattered = !permuted,
    };
    source->holder = pl_buffer_holder(tensor->buffer, &source->holder_bytes);
    source->swapped = source->permuted && pl_axes_swap_last_two(axes, tensor->shape.rank);
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

int pl_call_check_given(const call *c, pl_error *reterr)
{
    for (int i = 0; i < c->n_fetches; i++)
        if (!c->fetches[i].node)
            return pl_error_set(reterr, -EINVAL, "fetch %d is NULL", i);
    for (int i = 0; i < c->n_feeds; i++)
        if (!c->feeds[i].placeholder || !c->feeds[i].tensor)
            return pl_error_set(reterr, -EINVAL, "feed %d has no %s: it is NULL", i,
                                c->feeds[i].placeholder ? "tensor" : "placeholder");
    return 0;
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
    int r = c->assigns && !by ? pl_call_no_memory(reterr) : 0;
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

uint64_t pl_call_sure_bytes(call *c)
{
    return pl_turn_sure_bytes(&c->turn, most_bytes(c));
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
        return pl_call_no_memory(reterr);
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
        .disk = state.room,
        .slab_bytes = runtime->pool->slab_bytes,
        .small_bytes = runtime->pool->slab_bytes / PL_POOL_SMALL_SHARE,
        .library_bytes = blas_bytes,
        .library_there_bytes = pl_blas_there_bytes(),
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
    int r = made ? check_fetches(c, reterr) : pl_call_no_memory(reterr);
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
        r = pl_call_no_memory(reterr);
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
