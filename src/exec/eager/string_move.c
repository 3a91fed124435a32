/* SPDX-License-Identifier: Apache-2.0 */
/* Moves strings: slices, concat, gather, where, and all other ops that only move elements.
 *
 * None of these ops is written for strings. The elements of all inputs are numbered, the same op
 * with the same attributes runs on the numbers, and the strings are put where their numbers
 * went. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exec/eager/whole_ops.h"
#include "tensor/strings.h"

typedef struct mover {
    const pl_eager_call *call;
    pl_graph *graph;
    pl_session *session;
    pl_feed *feeds;
    pl_node **nodes;     /* placeholders for the inputs */
    pl_strings *inputs;  /* those that are strings */
    int64_t n_strings;   /* of all of them */
    uint64_t held_bytes; /* inputs, their numbers and `found` */
    pl_block found;      /* pl_string by number */
} mover;

static int no_memory(const mover *m, pl_error *reterr)
{
    return pl_eager_fail(m->call, -ENOMEM, reterr, "out of memory");
}

/* Numbers one input's elements. */
static int number_elements(mover *m, int i, pl_tensor **ret_tensor, pl_error *reterr)
{
    void *data;
    const pl_strings *in = &m->inputs[i];
    int r = pl_eager_new(m->call, PL_I64, &in->tensor->shape, ret_tensor, &data, reterr);
    if (r < 0)
        return r;
    for (int64_t k = 0; k < in->n; k++)
        ((int64_t *)data)[k] = m->n_strings + k;
    m->n_strings += in->n;
    pl_buffer_unpin((*ret_tensor)->buffer);
    return 0;
}

static int add_input(mover *m, int i, pl_error *reterr)
{
    pl_tensor *tensor = m->call->inputs[i];
    int r = 0;
    if (tensor->dtype == PL_STRING) {
        r = pl_strings_pin(&m->inputs[i], tensor, reterr);
        if (r == 0)
            r = number_elements(m, i, &tensor, reterr);
    } else {
        pl_tensor_ref(tensor);
    }
    if (r < 0)
        return r;
    m->feeds[i].tensor = tensor;
    r = pl_graph_placeholder(m->graph, NULL, tensor->dtype, &tensor->shape, &m->nodes[i], reterr);
    m->feeds[i].placeholder = m->nodes[i];
    return r;
}

static int run_on_numbers(mover *m, pl_tensor **ret_tensor, pl_error *reterr)
{
    const pl_node *node = m->call->node;
    pl_attr attrs[PL_ATTRS_MAX];
    pl_node *same;
    int n_attrs = 0;
    for (int k = 0; k < node->op->n_attrs; k++)
        if (node->attrs[k].type != PL_ATTR_NONE)
            attrs[n_attrs++] = node->attrs[k];
    int r = pl_graph_add(m->graph, node->op->name, node->name, m->nodes, node->n_inputs, attrs,
                         n_attrs, &same, reterr);
    if (r == 0)
        r = pl_session_new(m->graph, m->call->runtime, &m->session, reterr);
    if (r < 0)
        return r;
    const pl_eager_graph graph = {.session = m->session,
                                  .fetch = {same, NULL},
                                  .feeds = m->feeds,
                                  .n_feeds = node->n_inputs,
                                  .budget_bytes = m->call->budget_bytes - m->held_bytes +
                                                  1}; /* 0 means no limit */
    return m->call->run_graph(m->call->context, &graph, ret_tensor, reterr);
}

static int find_strings(mover *m, pl_error *reterr)
{
    int r = pl_memory_take(m->call->runtime->memory, (uint64_t)m->n_strings * sizeof(pl_string),
                           m->call->node->name, &m->found, reterr);
    if (r < 0)
        return r;
    pl_string *to = m->found.data;
    for (int i = 0; i < m->call->node->n_inputs; i++)
        for (int64_t k = 0; k < m->inputs[i].n; k++)
            *to++ = pl_strings_at(&m->inputs[i], k);
    return 0;
}

static int put_strings(mover *m, const pl_tensor *moved, const int64_t *numbers,
                       pl_tensor **ret_tensor, pl_error *reterr)
{
    const pl_string *found = m->found.data;
    pl_region whole = pl_region_whole(&moved->shape);
    int64_t n = pl_region_count(&whole);
    pl_strings_maker maker;
    uint64_t n_bytes = 0;
    for (int64_t i = 0; i < n; i++)
        n_bytes = pl_add_sat_u64(n_bytes, found[numbers[i]].n);
    uint64_t made =
        pl_buffer_new_cost_bytes(m->call->runtime->pool, pl_strings_buffer_bytes(n, n_bytes));
    made = pl_add_sat_u64(made, pl_memory_cost_bytes(pl_tensor_bytes(moved)));
    int r = pl_eager_check_budget(m->call, pl_add_sat_u64(made, m->held_bytes),
                                  "what it reads and makes", reterr);
    if (r == 0)
        r = pl_strings_begin(&maker, m->call->runtime, &moved->shape, n_bytes, m->call->node->name,
                             reterr);
    if (r < 0)
        return r;
    for (int64_t i = 0; i < n; i++) {
        pl_string s = found[numbers[i]];
        char *to = pl_strings_add(&maker, s.n);
        if (s.n > 0)
            memcpy(to, s.data, s.n);
    }
    return pl_strings_end(&maker, ret_tensor, reterr);
}

static int move(mover *m, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_tensor *moved = NULL;
    const void *numbers;
    int64_t strides[PL_RANK_MAX];
    int r = run_on_numbers(m, &moved, reterr);
    if (r == 0)
        r = find_strings(m, reterr);
    if (r == 0)
        r = pl_tensor_pin(moved, &numbers, strides, reterr);
    if (r == 0) {
        r = put_strings(m, moved, numbers, ret_tensor, reterr); /* results are dense */
        pl_tensor_unpin(moved);
    }
    pl_tensor_unref(moved);
    return r;
}

static int check_inputs(mover *m, pl_error *reterr)
{
    m->held_bytes = pl_eager_input_bytes(m->call);
    for (int i = 0; i < m->call->node->n_inputs; i++) {
        const pl_tensor *in = m->call->inputs[i];
        pl_region whole = pl_region_whole(&in->shape);
        uint64_t n = in->dtype == PL_STRING ? (uint64_t)pl_region_count(&whole) : 0;
        m->held_bytes = pl_add_sat_u64(m->held_bytes, pl_memory_cost_bytes(n * sizeof(int64_t)));
        m->held_bytes = pl_add_sat_u64(m->held_bytes, pl_memory_cost_bytes(n * sizeof(pl_string)));
    }
    return pl_eager_must_fit(m->call, m->held_bytes, "what it reads", reterr);
}

static void mover_done(mover *m)
{
    pl_session_free(m->session);
    pl_graph_free(m->graph);
    pl_memory_give(m->call->runtime->memory, &m->found);
    for (int i = 0; m->inputs && m->feeds && i < m->call->node->n_inputs; i++) {
        pl_strings_unpin(&m->inputs[i]);
        pl_tensor_unref(m->feeds[i].tensor);
    }
    free(m->feeds);
    free(m->nodes);
    free(m->inputs);
}

int pl_eager_move(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    size_t n = (size_t)call->node->n_inputs;
    mover m = {.call = call};
    m.feeds = calloc(n, sizeof *m.feeds);
    m.nodes = calloc(n, sizeof *m.nodes);
    m.inputs = calloc(n, sizeof *m.inputs);
    int r = m.feeds && m.nodes && m.inputs ? pl_graph_new(&m.graph, reterr) : no_memory(&m, reterr);
    if (r == 0)
        r = check_inputs(&m, reterr);
    for (int i = 0; r == 0 && i < call->node->n_inputs; i++)
        r = add_input(&m, i, reterr);
    if (r == 0)
        r = move(&m, ret_tensor, reterr);
    mover_done(&m);
    return r;
}
