/* SPDX-License-Identifier: Apache-2.0 */
/* What our runtime does again and again, alone and beside the guard. For bench/beside.py.
 *   beside CASE N
 * Prints how often it was done, seconds, CPU seconds and page faults, from the second time on. */
#include <string.h>

#include "plimsoll/plimsoll.h"
#include "program.h"

static pl_runtime *runtime;
static pl_graph *graph;
static pl_session *session;

/* The values are there before: what the guard adds to malloc() has a row of its own. */
static pl_tensor *tensor(pl_dtype dtype, int64_t rows, int64_t columns)
{
    static double zeros[2048 * 2048];
    const pl_shape shape = {2, {rows, columns}};
    pl_tensor *made;
    check(pl_tensor_new(runtime, dtype, &shape, zeros, "data", &made, &error));
    return made;
}

static pl_node *constant(pl_dtype dtype, int64_t rows, int64_t columns)
{
    const pl_shape shape = {2, {rows, columns}};
    pl_node *node;
    pl_tensor *value = tensor(dtype, rows, columns);
    check(pl_graph_constant(graph, NULL, dtype, &shape, &node, &error));
    check(pl_constant_set(node, value, &error));
    pl_tensor_unref(value);
    return node;
}

static pl_node *two(const char *op, pl_node *a, pl_node *b)
{
    pl_node *node;
    check(pl_graph_binary(graph, op, NULL, a, b, &node, &error));
    return node;
}

/* a * a + sin(a) of four million floats. */
static pl_node *chain(void)
{
    pl_node *a = constant(PL_F32, 2048, 2048), *sine;
    check(pl_graph_unary(graph, "sin", NULL, a, &sine, &error));
    return two("add", two("mul", a, a), sine);
}

static pl_node *product(void)
{
    pl_node *a = constant(PL_F32, 1024, 1024), *b = constant(PL_F32, 1024, 1024), *node;
    check(pl_graph_matmul(graph, NULL, a, b, false, false, &node, &error));
    return node;
}

/* A hundred additions of ten numbers. */
static pl_node *small(void)
{
    pl_node *x = constant(PL_F64, 1, 10), *y = x;
    for (int i = 0; i < 100; i++)
        y = two("add", y, x);
    return y;
}

static void run(pl_node *node)
{
    pl_tensor *result;
    const pl_fetch fetch = {node, NULL};
    check(pl_session_run(session, &fetch, 1, NULL, 0, NULL, &result, &error));
    pl_tensor_unref(result);
}

static const struct {
    const char *name;
    pl_node *(*build)(void); /* NULL: tensors of 100 x 100 doubles are made, and let go of */
} cases[] = {{"chain", chain}, {"product", product}, {"small", small}, {"tensors", NULL}};

int main(int argc, char **argv)
{
    size_t i = 0, n_cases = sizeof cases / sizeof cases[0];
    while (argc == 3 && i < n_cases && strcmp(argv[1], cases[i].name) != 0)
        i++;
    if (argc != 3 || i == n_cases)
        return 2;
    const pl_runtime_options options = {.n_threads = 2};
    check(pl_runtime_new(&options, &runtime, &error));
    check(pl_graph_new(&graph, &error));
    check(pl_session_new(graph, runtime, &session, &error));
    pl_node *node = cases[i].build ? cases[i].build() : NULL;
    start from = {0};
    for (int k = 0; k <= atoi(argv[2]); k++) {
        if (node)
            run(node);
        else
            pl_tensor_unref(tensor(PL_F64, 100, 100));
        if (k == 0)
            from = start_now();
    }
    print_since(&from, atoi(argv[2]), 0);
    pl_graph_free(graph);
    pl_runtime_unref(runtime);
    return 0;
}
