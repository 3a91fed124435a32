/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes have names of their own, scopes, attributes that are checked, and payloads that are freed.
 */
#include "graph_fixture.h"

#include <stdio.h>

static void names_are_unique_and_count_up(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(2));
    assert_string_equal(pl_node_name(must_add("relu", NULL, &x, 1, NO_ATTRS)), "relu");
    assert_string_equal(pl_node_name(must_add("relu", NULL, &x, 1, NO_ATTRS)), "relu_1");
    assert_string_equal(pl_node_name(must_add("relu", "relu_3", &x, 1, NO_ATTRS)), "relu_3");
    assert_string_equal(pl_node_name(must_add("relu", NULL, &x, 1, NO_ATTRS)), "relu_2");
    assert_string_equal(pl_node_name(must_add("relu", NULL, &x, 1, NO_ATTRS)), "relu_4");
    assert_string_equal(pl_node_name(must_add("relu", "x", &x, 1, NO_ATTRS)), "x_1");
    assert_string_equal(pl_node_name(must_add("relu", "relu_3", &x, 1, NO_ATTRS)), "relu_3_1");
}

static void a_name_that_was_refused_with_its_node_is_still_free(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(2)), *y = place("y", PL_F32, PL_SHAPE(3)), *node;
    must_add("add", NULL, NODES(x, x), NO_ATTRS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pl_graph_binary(graph, "add", NULL, x, y, &node, NULL), -EINVAL);
    assert_string_equal(pl_node_name(must_add("add", NULL, NODES(x, x), NO_ATTRS)), "add_1");
}

static void scopes_stand_before_names_and_are_new_unless_entered_again(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(2));
    assert_int_equal(pl_graph_push_scope(graph, "loss", &error), 0);
    assert_string_equal(pl_node_name(must_add("relu", NULL, &x, 1, NO_ATTRS)), "loss/relu");
    assert_int_equal(pl_graph_push_scope(graph, "inner", &error), 0);
    assert_string_equal(pl_node_name(must_add("relu", "r", &x, 1, NO_ATTRS)), "loss/inner/r");
    pl_graph_pop_scope(graph);
    assert_string_equal(pl_node_name(must_add("relu", NULL, &x, 1, NO_ATTRS)), "loss/relu_1");
    pl_graph_pop_scope(graph);
    pl_graph_pop_scope(graph); /* one too many */
    assert_string_equal(pl_node_name(must_add("relu", NULL, &x, 1, NO_ATTRS)), "relu");

    assert_int_equal(pl_graph_push_scope(graph, "loss", &error), 0);
    assert_string_equal(pl_node_name(must_add("relu", NULL, &x, 1, NO_ATTRS)), "loss_1/relu");
    assert_int_equal(pl_graph_push_scope(graph, "loss/inner/", &error), 0);
    assert_string_equal(pl_node_name(must_add("relu", "s", &x, 1, NO_ATTRS)), "loss/inner/s");
    /* Left open: freed with the graph. */
}

static void a_node_does_not_take_the_name_of_a_scope(void **state)
{
    (void)state;
    assert_int_equal(pl_graph_push_scope(graph, "loss", &error), 0);
    pl_graph_pop_scope(graph);
    assert_string_equal(pl_node_name(place("loss", PL_F32, PL_SHAPE())), "loss_1");
    assert_null(pl_graph_find(graph, "loss"));
}

static void names_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const char letters[] = "a name has letters (of ASCII), digits and '_', '.', '-' or '/'";
    static const char first[] = "a name begins with a letter, a digit or '.'";
    static const char *const bad[][2] = {{"", "'': a name has at least one character"},
                                         {"a b", letters},
                                         {"/a", first},
                                         {"_a", first},
                                         {"a/", "'a/': only a scope's name ends with '/'"},
                                         {"-", first},
                                         {"a\n", letters},
                                         {"\xc3\xa4", letters},
                                         {"a'", letters}};
    for (size_t i = 0; i < PL_COUNT_OF(bad); i++) {
        pl_node *node;
        assert_int_equal(pl_graph_placeholder(graph, bad[i][0], PL_F32, &PL_SHAPE(), &node, &error),
                         -EINVAL);
        assert_non_null(strstr(error.message, bad[i][1]));
        if (strcmp(bad[i][0], "a/") == 0)
            continue;
        assert_int_equal(pl_graph_push_scope(graph, bad[i][0], &error), -EINVAL);
        assert_non_null(strstr(error.message, bad[i][1]));
    }
    assert_string_equal(pl_node_name(place(".a-B_9/c.", PL_F32, PL_SHAPE())), ".a-B_9/c.");
    assert_string_equal(pl_node_name(place("a//b", PL_F32, PL_SHAPE())), "a//b");
}

static void nodes_are_found_by_number_name_and_scope(void **state)
{
    (void)state;
    pl_node *x = place("a/x", PL_F32, PL_SHAPE(2)), *y = place("ab/y", PL_F32, PL_SHAPE(2));
    pl_node *z = place("a/b/z", PL_F32, PL_SHAPE(2));
    assert_int_equal(pl_graph_n_nodes(graph), 3);
    assert_ptr_equal(pl_graph_node(graph, 1), y);
    assert_null(pl_graph_node(graph, 3));
    assert_null(pl_graph_node(graph, -1));
    assert_ptr_equal(pl_graph_find(graph, "a/b/z"), z);
    assert_null(pl_graph_find(graph, "a/b"));
    assert_null(pl_graph_find(graph, ""));
    assert_ptr_equal(pl_graph_next_in_scope(graph, "a", NULL), x);
    assert_ptr_equal(pl_graph_next_in_scope(graph, "a", x), z);
    assert_null(pl_graph_next_in_scope(graph, "a", z));
    assert_ptr_equal(pl_graph_next_in_scope(graph, "", x), y);
    assert_null(pl_graph_next_in_scope(graph, "x", NULL));
}

static void a_node_tells_what_it_is(void **state)
{
    (void)state;
    pl_node *a = place("a", PL_F64, PL_SHAPE(2, -1)), *b = place("b", PL_F64, PL_SHAPE(3));
    pl_node *c = must_add("add", "c", NODES(a, b), NO_ATTRS);
    is(c, PL_F64, "[2,3]");
    assert_string_equal(pl_node_op(c), "add");
    assert_int_equal(pl_node_number(c), 2);
    assert_int_equal(pl_node_n_inputs(c), 2);
    assert_ptr_equal(pl_node_input(c, 0), a);
    assert_ptr_equal(pl_node_input(c, 1), b);
    assert_null(pl_node_input(c, 2));
    assert_ptr_equal(pl_node_graph(c), graph);
}

static void attributes_are_kept_as_copies_with_their_defaults(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(4, 5, 3));
    int64_t axes[] = {0, -1}, size[] = {8, 9};
    char method[] = "nearest", axes_name[] = "axes";
    pl_node *sum = must_add("sum", NULL, &x, 1, ATTRS(pl_attr_ints(axes_name, axes, 2)));
    pl_node *resized =
        must_add("resize", NULL, &x, 1,
                 ATTRS(pl_attr_string("method", method), pl_attr_ints("size", size, 2)));
    memset(axes, 7, sizeof axes);
    memset(size, 7, sizeof size);
    memset(method, 'z', sizeof method - 1);
    memset(axes_name, 'z', sizeof axes_name - 1);

    const pl_attr *kept = pl_node_attr(sum, "axes");
    assert_int_equal(kept->type, PL_ATTR_INTS);
    assert_string_equal(kept->name, "axes");
    assert_int_equal(kept->n, 2);
    assert_int_equal(kept->value.values[1], -1);
    assert_int_equal(pl_node_attr(sum, "keepdims")->type, PL_ATTR_BOOL);
    assert_int_equal(pl_node_attr(sum, "keepdims")->value.i, 0);
    assert_null(pl_node_attr(sum, "axis"));
    assert_string_equal(pl_node_attr(resized, "method")->value.text, "nearest");
    assert_int_equal(pl_node_attr(resized, "size")->value.values[1], 9);
    is(resized, PL_F32, "[8,9,3]");
    pl_node *all = must_add("sum", NULL, &x, 1, NO_ATTRS);
    assert_int_equal(pl_node_attr(all, "axes")->type, PL_ATTR_NONE);
    pl_node *none = must_add("sum", NULL, &x, 1, ATTRS(pl_attr_ints("axes", NULL, 0)));
    is(none, PL_F32, "[4,5,3]");
}

static void attributes_that_are_wrong_are_named(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(4, 5));
    refused("sum 's': there is no attribute 'axis': it takes axes, keepdims", "sum", "s", &x, 1,
            ATTRS(pl_attr_int("axis", 0)));
    refused("relu 'r': there is no attribute 'axis': it takes none", "relu", "r", &x, 1,
            ATTRS(pl_attr_int("axis", 0)));
    refused("sum 's': attribute 'axes' is an integer: it takes a list of integers", "sum", "s", &x,
            1, ATTRS(pl_attr_int("axes", 0)));
    refused("sum 's': attribute 'keepdims' is given twice", "sum", "s", &x, 1,
            ATTRS(pl_attr_bool("keepdims", true), pl_attr_bool("keepdims", true)));
    refused("cast 'cast': attribute 'dtype' is missing: a dtype, to this one", "cast", NULL, &x, 1,
            NO_ATTRS);
    refused("cast 'c': attribute 'dtype': that is not a dtype", "cast", "c", &x, 1,
            ATTRS(pl_attr_dtype("dtype", (pl_dtype)99)));
    refused("placeholder 'p': attribute 'shape': a dimension is less than -1", "placeholder", "p",
            NO_NODES,
            ATTRS(pl_attr_dtype("dtype", PL_F32), pl_attr_shape("shape", &PL_SHAPE(2, -2))));
    refused("placeholder 'p': attribute 'shape': a shape has at most 8 dimensions", "placeholder",
            "p", NO_NODES,
            ATTRS(pl_attr_dtype("dtype", PL_F32), pl_attr_shape("shape", &(pl_shape){.rank = 9})));
    refused("sum 's': attribute 'axes': the list is NULL, or its length is negative", "sum", "s",
            &x, 1, ATTRS(pl_attr_ints("axes", NULL, 2)));
    refused("resize 'r': attribute 'method': the string is NULL", "resize", "r", &x, 1,
            ATTRS(INTS("size", 1, 1), pl_attr_string("method", NULL)));
    refused("fill 'f': attribute 'value' is a string: it takes a number", "fill", "f", NO_NODES,
            ATTRS(pl_attr_shape("shape", &PL_SHAPE(2)), pl_attr_string("value", "1")));
}

static void inputs_that_are_wrong_are_named(void **state)
{
    (void)state;
    pl_graph *other;
    pl_node *x = place("x", PL_F32, PL_SHAPE(4)), *stranger;
    assert_int_equal(pl_graph_new(&other, &error), 0);
    assert_int_equal(pl_graph_placeholder(other, "far", PL_F32, &PL_SHAPE(4), &stranger, &error),
                     0);
    refused("'ad': there is no such op", "ad", "a", NODES(x, x), NO_ATTRS);
    refused("add 'a': inputs: 1 given, it takes 2", "add", "a", &x, 1, NO_ATTRS);
    refused("fill 'a': inputs: 2 given, it takes at most 1", "fill", "a", NODES(x, x), NO_ATTRS);
    refused("concat 'a': inputs: 0 given, it takes at least 1", "concat", "a", NO_NODES, NO_ATTRS);
    refused("add 'a': input 1 is NULL", "add", "a", NODES(x, NULL), NO_ATTRS);
    refused("add 'a': input 1, 'far', belongs to another graph", "add", "a", NODES(x, stranger),
            NO_ATTRS);
    pl_graph_free(other);
}

static int n_freed;

static void count_freed(void *payload)
{
    n_freed += *(int *)payload;
}

static void payloads_are_freed_once_when_replaced_or_with_the_graph(void **state)
{
    (void)state;
    int one = 1, ten = 10;
    n_freed = 0;
    pl_node *x = place("x", PL_F32, PL_SHAPE(4)), *y = place("y", PL_F32, PL_SHAPE(4));
    assert_null(pl_node_payload(x));
    pl_node_set_payload(x, &one, count_freed);
    pl_node_set_payload(y, &ten, NULL);
    assert_ptr_equal(pl_node_payload(x), &one);
    assert_int_equal(n_freed, 0);
    pl_node_set_payload(x, &ten, count_freed);
    assert_int_equal(n_freed, 1);
    pl_graph_free(PL_TAKE(graph));
    assert_int_equal(n_freed, 11);
    pl_graph_free(NULL);
}

static void ten_thousand_nodes_are_found_again(void **state)
{
    (void)state;
    char name[32];
    pl_node *x = place("x", PL_F32, PL_SHAPE(4));
    for (int i = 0; i < 10000; i++)
        x = must_add(i % 2 ? "relu" : "neg", NULL, &x, 1, NO_ATTRS);
    assert_int_equal(pl_graph_n_nodes(graph), 10001);
    for (int i = 1; i < 5000; i++) {
        snprintf(name, sizeof name, "relu_%d", i);
        const pl_node *node = pl_graph_find(graph, name);
        assert_non_null(node);
        assert_int_equal(pl_node_number(node), 2 * i + 2);
        assert_string_equal(pl_node_name(node), name);
    }
    assert_null(pl_graph_find(graph, "relu_5000"));
}

static void the_table_of_ops_holds_together(void **state)
{
    (void)state;
    for (int id = 0; id < PL_N_OPS; id++) {
        const pl_op *op = pl_op_of((pl_op_id)id);
        assert_int_equal(op->id, id);
        assert_ptr_equal(pl_op_by_name(op->name), op);
        assert_true(op->n_attrs <= PL_ATTRS_MAX);
        assert_true(op->min_inputs <= op->max_inputs);
        assert_true(strlen(op->doc) > 1 && op->doc[strlen(op->doc) - 1] != '.');
        assert_true(op->weight >= 0);
        for (int k = 0; k < op->n_attrs; k++) { /* a required one has no default */
            assert_true(!op->attrs[k].required || op->attrs[k].fallback.type == PL_ATTR_NONE);
            assert_true(op->attrs[k].type != PL_ATTR_DTYPE || k == 0);
        }
        assert_true(op->gives != PL_OP_GIVES_ATTR || strcmp(op->attrs[0].name, "dtype") == 0);
        assert_null(op->attrs[op->n_attrs].name);
    }
    assert_null(pl_op_by_name("nothing"));
    assert_null(pl_op_by_name(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(names_are_unique_and_count_up),
        CASE(a_name_that_was_refused_with_its_node_is_still_free),
        CASE(scopes_stand_before_names_and_are_new_unless_entered_again),
        CASE(a_node_does_not_take_the_name_of_a_scope),
        CASE(names_that_cannot_be_are_refused),
        CASE(nodes_are_found_by_number_name_and_scope),
        CASE(a_node_tells_what_it_is),
        CASE(attributes_are_kept_as_copies_with_their_defaults),
        CASE(attributes_that_are_wrong_are_named),
        CASE(inputs_that_are_wrong_are_named),
        CASE(payloads_are_freed_once_when_replaced_or_with_the_graph),
        CASE(ten_thousand_nodes_are_found_again),
        CASE(the_table_of_ops_holds_together),
    };
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
