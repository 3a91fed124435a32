/* SPDX-License-Identifier: Apache-2.0 */
/* The eager ops of a run: nested pipelines for inputs that are not eager, and the memory of values
 * until they are used. See eager_ops.h and pipeline.h. */
#include <errno.h>
#include <stdlib.h>

#include "exec/session/pipeline.h"

/* ---- idle values ---- */

/* Values made by eager ops belong to the run and count towards its budget while they are in memory;
 * they move to disk if an op or the plan needs the room. A holder is what is in memory with such a
 * value: its own memory, or a slab that it shares. */
typedef struct holder {
    const void *address;
    uint64_t bytes;
} holder;

static bool is_outside(const pl_node *node)
{
    return node->op->id == PL_OP_placeholder || node->op->id == PL_OP_constant ||
           node->op->id == PL_OP_variable || node->op->id == PL_OP_file;
}

static bool is_input(const pl_node *of, const pl_node *node)
{
    for (int i = 0; of && i < of->n_inputs; i++)
        if (of->inputs[i] == node)
            return true;
    return false;
}

/* A nested pipeline has the outer one's. */
static int n_values(const pl_pipeline *p)
{
    return p->outer && p->gather.values == p->outer->gather.values ? p->outer->check->n_nodes
                                                                   : p->check->n_nodes;
}

/* Returns this node's value, if it is in memory and `user` does not read it; else NULL. */
static pl_tensor *held_value(const pl_pipeline *p, int number, const pl_node *user)
{
    pl_tensor *tensor = p->gather.values[number];
    if (!tensor || pl_buffer_pin_cost_bytes(tensor->buffer) > 0)
        return NULL;
    const pl_node *node = pl_graph_node(p->request.session->graph, number);
    return is_outside(node) || is_input(user, node) ? NULL : tensor;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const holder *)a)->address;
    uintptr_t y = (uintptr_t)((const holder *)b)->address;
    return x < y ? -1 : x > y;
}

/* Lists each holder once, sorted by address; the caller frees the list. Returns how many, or
 * -ENOMEM. */
static int list_holders(const pl_pipeline *p, const pl_node *user, holder **ret_list)
{
    int n = 0, n_unlike = 0;
    holder *list = calloc((size_t)n_values(p) + 1, sizeof *list);
    if (!list)
        return -ENOMEM;
    for (int i = 0; i < n_values(p); i++) {
        const pl_tensor *tensor = held_value(p, i, user);
        if (tensor) {
            list[n].address = pl_buffer_holder(tensor->buffer, &list[n].bytes);
            n++;
        }
    }
    qsort(list, (size_t)n, sizeof *list, by_address);
    for (int i = 0; i < n; i++)
        if (n_unlike == 0 || list[n_unlike - 1].address != list[i].address)
            list[n_unlike++] = list[i];
    *ret_list = list;
    return n_unlike;
}

static uint64_t sum_of(const holder *list, int n)
{
    uint64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes = pl_add_sat_u64(bytes, list[i].bytes);
    return bytes;
}

int pl_pipeline_count_held(pl_pipeline *p)
{
    holder *list;
    int n = list_holders(p, NULL, &list);
    if (n < 0)
        return n;
    p->eager.held_bytes = sum_of(list, n);
    for (int i = 0; i < p->gather.n_sources; i++) {
        const holder key = {p->gather.sources[i].holder, 0};
        p->gather.sources[i].own = bsearch(&key, list, (size_t)n, sizeof *list, by_address) != NULL;
    }
    free(list);
    return 0;
}

bool pl_pipeline_evict_held(const pl_pipeline *p, const pl_node *user)
{
    bool any = false;
    for (int i = 0; p->gather.values && i < n_values(p); i++) {
        pl_tensor *tensor = held_value(p, i, user);
        if (!tensor)
            continue;
        pl_buffer_move_out(tensor->buffer);
        any = any || pl_buffer_pin_cost_bytes(tensor->buffer) > 0;
    }
    return any;
}

/* ---- callbacks of eager ops ---- */

/* If the run has no budget of its own, the runtime's line limits what is held, which is evicted
 * like any idle memory. */
static int held_beside(void *context, const pl_node *user, uint64_t *ret_bytes)
{
    const pl_pipeline *p = context;
    holder *list;
    *ret_bytes = 0;
    if (p->admit.admission.most_bytes == 0)
        return 0;
    int n = list_holders(p, user, &list);
    if (n < 0)
        return n;
    *ret_bytes = sum_of(list, n);
    free(list);
    return 0;
}

static bool evict_beside(void *context, const pl_node *user)
{
    return pl_pipeline_evict_held(context, user);
}

/* Assignments below the input take effect at commit, with all others. */
static int keep_assignments(const pl_pipeline *p, pl_pipeline *nested, pl_error *reterr)
{
    const pl_plan *plan = nested->plan.plan;
    for (int i = 0; nested->check->assigns && i < plan->n_values; i++) {
        const pl_node *node = plan->values[i].node;
        if (node->op->op_class != PL_CLASS_STATE || node == nested->request.fetches[0].node ||
            p->gather.values[node->number])
            continue;
        int r = pl_pipeline_result(nested, node, &p->gather.values[node->number], reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The outer run's options, except that only the outer run reports progress. */
static pl_run_options nested_options(const pl_pipeline *outer, uint64_t budget_bytes)
{
    const pl_run_options *options = outer->request.options;
    return (pl_run_options){.budget_bytes = budget_bytes,
                            .cancel = options ? options->cancel : NULL,
                            .random_stream = options ? options->random_stream : 0};
}

static int compute_input(void *context, const pl_node *node, pl_error *reterr)
{
    pl_pipeline *outer = context, nested;
    const pl_fetch fetch = {node, NULL};
    const pl_run_options options = nested_options(outer, outer->admit.admission.most_bytes);
    const pl_run_request request = {
        .session = outer->request.session, .fetches = &fetch, .n_fetches = 1, .options = &options};
    pl_tensor *tensor = NULL;
    pl_pipeline_init(&nested, &request, outer);
    int r = pl_pipeline_run_nested(&nested, &tensor, reterr);
    if (r == 0)
        r = keep_assignments(outer, &nested, reterr);
    pl_pipeline_done(&nested);
    if (r == 0)
        outer->gather.values[node->number] = tensor;
    else
        pl_tensor_unref(tensor);
    return r;
}

/* The graph has an admission of its own; if that were urgent, it would wait for the op that it
 * serves. */
static int run_graph(void *context, const pl_eager_graph *graph, pl_tensor **ret_tensor,
                     pl_error *reterr)
{
    pl_pipeline *outer = context, nested;
    const pl_run_options options = nested_options(outer, graph->budget_bytes);
    const pl_run_request request = {graph->session, &graph->fetch,  1,
                                    graph->feeds,   graph->n_feeds, &options};
    pl_admission_done(&outer->admit.admission);
    pl_pipeline_init(&nested, &request, outer);
    int r = pl_pipeline_run_nested(&nested, ret_tensor, reterr);
    pl_pipeline_done(&nested);
    return r;
}

/* ---- all of them ---- */

pl_eager_run pl_pipeline_eager_run(pl_pipeline *p)
{
    return (pl_eager_run){.runtime = p->request.session->runtime,
                          .graph = p->request.session->graph,
                          .n_nodes = p->check->n_nodes,
                          .needed = p->check->needed,
                          .n_fetched = p->check->n_fetched,
                          .values = p->gather.values,
                          .admission = &p->admit.admission,
                          .compute = compute_input,
                          .held_bytes = held_beside,
                          .evict = evict_beside,
                          .run_graph = run_graph,
                          .context = p};
}

int pl_pipeline_run_eager_ops(pl_pipeline *p, pl_error *reterr)
{
    const pl_eager_run run = pl_pipeline_eager_run(p);
    return pl_eager_run_all(&run, reterr);
}
