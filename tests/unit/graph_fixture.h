/* SPDX-License-Identifier: Apache-2.0 */
/* A graph for each test, and short ways to add to it. */
#ifndef TESTS_UNIT_GRAPH_FIXTURE_H
#define TESTS_UNIT_GRAPH_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph/node.h"
#include "tensor/shape.h"

static pl_graph *graph;
static pl_error error;

static inline int setup(void **state)
{
    (void)state;
    return pl_graph_new(&graph, &error);
}

static inline int teardown(void **state)
{
    (void)state;
    pl_graph_free(PL_TAKE(graph));
    return 0;
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

#define NODES(...) (pl_node *[]){__VA_ARGS__}, (int)PL_COUNT_OF(((pl_node *[]){__VA_ARGS__}))
#define ATTRS(...) (pl_attr[]){__VA_ARGS__}, (int)PL_COUNT_OF(((pl_attr[]){__VA_ARGS__}))
#define INTS(name, ...)                                                                            \
    pl_attr_ints(name, (int64_t[]){__VA_ARGS__}, (int)PL_COUNT_OF(((int64_t[]){__VA_ARGS__})))
#define NO_NODES NULL, 0
#define NO_ATTRS NULL, 0

static inline pl_node *place(const char *name, pl_dtype dtype, pl_shape shape)
{
    pl_node *node = NULL;
    assert_int_equal(pl_graph_placeholder(graph, name, dtype, &shape, &node, &error), 0);
    return node;
}

static inline pl_node *must_add(const char *op, const char *name, pl_node **inputs, int n_inputs,
                                const pl_attr *attrs, int n_attrs)
{
    pl_node *node = NULL;
    error.message[0] = '\0';
    int r = pl_graph_add(graph, op, name, inputs, n_inputs, attrs, n_attrs, &node, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(r, 0);
    return node;
}

/* The whole message, and nothing changed. */
static inline void refused(const char *message, const char *op, const char *name, pl_node **inputs,
                           int n_inputs, const pl_attr *attrs, int n_attrs)
{
    pl_node *node = NULL;
    int before = pl_graph_n_nodes(graph);
    int r = pl_graph_add(graph, op, name, inputs, n_inputs, attrs, n_attrs, &node, &error);
    assert_int_equal(r, -EINVAL);
    assert_string_equal(error.message, message);
    assert_null(node);
    assert_int_equal(pl_graph_n_nodes(graph), before);
    /* Without a place for the message it is the same. */
    assert_int_equal(pl_graph_add(graph, op, name, inputs, n_inputs, attrs, n_attrs, &node, NULL),
                     -EINVAL);
}

static inline void is(const pl_node *node, pl_dtype dtype, const char *shape)
{
    assert_int_equal(pl_node_dtype(node), dtype);
    assert_string_equal(PL_SHAPE_TEXT(pl_node_shape(node)), shape);
}

#endif
