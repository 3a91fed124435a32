/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: nodes, their names and scopes. The op's row in the table interprets a node's inputs and
 * attributes. */
#include "plimsoll/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph/arena.h"
#include "graph/infer.h"
#include "graph/names.h"
#include "graph/node.h"
#include "tensor/device_name.h"

typedef struct pl_scope {
    struct pl_scope *outer;
    char prefix[]; /* "loss/": comes before the names of nodes in it */
} pl_scope;

/* The device for nodes added within one push. */
typedef struct pl_placement {
    struct pl_placement *outer;
    const char *device; /* in the arena; NULL: nothing */
} pl_placement;

struct pl_graph {
    pl_arena arena; /* nodes, with all that belongs to them, and names of scopes */
    pl_names names;
    pl_node **nodes; /* by number */
    int n_nodes, n_places;
    pl_scope *scope;         /* the innermost; NULL: none */
    pl_placement *placement; /* also the innermost; NULL: none */
    bool places;             /* some node may have a device that is not the CPU */
    pl_links *sessions;
};

int pl_graph_new(pl_graph **ret_graph, pl_error *reterr)
{
    PL_NOT_NULL(ret_graph, reterr);
    pl_graph *graph = calloc(1, sizeof *graph);
    if (graph)
        graph->sessions = pl_links_new();
    if (!graph || !graph->sessions) {
        free(graph);
        return pl_error_set(reterr, -ENOMEM, "no memory for a graph");
    }
    *ret_graph = graph;
    return 0;
}

void pl_graph_free(pl_graph *graph)
{
    if (!graph)
        return;
    pl_links_free(graph->sessions);
    for (int i = graph->n_nodes - 1; i >= 0; i--)
        pl_node_set_payload(graph->nodes[i], NULL, NULL);
    while (graph->scope)
        pl_graph_pop_scope(graph);
    while (graph->placement)
        pl_graph_pop_device(graph);
    free(graph->nodes);
    pl_names_done(&graph->names);
    pl_arena_done(&graph->arena);
    free(graph);
}

pl_links *pl_graph_sessions(const pl_graph *graph)
{
    return graph->sessions;
}

/* ---- scopes ---- */

static const char *prefix_of(const pl_graph *graph)
{
    return graph->scope ? graph->scope->prefix : "";
}

static int push(pl_graph *graph, const char *name, bool ends_with_slash)
{
    size_t n = strlen(name);
    pl_scope *inner = malloc(sizeof *inner + n + 2);
    if (!inner)
        return -ENOMEM;
    memcpy(inner->prefix, name, n + 1);
    if (!ends_with_slash)
        memcpy(inner->prefix + n, "/", 2);
    inner->outer = graph->scope;
    graph->scope = inner;
    return 0;
}

static int push_new(pl_graph *graph, const char *name)
{
    const char *made;
    int r = pl_names_make(&graph->names, prefix_of(graph), name, &made);
    if (r < 0)
        return r;
    char *copy = pl_arena_take(&graph->arena, strlen(made) + 1);
    if (!copy)
        return -ENOMEM;
    strcpy(copy, made);
    r = push(graph, copy, false);
    if (r == 0)
        pl_names_add(&graph->names, copy, NULL);
    return r;
}

int pl_graph_push_scope(pl_graph *graph, const char *name, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(name, reterr);
    const char *problem = pl_name_problem(name);
    if (problem)
        return pl_error_set(reterr, -EINVAL, "scope '%.120s': %s", name, problem);
    bool again = name[strlen(name) - 1] == '/';
    int r = again ? push(graph, name, true) : push_new(graph, name);
    if (r < 0)
        return pl_error_set(reterr, r, "scope '%.120s': no memory for it", name);
    return 0;
}

void pl_graph_pop_scope(pl_graph *graph)
{
    PL_NULL_DOES_NOTHING(graph);
    pl_scope *inner = graph->scope;
    if (!inner)
        return;
    graph->scope = inner->outer;
    free(inner);
}

/* ---- devices ---- */

int pl_graph_push_device(pl_graph *graph, const char *device, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    pl_device_name name;
    char *text = NULL;
    if (device && !pl_device_name_parse(device, &name))
        return pl_error_set(reterr, -EINVAL,
                            "'%.120s' is not a device: names are like \"/GPU:0\" or \"/CPU:0\"",
                            device);
    pl_placement *inner = malloc(sizeof *inner);
    if (inner && device)
        text = pl_arena_take(&graph->arena, PL_DEVICE_NAME_BYTES);
    if (!inner || (device && !text)) {
        free(inner);
        return pl_error_set(reterr, -ENOMEM, "no memory to place nodes on '%.120s'",
                            device ? device : "no device");
    }
    *inner = (pl_placement){graph->placement, text ? pl_device_name_format(name, text) : NULL};
    graph->placement = inner;
    graph->places = graph->places || (text && strcmp(text, "/CPU:0") != 0);
    return 0;
}

void pl_graph_pop_device(pl_graph *graph)
{
    PL_NULL_DOES_NOTHING(graph);
    pl_placement *inner = graph->placement;
    if (!inner)
        return;
    graph->placement = inner->outer;
    free(inner);
}

bool pl_graph_places(const pl_graph *graph)
{
    return graph->places;
}

/* ---- nodes ---- */

static int check_call(const pl_graph *graph, const pl_op *op, const char *name,
                      pl_node *const *inputs, int n_inputs, pl_error *reterr)
{
    const char *problem = pl_name_problem(name);
    if (!problem && name[strlen(name) - 1] == '/')
        problem = "only a scope's name ends with '/'";
    if (problem)
        return pl_error_set(reterr, -EINVAL, "%s '%.120s': %s", op->name, name, problem);
    int r = pl_infer_count(op, name, n_inputs, reterr);
    if (r < 0)
        return r;
    for (int i = 0; i < n_inputs; i++) {
        if (!inputs[i])
            return pl_error_set(reterr, -EINVAL, "%s '%.120s': input %d is NULL", op->name, name,
                                i);
        if (inputs[i]->graph != graph)
            return pl_error_set(reterr, -EINVAL,
                                "%s '%.120s': input %d, '%.120s', belongs to another graph",
                                op->name, name, i, inputs[i]->name);
    }
    return 0;
}

static int grow_nodes(pl_graph *graph)
{
    if (graph->n_nodes < graph->n_places)
        return 0;
    int n_places = graph->n_places > 0 ? 2 * graph->n_places : 64;
    pl_node **nodes = realloc(graph->nodes, (size_t)n_places * sizeof *nodes);
    if (!nodes)
        return -ENOMEM;
    graph->nodes = nodes;
    graph->n_places = n_places;
    return 0;
}

/* One piece of the arena holds everything: the node, inputs, attributes, their lists, and the
 * name. */
static int commit(pl_graph *graph, const pl_infer *made, pl_node **ret_node)
{
    size_t n_name = strlen(made->name) + 1;
    size_t input_bytes = (size_t)made->n_inputs * sizeof(pl_node *);
    size_t attr_bytes = (size_t)made->op->n_attrs * sizeof(pl_attr);
    size_t extra_bytes = pl_attrs_extra_bytes(made->attrs, made->op->n_attrs);
    int r = grow_nodes(graph);
    if (r < 0)
        return r;
    pl_node *node = pl_arena_take(&graph->arena,
                                  sizeof *node + input_bytes + attr_bytes + extra_bytes + n_name);
    if (!node)
        return -ENOMEM;

    pl_node **inputs = (pl_node **)(node + 1);
    pl_attr *attrs = (pl_attr *)((char *)inputs + input_bytes);
    char *extra = (char *)attrs + attr_bytes, *name = extra + extra_bytes;
    if (made->n_inputs > 0)
        memcpy(inputs, made->inputs, input_bytes);
    pl_attrs_copy(made->attrs, made->op->n_attrs, attrs, extra);
    memcpy(name, made->name, n_name);
    *node = (pl_node){.op = made->op,
                      .graph = graph,
                      .name = name,
                      .device = graph->placement ? graph->placement->device : NULL,
                      .inputs = inputs,
                      .attrs = attrs,
                      .n_inputs = made->n_inputs,
                      .number = graph->n_nodes,
                      .dtype = made->dtype,
                      .shape = made->shape};
    pl_names_add(&graph->names, name, node);
    graph->nodes[graph->n_nodes++] = node;
    *ret_node = node;
    return 0;
}

static int add(pl_graph *graph, const pl_op *op, const char *name, pl_node *const *inputs,
               int n_inputs, const pl_attr *attrs, int n_attrs, const pl_type *known,
               pl_node **ret_node, pl_error *reterr)
{
    int r = check_call(graph, op, name ? name : op->name, inputs, n_inputs, reterr);
    if (r < 0)
        return r;

    pl_attr values[PL_ATTRS_MAX];
    pl_infer in = {.op = op, .inputs = inputs, .n_inputs = n_inputs, .attrs = values};
    if (known) {
        in.dtype = known->dtype;
        in.shape = known->shape;
    }
    r = pl_names_make(&graph->names, prefix_of(graph), name ? name : op->name, &in.name);
    if (r == 0) {
        r = pl_attrs_resolve(op, in.name, attrs, n_attrs, values, reterr);
        if (r == 0 && !known)
            r = pl_infer_run(&in, reterr);
        if (r < 0)
            return r;
        r = commit(graph, &in, ret_node);
    }
    if (r < 0)
        return pl_error_set(reterr, r, "%s '%.120s': no memory for a node", op->name,
                            name ? name : op->name);
    return 0;
}

int pl_graph_add(pl_graph *graph, const char *op_name, const char *name, pl_node *const *inputs,
                 int n_inputs, const pl_attr *attrs, int n_attrs, pl_node **ret_node,
                 pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(op_name, reterr);
    PL_NOT_NULL_IF(n_inputs > 0, inputs, reterr);
    PL_NOT_NULL_IF(n_attrs > 0, attrs, reterr);
    PL_NOT_NULL(ret_node, reterr);
    const pl_op *op = pl_op_by_name(op_name);
    if (!op)
        return pl_error_set(reterr, -EINVAL, "'%.120s': there is no such op", op_name);
    return add(graph, op, name, inputs, n_inputs, attrs, n_attrs, NULL, ret_node, reterr);
}

int pl_graph_add_known(pl_graph *graph, pl_op_id op, const char *name, pl_node *const *inputs,
                       int n_inputs, const pl_attr *attrs, int n_attrs, const pl_type *type,
                       pl_node **ret_node, pl_error *reterr)
{
    return add(graph, pl_op_of(op), name, inputs, n_inputs, attrs, n_attrs, type, ret_node, reterr);
}

void pl_node_set_payload(pl_node *node, void *payload, void (*free_payload)(void *payload))
{
    if (node->free_payload)
        node->free_payload(node->payload);
    node->payload = payload;
    node->free_payload = free_payload;
}

/* ---- reading a graph ---- */

int pl_graph_n_nodes(const pl_graph *graph)
{
    PL_NULL_GIVES(graph, 0);
    return graph->n_nodes;
}

pl_node *pl_graph_node(const pl_graph *graph, int number)
{
    PL_NULL_GIVES(graph, NULL);
    return number >= 0 && number < graph->n_nodes ? graph->nodes[number] : NULL;
}

pl_node *pl_graph_find(const pl_graph *graph, const char *name)
{
    PL_NULL_GIVES(graph, NULL);
    PL_NULL_GIVES(name, NULL);
    const pl_name *found = pl_names_find(&graph->names, name);
    return found ? found->node : NULL;
}

pl_node *pl_graph_next_in_scope(const pl_graph *graph, const char *scope, const pl_node *after)
{
    PL_NULL_GIVES(graph, NULL);
    PL_NULL_GIVES(scope, NULL);
    size_t n = strlen(scope);
    for (int i = after ? after->number + 1 : 0; i < graph->n_nodes; i++) {
        const char *name = graph->nodes[i]->name;
        if (n == 0 || (strncmp(name, scope, n) == 0 && name[n] == '/'))
            return graph->nodes[i];
    }
    return NULL;
}

const char *pl_node_name(const pl_node *node)
{
    PL_NULL_GIVES(node, NULL);
    return node->name;
}

const char *pl_node_op(const pl_node *node)
{
    PL_NULL_GIVES(node, NULL);
    return node->op->name;
}

pl_dtype pl_node_dtype(const pl_node *node)
{
    PL_NULL_GIVES(node, PL_DTYPE_NONE);
    return node->dtype;
}

const pl_shape *pl_node_shape(const pl_node *node)
{
    PL_NULL_GIVES(node, NULL);
    return &node->shape;
}

int pl_node_number(const pl_node *node)
{
    PL_NULL_GIVES(node, -1);
    return node->number;
}

int pl_node_n_inputs(const pl_node *node)
{
    PL_NULL_GIVES(node, 0);
    return node->n_inputs;
}

pl_node *pl_node_input(const pl_node *node, int i)
{
    PL_NULL_GIVES(node, NULL);
    return i >= 0 && i < node->n_inputs ? node->inputs[i] : NULL;
}

pl_graph *pl_node_graph(const pl_node *node)
{
    PL_NULL_GIVES(node, NULL);
    return node->graph;
}

const char *pl_node_device(const pl_node *node)
{
    PL_NULL_GIVES(node, NULL);
    return node->device;
}
