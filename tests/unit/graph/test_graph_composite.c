/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of several nodes: few of them, named below the last, and nothing when it is refused.
 * That the values are NumPy's is tested in tests/kernels/test_inference.py. */
#include "graph_fixture.h"

/* Ops from node `first` on: "transpose matmul". */
static void made_of(int first, const char *wanted)
{
    char text[256] = "";
    for (int i = first; i < pl_graph_n_nodes(graph); i++) {
        strcat(text, i > first ? " " : "");
        strcat(text, pl_node_op(pl_graph_node(graph, i)));
    }
    assert_string_equal(text, wanted);
}

static pl_node *einsum(const char *name, const char *equation, pl_node *a, pl_node *b)
{
    pl_node *node = NULL;
    error.message[0] = '\0';
    int r = pl_graph_einsum(graph, name, equation, (pl_node *[]){a, b}, b ? 2 : 1, &node, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(r, 0);
    return node;
}

static void an_einsum_that_is_a_matmul_is_one_node(void **state)
{
    (void)state;
    pl_node *a = place("a", PL_F32, PL_SHAPE(5, -1, 4)),
            *b = place("b", PL_F32, PL_SHAPE(5, 4, -1));
    pl_node *c = place("c", PL_F32, PL_SHAPE(5, -1, 4));
    pl_node *plain = einsum("p", "bij,bjk->bik", a, b);
    made_of(3, "matmul");
    is(plain, PL_F32, "[5,?,?]");
    assert_string_equal(pl_node_name(plain), "p");
    pl_node *turned = einsum("t", "bij,bkj->bik", a, c);
    made_of(4, "matmul");
    assert_int_equal(pl_node_attr(turned, "transpose_a")->value.i, 0);
    assert_int_equal(pl_node_attr(turned, "transpose_b")->value.i, 1);
    pl_node *gram = einsum(NULL, "bji,bjk->bik", a, a);
    made_of(5, "matmul");
    assert_int_equal(pl_node_attr(gram, "transpose_a")->value.i, 1);
    assert_int_equal(pl_node_attr(gram, "transpose_b")->value.i, 0);
    assert_string_equal(pl_node_name(gram), "einsum");
}

static void dots_stand_for_the_axes_without_a_label(void **state)
{
    (void)state;
    pl_node *a = place("a", PL_F32, PL_SHAPE(2, 3, 4, 5)), *b = place("b", PL_F32, PL_SHAPE(5, 6));
    pl_node *c = place("c", PL_F32, PL_SHAPE(3, 5, 7)), *other = place("o", PL_F32, PL_SHAPE(9, 5));
    const struct {
        const char *equation;
        pl_node *x, *y;
        const char *shape;
    } cases[] = {
        {"...ij,jk->...ik", a, b, "[2,3,4,6]"},    {"...ij,jk", a, b, "[2,3,4,6]"},
        {"...ij,...jk->...ik", a, c, "[2,3,4,7]"}, {"...j,...jk->...k", a, c, NULL},
        {"...ij->...ji", a, NULL, "[2,3,5,4]"},    {"i...->...i", a, NULL, "[3,4,5,2]"},
        {"ab...->...", a, NULL, "[4,5]"},          {"...,jk->jk...", b, b, "[5,6,5,6]"},
        {"jk...,k->j...", b, NULL, NULL},
    };
    for (size_t i = 0; i < PL_COUNT_OF(cases); i++) {
        pl_node *inputs[] = {cases[i].x, cases[i].y}, *node;
        int r = pl_graph_einsum(graph, NULL, cases[i].equation, inputs, cases[i].y ? 2 : 1, &node,
                                &error);
        if (!cases[i].shape) {
            assert_int_equal(r, -EINVAL);
            continue;
        }
        if (r < 0)
            fail_msg("%s", error.message);
        assert_string_equal(PL_SHAPE_TEXT(pl_node_shape(node)), cases[i].shape);
    }
    pl_node *node;
    assert_int_equal(
        pl_graph_einsum(graph, "e", "...i,...i->...", (pl_node *[]){b, other}, 2, &node, &error),
        -EINVAL);
    assert_int_equal(pl_graph_einsum(graph, "e", "...j->j", (pl_node *[]){a}, 1, &node, &error),
                     -EINVAL);
    assert_string_equal(error.message,
                        "einsum 'e': '...j->j': '...' of an input is not in the result");
    assert_int_equal(pl_graph_einsum(graph, "e", "i..j", (pl_node *[]){b}, 1, &node, &error),
                     -EINVAL);
}

static void other_einsums_have_few_nodes_more(void **state)
{
    (void)state;
    pl_node *a = place("a", PL_I32, PL_SHAPE(2, 3, 4)), *b = place("b", PL_I32, PL_SHAPE(5, 3, 6));
    einsum("e", "abc,dbe->aedc", a, b);
    made_of(2, "transpose reshape transpose reshape matmul reshape transpose");
    assert_non_null(pl_graph_find(graph, "e/matmul"));
    assert_non_null(pl_graph_find(graph, "e/reshape_2"));
    assert_ptr_equal(pl_graph_find(graph, "e"), pl_graph_node(graph, 8));
    einsum("s", "abc->", a, NULL);
    made_of(9, "sum cast");
    is(pl_graph_find(graph, "s"), PL_I32, "[]");
    einsum("same", "abc", a, NULL);
    made_of(11, "identity");
}

static void a_squared_difference_is_a_difference_squared(void **state)
{
    (void)state;
    pl_node *a = place("a", PL_F32, PL_SHAPE(4)), *b = place("b", PL_F32, PL_SHAPE(2, 1)), *node;
    assert_int_equal(pl_graph_squared_difference(graph, "d", a, b, &node, &error), 0);
    made_of(2, "sub square");
    assert_string_equal(pl_node_name(node), "d");
    assert_string_equal(pl_node_name(pl_node_input(node, 0)), "d/sub");
    is(node, PL_F32, "[2,4]");
}

static void axes_of_one_come_and_go_with_any_number_unknown(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(-1, -1, 1)), *node;
    assert_int_equal(pl_graph_expand_dims(graph, NULL, x, (int64_t[]){0, -1}, 2, &node, &error), 0);
    is(node, PL_F32, "[1,?,?,1,1]");
    assert_string_equal(pl_node_name(node), "expand_dims");
    assert_int_equal(pl_graph_squeeze(graph, NULL, node, NULL, 0, &node, &error), 0);
    is(node, PL_F32, "[?,?]");
    /* Said to be 1, and checked when it is known. */
    assert_int_equal(pl_graph_squeeze(graph, "s", x, (int64_t[]){1}, 1, &node, &error), 0);
    is(node, PL_F32, "[?,1]");
    pl_shape shapes[4];
    pl_feed_shape fed = {x, PL_SHAPE(3, 2, 1)};
    assert_int_equal(pl_graph_infer(graph, &fed, 1, NULL, shapes, &error), -EINVAL);
    assert_non_null(strstr(error.message, "reshape 's': [3,2,1] does not become"));
    fed.shape = PL_SHAPE(3, 1, 1);
    assert_int_equal(pl_graph_infer(graph, &fed, 1, NULL, shapes, &error), 0);
}

static void a_split_has_the_sizes_that_were_asked_for(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(-1, 10)), *parts[3];
    assert_int_equal(pl_graph_split(graph, NULL, x, -1, (int64_t[]){5, 0, 5}, 3, parts, &error), 0);
    made_of(1, "crop crop crop");
    is(parts[0], PL_F32, "[?,5]");
    is(parts[1], PL_F32, "[?,0]");
    assert_string_equal(pl_node_name(parts[2]), "split_2");
    assert_int_equal(pl_node_attr(parts[2], "start")->value.values[1], 5);
    const int64_t wrong[][3] = {{5, 5, 1}, {5, -1, 6}, {INT64_MAX, INT64_MAX, 12}, {1, 2, 3}};
    for (size_t i = 0; i < PL_COUNT_OF(wrong); i++)
        assert_int_equal(pl_graph_split(graph, "w", x, 1, wrong[i], 3, parts, &error), -EINVAL);
    assert_string_equal(error.message, "split 'w': [?,10] ('x'): the sizes are not together the 10 "
                                       "of axis 1");
    assert_int_equal(pl_graph_split(graph, "w", x, 0, NULL, 3, parts, &error), -EINVAL);
    assert_int_equal(pl_graph_split(graph, "w", x, 1, NULL, 0, parts, &error), -EINVAL);
    assert_int_equal(pl_graph_n_nodes(graph), 4);
}

static void a_scalar_is_told_to_have_no_axis(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE()), *node;
    const int64_t first = 0;
    assert_int_equal(pl_graph_squeeze(graph, "s", x, &first, 1, &node, &error), -EINVAL);
    assert_string_equal(error.message, "squeeze 's': axis 0 of a scalar ('x'), which has none");
    assert_int_equal(pl_graph_split(graph, "w", x, -1, NULL, 1, &node, &error), -EINVAL);
    assert_string_equal(error.message, "split 'w': axis -1 of a scalar ('x'), which has none");
    assert_int_equal(pl_graph_squeeze(graph, "s", x, NULL, 0, &node, &error), 0);
}

static void a_stack_that_does_not_fit_adds_nothing(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(2, 3)), *y = place("y", PL_F32, PL_SHAPE(2, 4));
    pl_node *i = place("i", PL_I32, PL_SHAPE(2, 3)), *node;
    assert_int_equal(pl_graph_stack(graph, "s", NODES(x, x, y), 0, &node, &error), -EINVAL);
    assert_string_equal(error.message, "stack 's': shapes [2,3] and [2,4] differ: axis 1 is 3 and "
                                       "4 ('x' and 'y')");
    assert_int_equal(pl_graph_stack(graph, "s", NODES(x, i), 0, &node, &error), -EINVAL);
    assert_string_equal(error.message,
                        "stack 's': float32 and int32: cast one of them ('x' and 'i')");
    assert_int_equal(pl_graph_stack(graph, "s", NODES(x, x), 3, &node, &error), -EINVAL);
    assert_int_equal(pl_graph_stack(graph, "s", NO_NODES, 0, &node, &error), -EINVAL);
    assert_int_equal(pl_graph_n_nodes(graph), 3);
}

static void builders_are_short_for_adding(void **state)
{
    (void)state;
    pl_node *x, *y, *node;
    assert_int_equal(pl_graph_constant(graph, NULL, PL_F32, &PL_SHAPE(2, 3), &x, &error), 0);
    assert_int_equal(pl_graph_fill(graph, "y", PL_F32, &PL_SHAPE(3, 4), 0.5, &y, &error), 0);
    assert_true(pl_node_attr(y, "value")->value.f == 0.5);
    assert_int_equal(pl_graph_matmul(graph, NULL, x, y, false, false, &node, &error), 0);
    is(node, PL_F32, "[2,4]");
    assert_int_equal(pl_graph_reshape(graph, NULL, node, &PL_SHAPE(-1), &node, &error), 0);
    is(node, PL_F32, "[8]");
    assert_int_equal(pl_graph_cast(graph, NULL, node, PL_I32, &node, &error), 0);
    assert_int_equal(pl_graph_reduce(graph, "sum", NULL, node, NULL, 0, true, &node, &error), 0);
    is(node, PL_I64, "[1]");
    assert_int_equal(pl_graph_unary(graph, "neg", NULL, node, &node, &error), 0);
    made_of(0, "constant fill matmul reshape cast sum neg");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_einsum_that_is_a_matmul_is_one_node),
        CASE(dots_stand_for_the_axes_without_a_label),
        CASE(other_einsums_have_few_nodes_more),
        CASE(a_squared_difference_is_a_difference_squared),
        CASE(axes_of_one_come_and_go_with_any_number_unknown),
        CASE(a_split_has_the_sizes_that_were_asked_for),
        CASE(a_scalar_is_told_to_have_no_axis),
        CASE(a_stack_that_does_not_fit_adds_nothing),
        CASE(builders_are_short_for_adding),
    };
    return cmocka_run_group_tests_name("graph_composite", tests, NULL, NULL);
}
