/* SPDX-License-Identifier: Apache-2.0 */
/* What the stages of a call have made and nobody computes with now. It is the run's own, so it is
 * part of what the run may take: counted while it is in memory, and put on disk where a stage or
 * the plan needs the room. See session_call.h. */
#include <errno.h>
#include <stdlib.h>

#include "exec/session/session_call.h"

/* What is in memory with a tensor: its own memory, or a slab that it shares. */
typedef struct holder {
    const void *it;
    uint64_t bytes;
} holder;

static bool is_given(const pl_node *node)
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

/* The tensor that was made of this node, if it is in memory and `user` does not read it; NULL. */
static pl_tensor *idle_of(const pl_call *c, int number, const pl_node *user)
{
    const pl_node *node = pl_graph_node(c->session->graph, number);
    pl_tensor *tensor = c->staged[number];
    if (!tensor || is_given(node) || is_input(user, node) ||
        pl_buffer_pin_cost_bytes(tensor->buffer) > 0)
        return NULL;
    return tensor;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const holder *)a)->it, y = (uintptr_t)((const holder *)b)->it;
    return x < y ? -1 : x > y;
}

/* Each once, in the order of addresses; to be freed. Returns how many; -ENOMEM. */
static int gather(const pl_call *c, const pl_node *user, holder **ret_list)
{
    int n_nodes = pl_graph_n_nodes(c->session->graph), n = 0, n_unlike = 0;
    holder *list = calloc((size_t)n_nodes + 1, sizeof *list);
    if (!list)
        return -ENOMEM;
    for (int i = 0; i < n_nodes; i++) {
        const pl_tensor *tensor = idle_of(c, i, user);
        if (tensor) {
            list[n].it = pl_buffer_holder(tensor->buffer, &list[n].bytes);
            n++;
        }
    }
    qsort(list, (size_t)n, sizeof *list, by_address);
    for (int i = 0; i < n; i++)
        if (n_unlike == 0 || list[n_unlike - 1].it != list[i].it)
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

int pl_call_idle_bytes(const pl_call *c, const pl_node *user, uint64_t *ret_bytes)
{
    holder *list;
    int n = gather(c, user, &list);
    if (n < 0)
        return n;
    *ret_bytes = sum_of(list, n);
    free(list);
    return 0;
}

int pl_call_count_own(pl_call *c)
{
    holder *list;
    c->own_bytes = 0;
    if (!c->staged)
        return 0;
    int n = gather(c, NULL, &list);
    if (n < 0)
        return n;
    c->own_bytes = sum_of(list, n);
    for (int i = 0; i < c->n_sources; i++) {
        const holder key = {c->sources[i].holder, 0};
        c->sources[i].own = bsearch(&key, list, (size_t)n, sizeof *list, by_address) != NULL;
    }
    free(list);
    return 0;
}

bool pl_call_evict_idle(const pl_call *c, const pl_node *user)
{
    bool any = false;
    for (int i = 0; c->staged && i < pl_graph_n_nodes(c->session->graph); i++) {
        pl_tensor *tensor = idle_of(c, i, user);
        if (!tensor)
            continue;
        pl_buffer_move_out(tensor->buffer);
        any = any || pl_buffer_pin_cost_bytes(tensor->buffer) > 0;
    }
    return any;
}
