/* SPDX-License-Identifier: Apache-2.0 */
/* The regions that ops name are no larger than they have to be: tiles are planned by them. That
 * they are large enough is tested in tests/kernels/test_inference.py. */
#include "graph_fixture.h"

#include <inttypes.h>
#include <stdio.h>

#include "graph/cost.h"
#include "graph/op_region.h"

static pl_shape shapes[64];

typedef struct pairs {
    int64_t numbers[2 * PL_RANK_MAX];
} pairs;

static pl_region region_of(pairs from, size_t n)
{
    pl_region region = {.rank = (int)n / 2};
    for (int i = 0; i < region.rank; i++) {
        region.begin[i] = from.numbers[2 * i];
        region.extent[i] = from.numbers[2 * i + 1];
    }
    return region;
}

/* BOX(begin, extent, begin, extent ...) */
#define BOX(...)                                                                                   \
    region_of((pairs){{__VA_ARGS__}}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void infer(void)
{
    assert_true(pl_graph_n_nodes(graph) < (int)PL_COUNT_OF(shapes));
    assert_int_equal(pl_graph_infer(graph, NULL, 0, NULL, shapes, &error), 0);
}

static void needs(const pl_node *node, pl_region out, int i, pl_region wanted)
{
    pl_region in;
    infer();
    assert_true(pl_region_inside(&out, &shapes[node->number]));
    assert_true(pl_op_region(node, shapes, &out, i, &in));
    if (!pl_region_equal(&in, &wanted))
        for (int k = 0; k < in.rank; k++)
            print_error("axis %d: %" PRId64 ":%" PRId64 "\n", k, in.begin[k], in.extent[k]);
    assert_true(pl_region_equal(&in, &wanted));
    assert_true(pl_region_inside(&in, pl_node_input_shape(node, shapes, i)));
}

static void needs_nothing(const pl_node *node, pl_region out, int i)
{
    pl_region in;
    infer();
    assert_false(pl_op_region(node, shapes, &out, i, &in));
    assert_int_equal(in.rank, pl_node_input_shape(node, shapes, i)->rank);
    assert_true(in.rank == 0 || pl_region_is_empty(&in));
}

static void elementwise_ops_need_the_same_and_ones_once(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(6, 8)), *column = place("c", PL_F32, PL_SHAPE(6, 1));
    pl_node *scalar = place("s", PL_F32, PL_SHAPE());
    pl_node *sum = must_add("add", NULL, NODES(x, column), NO_ATTRS);
    needs(sum, BOX(2, 3, 4, 1), 0, BOX(2, 3, 4, 1));
    needs(sum, BOX(2, 3, 4, 1), 1, BOX(2, 3, 0, 1));
    needs(must_add("mul", NULL, NODES(x, scalar), NO_ATTRS), BOX(2, 3, 4, 1), 1, BOX());
    needs_nothing(sum, BOX(2, 0, 4, 1), 0);
    needs_nothing(must_add("mul", NULL, NODES(scalar, x), NO_ATTRS), BOX(2, 0, 4, 1), 0);
}

static void views_need_what_they_show(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(4, 6, 8));
    needs(must_add("transpose", NULL, NODES(x), ATTRS(INTS("axes", 2, 0, 1))),
          BOX(1, 2, 3, 1, 0, 5), 0, BOX(3, 1, 0, 5, 1, 2));
    needs(must_add("slice", NULL, NODES(x),
                   ATTRS(INTS("start", 1, -1), INTS("stop", 4, -9), INTS("step", 1, -2))),
          BOX(1, 2, 1, 2, 0, 8), 0, BOX(2, 2, 1, 3, 0, 8));
    needs(must_add("crop", NULL, NODES(x), ATTRS(INTS("start", 1, 2, 3), INTS("size", 2, 2, -1))),
          BOX(0, 1, 1, 1, 4, 1), 0, BOX(1, 1, 3, 1, 7, 1));
    needs(must_add("reverse", NULL, NODES(x), ATTRS(INTS("axes", 1))), BOX(0, 1, 0, 2, 0, 8), 0,
          BOX(0, 1, 4, 2, 0, 8));
    needs(must_add("broadcast_to", NULL, NODES(x),
                   ATTRS(pl_attr_shape("shape", &PL_SHAPE(9, 4, 6, 8)))),
          BOX(7, 2, 1, 1, 2, 2, 3, 3), 0, BOX(1, 1, 2, 2, 3, 3));
}

static void a_reshape_needs_a_box_of_each_group_of_axes(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(6, 4, 5)), *y = place("y", PL_F32, PL_SHAPE(2, 3, 20));
    pl_node *down =
        must_add("reshape", NULL, NODES(x), ATTRS(pl_attr_shape("shape", &PL_SHAPE(2, 3, 20))));
    /* [6] -> [2,3] and [4,5] -> [20], each for itself. */
    needs(down, BOX(1, 1, 0, 2, 7, 2), 0, BOX(3, 2, 1, 1, 2, 2));
    needs(down, BOX(0, 2, 1, 1, 4, 2), 0, BOX(1, 4, 0, 2, 0, 5));
    needs(down, BOX(1, 1, 2, 1, 0, 20), 0, BOX(5, 1, 0, 4, 0, 5));
    pl_node *up =
        must_add("reshape", NULL, NODES(y), ATTRS(pl_attr_shape("shape", &PL_SHAPE(6, 4, 5))));
    needs(up, BOX(4, 1, 1, 1, 2, 2), 0, BOX(1, 1, 1, 1, 7, 2));
    /* Axes of 1 come and go exactly. */
    pl_node *ones = must_add("reshape", NULL, NODES(x),
                             ATTRS(pl_attr_shape("shape", &PL_SHAPE(1, 6, 1, 4, 5, 1))));
    needs(ones, BOX(0, 1, 2, 3, 0, 1, 1, 2, 3, 2, 0, 1), 0, BOX(2, 3, 1, 2, 3, 2));
    pl_node *back =
        must_add("reshape", NULL, NODES(ones), ATTRS(pl_attr_shape("shape", &PL_SHAPE(6, 4, 5))));
    needs(back, BOX(2, 3, 1, 2, 3, 2), 0, BOX(0, 1, 2, 3, 0, 1, 1, 2, 3, 2, 0, 1));
    pl_node *one = place("one", PL_F32, PL_SHAPE(1, 1));
    needs(must_add("reshape", NULL, NODES(one), ATTRS(pl_attr_shape("shape", &PL_SHAPE()))), BOX(),
          0, BOX(0, 1, 0, 1));
}

static void moves_need_only_what_lies_there(void **state)
{
    (void)state;
    pl_node *a = place("a", PL_F32, PL_SHAPE(4, 3)), *b = place("b", PL_F32, PL_SHAPE(4, 5));
    pl_node *both = must_add("concat", NULL, NODES(a, b), ATTRS(pl_attr_int("axis", 1)));
    needs(both, BOX(1, 2, 2, 3), 0, BOX(1, 2, 2, 1));
    needs(both, BOX(1, 2, 2, 3), 1, BOX(1, 2, 0, 2));
    needs_nothing(both, BOX(1, 2, 3, 3), 0);
    pl_node *padded =
        must_add("pad", NULL, NODES(a), ATTRS(INTS("before", 2, 0), INTS("after", 3, 1)));
    needs(padded, BOX(1, 3, 0, 4), 0, BOX(0, 2, 0, 3));
    needs_nothing(padded, BOX(0, 2, 0, 4), 0);
    pl_node *tiled = must_add("tile", NULL, NODES(a), ATTRS(INTS("multiples", 3, 2)));
    needs(tiled, BOX(5, 2, 4, 2), 0, BOX(1, 2, 1, 2));
    needs(tiled, BOX(5, 4, 4, 2), 0, BOX(0, 4, 1, 2));
    pl_node *indices = place("i", PL_I32, PL_SHAPE(7, 2));
    pl_node *gathered = must_add("gather", NULL, NODES(b, indices), ATTRS(pl_attr_int("axis", 1)));
    needs(gathered, BOX(2, 1, 3, 2, 0, 1), 0, BOX(2, 1, 0, 5));
    needs(gathered, BOX(2, 1, 3, 2, 0, 1), 1, BOX(3, 2, 0, 1));
    pl_node *hot = must_add("one_hot", NULL, NODES(indices),
                            ATTRS(pl_attr_int("depth", 9), pl_attr_int("axis", 0)));
    needs(hot, BOX(8, 1, 3, 2, 0, 1), 0, BOX(3, 2, 0, 1));
}

static void what_folds_or_sorts_needs_whole_axes(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(4, 6, 8));
    pl_node *sum = must_add("sum", NULL, NODES(x), ATTRS(INTS("axes", 0, -1)));
    needs(sum, BOX(2, 3), 0, BOX(0, 4, 2, 3, 0, 8));
    pl_node *kept =
        must_add("sum", NULL, NODES(x), ATTRS(INTS("axes", 0, -1), pl_attr_bool("keepdims", true)));
    needs(kept, BOX(0, 1, 2, 3, 0, 1), 0, BOX(0, 4, 2, 3, 0, 8));
    needs(must_add("argmax", NULL, NODES(x), ATTRS(pl_attr_int("axis", 1))), BOX(1, 2, 3, 4), 0,
          BOX(1, 2, 0, 6, 3, 4));
    needs(must_add("cumsum", NULL, NODES(x), ATTRS(pl_attr_int("axis", 1))), BOX(1, 2, 3, 1, 4, 2),
          0, BOX(1, 2, 0, 6, 4, 2));
    needs(must_add("top_k_indices", NULL, NODES(x), ATTRS(pl_attr_int("k", 2))),
          BOX(1, 2, 3, 1, 1, 1), 0, BOX(1, 2, 3, 1, 0, 8));
    /* The empty sum has an output, and needs nothing for it. */
    pl_node *none = place("none", PL_F32, PL_SHAPE(0, 3));
    needs_nothing(must_add("sum", NULL, NODES(none), ATTRS(INTS("axes", 0))), BOX(0, 3), 0);
}

static void a_matmul_needs_rows_and_columns(void **state)
{
    (void)state;
    pl_node *a = place("a", PL_F32, PL_SHAPE(5, 6, 7)), *b = place("b", PL_F32, PL_SHAPE(1, 7, 9));
    pl_node *at = place("at", PL_F32, PL_SHAPE(5, 7, 6)), *bt = place("bt", PL_F32, PL_SHAPE(9, 7));
    const pl_region out = BOX(2, 2, 3, 1, 4, 5);
    pl_node *plain = must_add("matmul", NULL, NODES(a, b), NO_ATTRS);
    needs(plain, out, 0, BOX(2, 2, 3, 1, 0, 7));
    needs(plain, out, 1, BOX(0, 1, 0, 7, 4, 5));
    pl_node *turned =
        must_add("matmul", NULL, NODES(at, bt),
                 ATTRS(pl_attr_bool("transpose_a", true), pl_attr_bool("transpose_b", true)));
    needs(turned, out, 0, BOX(2, 2, 0, 7, 3, 1));
    needs(turned, out, 1, BOX(4, 5, 0, 7));
}

static void state_and_data_need_what_they_read(void **state)
{
    (void)state;
    pl_node *v, *x = place("x", PL_F32, PL_SHAPE(4, 6)), *name = place("n", PL_STRING, PL_SHAPE());
    assert_int_equal(pl_graph_variable(graph, "v", PL_F32, &PL_SHAPE(4, 6), &v, &error), 0);
    pl_node *set = must_add("assign", NULL, NODES(v, x), NO_ATTRS);
    needs_nothing(set, BOX(1, 2, 3, 1), 0);
    needs(set, BOX(1, 2, 3, 1), 1, BOX(1, 2, 3, 1));
    pl_node *added = must_add("assign_add", NULL, NODES(v, x), NO_ATTRS);
    needs(added, BOX(1, 2, 3, 1), 0, BOX(1, 2, 3, 1));
    pl_node *like = must_add("fill", NULL, NODES(x), ATTRS(pl_attr_int("value", 0)));
    needs_nothing(like, BOX(1, 2, 3, 1), 0);
    pl_node *image = place("image", PL_U8, PL_SHAPE(100, 50, 3));
    pl_node *half = must_add("resize", NULL, NODES(image), ATTRS(INTS("size", 50, 100)));
    needs(half, BOX(10, 5, 0, 100, 1, 1), 0, BOX(19, 12, 0, 50, 1, 1));
    needs(half, BOX(49, 1, 99, 1, 0, 3), 0, BOX(97, 3, 48, 2, 0, 3));
    needs(must_add("read_file", NULL, NODES(name), NO_ATTRS), BOX(), 0, BOX());
}

static void costs_are_counted_for_an_element_of_the_output(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(4, 8)), *y = place("y", PL_F32, PL_SHAPE(16, 8));
    const struct {
        pl_node *node;
        double flops;
    } cases[] = {
        {x, 0},
        {must_add("add", NULL, NODES(x, x), NO_ATTRS), 1},
        {must_add("exp", NULL, NODES(x), NO_ATTRS), 20},
        {must_add("sum", NULL, NODES(x), NO_ATTRS), 32},
        {must_add("variance", NULL, NODES(x), ATTRS(INTS("axes", 0))), 16},
        {must_add("transpose", NULL, NODES(x), NO_ATTRS), 0},
        {must_add("matmul", NULL, NODES(x, y), ATTRS(pl_attr_bool("transpose_b", true))), 16},
        {must_add("sort", NULL, NODES(x), NO_ATTRS), 6},
        {must_add("top_k_values", NULL, NODES(x), ATTRS(pl_attr_int("k", 2))), 24},
        {must_add("argmin", NULL, NODES(x), ATTRS(pl_attr_int("axis", 0))), 4},
    };
    infer();
    for (size_t i = 0; i < PL_COUNT_OF(cases); i++)
        assert_float_equal(pl_node_flops_per_element(cases[i].node, shapes), cases[i].flops, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(elementwise_ops_need_the_same_and_ones_once),
        CASE(views_need_what_they_show),
        CASE(a_reshape_needs_a_box_of_each_group_of_axes),
        CASE(moves_need_only_what_lies_there),
        CASE(what_folds_or_sorts_needs_whole_axes),
        CASE(a_matmul_needs_rows_and_columns),
        CASE(state_and_data_need_what_they_read),
        CASE(costs_are_counted_for_an_element_of_the_output),
    };
    return cmocka_run_group_tests_name("op_regions", tests, NULL, NULL);
}
