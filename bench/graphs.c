/* SPDX-License-Identifier: Apache-2.0 */
/* Times graphs of many small nodes: building, planning, running. Uses the public API alone.
 * usage: graphs CASE N_NODES N_ROUNDS
 * Prints one line for each round, in microseconds: build, plan, first run, second run. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plimsoll/plimsoll.h"

enum { ELEMENTS = 10 };

static pl_runtime *runtime;
static pl_error error;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void need(int r)
{
    if (r >= 0)
        return;
    fprintf(stderr, "graphs: %s\n", error.message);
    exit(1);
}

static const pl_shape shape = {1, {ELEMENTS}};

static pl_tensor *numbers(void)
{
    pl_tensor *tensor;
    const double data[ELEMENTS] = {1e-9, 2e-9, 3e-9};
    need(pl_tensor_new(runtime, PL_F64, &shape, data, "numbers", &tensor, &error));
    return tensor;
}

static pl_node *constant(pl_graph *graph, pl_tensor *value)
{
    pl_node *node;
    need(pl_graph_constant(graph, NULL, PL_F64, &shape, &node, &error));
    need(pl_constant_set(node, value, &error));
    return node;
}

static pl_node *add(pl_graph *graph, pl_node *a, pl_node *b)
{
    pl_node *node;
    need(pl_graph_binary(graph, "add", NULL, a, b, &node, &error));
    return node;
}

/* Each adds the one before to the first. */
static pl_node *chain(pl_graph *graph, pl_tensor *value, int n)
{
    pl_node *x = constant(graph, value), *y = x;
    for (int i = 1; i < n; i++)
        y = add(graph, y, x);
    return y;
}

/* One half is computed from the first node, the other adds these up in pairs. */
static pl_node *wide(pl_graph *graph, pl_tensor *value, int n)
{
    pl_node *x = constant(graph, value);
    pl_node **row = calloc((size_t)n, sizeof(pl_node *));
    int n_row = n / 2;
    for (int i = 0; i < n_row; i++)
        need(pl_graph_unary(graph, i % 2 ? "neg" : "exp", NULL, x, &row[i], &error));
    for (; n_row > 1; n_row = (n_row + 1) / 2)
        for (int i = 0; 2 * i < n_row; i++)
            row[i] = 2 * i + 1 < n_row ? add(graph, row[2 * i], row[2 * i + 1]) : row[2 * i];
    pl_node *sum = row[0];
    free(row);
    return sum;
}

/* Every node is used by three that come after it. */
static pl_node *shared(pl_graph *graph, pl_tensor *value, int n)
{
    pl_node *last[3] = {constant(graph, value), constant(graph, value), constant(graph, value)};
    for (int i = 3; i + 1 < n; i += 2) {
        pl_node *sum = add(graph, last[0], last[1]), *next;
        need(pl_graph_binary(graph, "maximum", NULL, sum, last[2], &next, &error));
        last[0] = last[1];
        last[1] = last[2];
        last[2] = next;
    }
    return last[2];
}

/* Half of the nodes are constants. */
static pl_node *constants(pl_graph *graph, pl_tensor *value, int n)
{
    pl_node *y = constant(graph, value);
    for (int i = 1; i + 1 < n; i += 2)
        y = add(graph, y, constant(graph, value));
    return y;
}

/* Every tenth node is a step of its own: a sum. */
static pl_node *steps(pl_graph *graph, pl_tensor *value, int n)
{
    pl_node *x = constant(graph, value), *y = x;
    for (int i = 1; i + 1 < n; i++)
        if (i % 10 == 0)
            need(pl_graph_reduce(graph, "max", NULL, y, NULL, 0, false, &y, &error));
        else
            y = add(graph, x, y);
    return add(graph, x, y);
}

static const struct {
    const char *name;
    pl_node *(*build)(pl_graph *graph, pl_tensor *value, int n);
} cases[] = {{"chain", chain},
             {"wide", wide},
             {"shared", shared},
             {"constants", constants},
             {"steps", steps}};

static void run_once(pl_session *session, pl_node *node)
{
    pl_tensor *result;
    const pl_fetch fetch = {node, NULL};
    need(pl_session_run(session, &fetch, 1, NULL, 0, NULL, &result, &error));
    pl_tensor_unref(result);
}

static void round_of(pl_node *(*build)(pl_graph *, pl_tensor *, int), int n)
{
    pl_graph *graph;
    pl_session *session;
    pl_tensor *value = numbers();
    need(pl_graph_new(&graph, &error));
    need(pl_session_new(graph, runtime, &session, &error));
    double begin = now_us();
    pl_node *node = build(graph, value, n);
    double built = now_us();
    const pl_fetch fetch = {node, NULL};
    pl_run_cost cost;
    need(pl_session_explain(session, &fetch, 1, NULL, 0, NULL, false, NULL, &cost, &error));
    double planned = now_us();
    run_once(session, node);
    double once = now_us();
    run_once(session, node);
    double twice = now_us();
    printf("%.1f %.1f %.1f %.1f\n", built - begin, planned - built, once - planned, twice - once);
    pl_session_free(session);
    pl_graph_free(graph);
    pl_tensor_unref(value);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return fprintf(stderr, "usage: graphs CASE N_NODES N_ROUNDS\n"), 2;
    const pl_runtime_options options = {.budget_text = "512M", .n_threads = 2};
    need(pl_runtime_new(&options, &runtime, &error));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int k = 0; strcmp(argv[1], cases[i].name) == 0 && k < atoi(argv[3]); k++)
            round_of(cases[i].build, atoi(argv[2]));
    pl_runtime_unref(runtime);
    return 0;
}
