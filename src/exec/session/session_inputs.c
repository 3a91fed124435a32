/* SPDX-License-Identifier: Apache-2.0 */
/* The first phases of a run: checks the request, and gathers the tensors that it is given. See
 * pipeline.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exec/npy/npy_tensor.h"
#include "exec/session/pipeline.h"
#include "tensor/shape.h"

/* ---- check ---- */

/* A fetch or feed that is NULL: a caller went on after a failure. */
static int check_given(const pl_run_request *request, pl_error *reterr)
{
    for (int i = 0; i < request->n_fetches; i++)
        if (!request->fetches[i].node)
            return pl_error_set(reterr, -EINVAL, "fetch %d is NULL", i);
    for (int i = 0; i < request->n_feeds; i++)
        if (!request->feeds[i].placeholder || !request->feeds[i].tensor)
            return pl_error_set(reterr, -EINVAL, "feed %d has no %s: it is NULL", i,
                                request->feeds[i].placeholder ? "tensor" : "placeholder");
    return 0;
}

/* Refuses two results for one file. */
static int check_paths(const pl_run_request *request, pl_error *reterr)
{
    const pl_fetch *fetches = request->fetches;
    for (int i = 0; i < request->n_fetches; i++)
        for (int k = 0; fetches[i].npy_path && k < i; k++)
            if (fetches[k].npy_path && strcmp(fetches[i].npy_path, fetches[k].npy_path) == 0)
                return pl_error_set(reterr, -EINVAL, "'%s' and '%s' are both to be written to '%s'",
                                    fetches[k].node->name, fetches[i].node->name,
                                    fetches[i].npy_path);
    return 0;
}

static int check_nodes(const pl_run_request *request, pl_error *reterr)
{
    const pl_graph *graph = request->session->graph;
    for (int i = 0; i < request->n_fetches; i++) {
        const pl_node *node = request->fetches[i].node;
        if (node->graph != graph)
            return pl_error_set(reterr, -EINVAL, "%s '%s' is of another graph", node->op->name,
                                node->name);
    }
    for (int i = 0; i < request->n_feeds; i++) {
        const pl_node *node = request->feeds[i].placeholder;
        if (node->op->id != PL_OP_placeholder || node->graph != graph)
            return pl_error_set(reterr, -EINVAL, "%s '%s' is not a placeholder of this graph",
                                node->op->name, node->name);
    }
    return 0;
}

/* Sets up the key by which similar requests are found, and room for what the check finds. */
static pl_checked_request *checked_alloc(const pl_run_request *request)
{
    size_t n = (size_t)pl_graph_n_nodes(request->session->graph) + 1;
    size_t n_fetches = (size_t)request->n_fetches + 1, n_feeds = (size_t)request->n_feeds + 1;
    pl_checked_request *checked = calloc(1, sizeof *checked);
    if (!checked)
        return NULL;
    checked->n_refs = 1;
    checked->n_fetches = request->n_fetches;
    checked->n_feeds = request->n_feeds;
    checked->fetches = calloc(n_fetches, sizeof *checked->fetches);
    checked->fed = calloc(n_feeds, sizeof(pl_node *));
    checked->needed = calloc(n, sizeof *checked->needed);
    checked->feed_of = calloc(n, sizeof *checked->feed_of);
    checked->n_fetched = calloc(n, sizeof *checked->n_fetched);
    if (checked->fetches && checked->fed && checked->needed && checked->feed_of &&
        checked->n_fetched)
        return checked;
    pl_checked_request_unref(checked);
    return NULL;
}

static int add_feeds(pl_checked_request *checked, const pl_run_request *request, pl_error *reterr)
{
    for (int i = 0; i < request->n_feeds; i++) {
        const pl_node *node = request->feeds[i].placeholder;
        if (checked->feed_of[node->number] > 0)
            return pl_error_set(reterr, -EINVAL, "placeholder '%s' is fed twice", node->name);
        checked->feed_of[node->number] = i + 1;
        checked->fed[i] = node;
    }
    return 0;
}

static int add_fetches(pl_checked_request *checked, const pl_run_request *request, pl_error *reterr)
{
    const pl_graph *graph = request->session->graph;
    pl_node **nodes = calloc((size_t)request->n_fetches + 1, sizeof(pl_node *));
    if (!nodes)
        return pl_pipeline_no_memory(reterr);
    for (int i = 0; i < request->n_fetches; i++) {
        const pl_fetch *fetch = &request->fetches[i];
        nodes[i] = pl_graph_node(graph, fetch->node->number);
        checked->n_fetched[fetch->node->number]++;
        checked->fetches[i] = (pl_plan_fetch){fetch->node, fetch->npy_path != NULL};
        if (fetch->node->number >= checked->n_nodes)
            checked->n_nodes = fetch->node->number + 1; /* inputs have lower numbers */
    }
    pl_graph_mark_needed(graph, nodes, request->n_fetches, checked->needed);
    free(nodes);
    return 0;
}

static bool is_outside(const pl_node *node)
{
    return node->op->id == PL_OP_placeholder || node->op->id == PL_OP_constant ||
           node->op->id == PL_OP_variable || node->op->id == PL_OP_file;
}

/* Marks the values that the plan reads: those fetched, and inputs of planned ops. Nodes below eager
 * ops are not part of the plan. Assignments are its inputs even so: commit finds them among its
 * values. */
static void mark_planned(const pl_checked_request *checked, const pl_graph *graph, bool *planned)
{
    for (int i = checked->n_nodes - 1; i >= 0; i--) {
        const pl_node *node = pl_graph_node(graph, i);
        planned[i] = planned[i] || checked->n_fetched[i] > 0;
        for (int k = 0; planned[i] && !pl_is_eager(node) && k < node->n_inputs; k++)
            planned[node->inputs[k]->number] = true;
        planned[i] = planned[i] || (checked->needed[i] && node->op->op_class == PL_CLASS_STATE);
    }
}

static int list_planned(pl_checked_request *checked, const pl_graph *graph, pl_error *reterr)
{
    size_t n = (size_t)checked->n_nodes + 1;
    bool *planned = calloc(n, sizeof *planned);
    checked->planned = calloc(n, sizeof(pl_node *));
    if (!planned || !checked->planned) {
        free(planned);
        return pl_pipeline_no_memory(reterr);
    }
    mark_planned(checked, graph, planned);
    for (int i = 0; i < checked->n_nodes; i++)
        if (planned[i])
            checked->planned[checked->n_planned++] = pl_graph_node(graph, i);
    free(planned);
    return 0;
}

static int list_nodes(pl_checked_request *checked, const pl_graph *graph, bool nested,
                      pl_error *reterr)
{
    int n_outside = 0;
    for (int i = 0; i < checked->n_nodes; i++)
        n_outside += checked->needed[i] && is_outside(pl_graph_node(graph, i));
    checked->outside = calloc((size_t)n_outside + 1, sizeof(pl_node *));
    if (!checked->outside)
        return pl_pipeline_no_memory(reterr);
    for (int i = 0; i < checked->n_nodes; i++) {
        const pl_node *node = pl_graph_node(graph, i);
        if (!checked->needed[i])
            continue;
        if (is_outside(node))
            checked->outside[checked->n_outside++] = node;
        checked->assigns = checked->assigns || node->op->op_class == PL_CLASS_STATE;
        checked->has_eager_ops = checked->has_eager_ops || pl_is_eager(node);
    }
    return checked->has_eager_ops || nested ? list_planned(checked, graph, reterr) : 0;
}

/* Refuses two assignments to one variable, whose order would be undefined. */
static int check_assignments(const pl_checked_request *checked, const pl_graph *graph,
                             pl_error *reterr)
{
    if (!checked->assigns)
        return 0;
    const pl_node **by = calloc((size_t)checked->n_nodes + 1, sizeof(pl_node *));
    int r = by ? 0 : pl_pipeline_no_memory(reterr);
    for (int i = 0; r == 0 && i < checked->n_nodes; i++) {
        const pl_node *node = pl_graph_node(graph, i);
        if (!checked->needed[i] || node->op->op_class != PL_CLASS_STATE)
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

static int check_anew(const pl_run_request *request, bool nested, pl_checked_request **ret_checked,
                      pl_error *reterr)
{
    const pl_graph *graph = request->session->graph;
    int r = check_nodes(request, reterr);
    if (r < 0)
        return r;
    pl_checked_request *checked = checked_alloc(request);
    if (!checked)
        return pl_pipeline_no_memory(reterr);
    r = add_feeds(checked, request, reterr);
    if (r == 0)
        r = add_fetches(checked, request, reterr);
    if (r == 0)
        r = list_nodes(checked, graph, nested, reterr);
    if (r == 0)
        r = check_assignments(checked, graph, reterr);
    if (r == 0)
        *ret_checked = checked;
    else
        pl_checked_request_unref(checked);
    return r;
}

/* Returns whether the request is nested in one whose values it reads; otherwise it belongs to
 * another graph. */
static bool reads_outer(const pl_pipeline *p)
{
    return p->outer && p->outer->request.session == p->request.session;
}

static pl_checked_request *find_checked(const pl_pipeline *p)
{
    return reads_outer(p) ? pl_session_find_nested(p->request.session, p->outer->check,
                                                   p->request.fetches[0].node)
                          : pl_session_find_request(&p->request);
}

static void keep_checked(const pl_pipeline *p)
{
    if (reads_outer(p))
        pl_session_keep_nested(p->request.session, p->outer->check, p->request.fetches[0].node,
                               p->check);
    else
        pl_session_keep_request(p->request.session, p->check);
}

int pl_pipeline_check(pl_pipeline *p, pl_error *reterr)
{
    int r = check_given(&p->request, reterr);
    if (r < 0)
        return r;
    p->check = find_checked(p);
    if (!p->check) {
        r = check_anew(&p->request, reads_outer(p), &p->check, reterr);
        if (r == 0)
            keep_checked(p);
    }
    return r < 0 ? r
                 : check_paths(&p->request, reterr); /* the similar one may have had other paths */
}

/* ---- gather ---- */

static int find_feed(const pl_pipeline *p, const pl_node *node, pl_tensor **ret_tensor,
                     pl_error *reterr)
{
    int feed = p->check->feed_of[node->number] - 1;
    if (feed < 0)
        return 0;
    *ret_tensor = pl_tensor_ref(p->request.feeds[feed].tensor);
    return pl_session_check(node, *ret_tensor, reterr);
}

/* Opens the file without reading it: the plan decides which parts come into memory. */
static int open_file(const pl_pipeline *p, const pl_node *node, pl_tensor **ret_tensor,
                     pl_error *reterr)
{
    pl_error why = {0};
    int r = pl_npy_open(p->request.session->runtime, node->attrs[PL_ATTR_file_path].value.text,
                        true, ret_tensor, &why);
    if (r < 0)
        return pl_run_name_error(node, r, &why, reterr);
    return pl_session_check(node, *ret_tensor, reterr);
}

/* NULL if the variable has no value: choose.c refuses that if it is used. */
static int find_tensor(const pl_pipeline *p, const pl_node *node, pl_tensor **ret_tensor,
                       pl_error *reterr)
{
    *ret_tensor = NULL;
    switch (node->op->id) {
    case PL_OP_placeholder:
        return find_feed(p, node, ret_tensor, reterr);
    case PL_OP_constant:
        if (pl_node_payload(node))
            *ret_tensor = pl_tensor_ref(pl_node_payload(node));
        return 0;
    case PL_OP_variable:
        *ret_tensor = pl_session_variable(p->request.session, node);
        return 0;
    default:
        return open_file(p, node, ret_tensor, reterr);
    }
}

void pl_pipeline_describe(const pl_node *node, const pl_tensor *tensor, pl_plan_source *source)
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

/* Takes the reference to the tensor. */
static void add_source(pl_pipeline *p, const pl_node *node, pl_tensor *tensor)
{
    pl_gather_phase *g = &p->gather;
    pl_pipeline_describe(node, tensor, &g->sources[g->n_sources]);
    g->tensors[g->n_sources++] = tensor;
}

void pl_pipeline_drop_sources(pl_pipeline *p)
{
    for (int i = 0; i < p->gather.n_sources; i++)
        pl_tensor_unref(p->gather.tensors[i]);
    p->gather.n_sources = 0;
}

void pl_pipeline_list_sources(pl_pipeline *p)
{
    pl_pipeline_drop_sources(p);
    for (int i = 0; i < p->check->n_planned; i++) {
        const pl_node *node = p->check->planned[i];
        if (p->gather.values[node->number])
            add_source(p, node, pl_tensor_ref(p->gather.values[node->number]));
    }
}

static int make_room(pl_pipeline *p, pl_error *reterr)
{
    pl_gather_phase *g = &p->gather;
    int n = reads_outer(p) || p->check->has_eager_ops ? p->check->n_planned : p->check->n_outside;
    g->sources = calloc((size_t)n + 1, sizeof *g->sources + sizeof(pl_tensor *));
    if (!g->sources)
        return pl_pipeline_no_memory(reterr);
    g->tensors = (pl_tensor **)(g->sources + n + 1); /* in the same block */
    if (reads_outer(p))
        g->values = p->outer->gather.values;
    else if (p->check->has_eager_ops)
        g->values = calloc((size_t)p->check->n_nodes, sizeof(pl_tensor *));
    return p->check->has_eager_ops && !g->values ? pl_pipeline_no_memory(reterr) : 0;
}

int pl_pipeline_gather(pl_pipeline *p, pl_error *reterr)
{
    pl_gather_phase *g = &p->gather;
    bool again = g->sources != NULL;
    int r = again ? 0 : make_room(p, reterr);
    if (r < 0 || reads_outer(p) || (again && g->values))
        return r;
    for (int i = 0; r == 0 && i < p->check->n_outside; i++) {
        const pl_node *node = p->check->outside[i];
        pl_tensor *tensor;
        r = find_tensor(p, node, &tensor, reterr);
        if (g->values)
            g->values[node->number] = tensor;
        else if (tensor)
            add_source(p, node, tensor);
    }
    return r;
}
