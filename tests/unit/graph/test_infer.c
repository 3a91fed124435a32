/* SPDX-License-Identifier: Apache-2.0 */
/* What does not fit is refused with op, node, shapes, axis and operands; what is unknown stays so
 * until it is fed. That shapes and dtypes are NumPy's is tested in tests/kernels/test_inference.py.
 */
#include "graph_fixture.h"

static void a_refusal_names_op_node_shapes_axis_and_operands(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(10, 10)), *y = place("y", PL_F32, PL_SHAPE(20, 20));
    pl_node *i = place("i", PL_I32, PL_SHAPE(10, 10)), *u = place("u", PL_BOOL, PL_SHAPE(10, 10));
    assert_int_equal(pl_graph_push_scope(graph, "loss", &error), 0);
    refused("add 'loss/add': shapes [10,10] and [20,20] do not broadcast: axis 0 is 10 and 20 "
            "('x' and 'y')",
            "add", NULL, NODES(x, y), NO_ATTRS);
    refused("add 'loss/z': int32 and float32: cast one of them ('i' and 'x')", "add", "z",
            NODES(i, x), NO_ATTRS);
    refused("exp 'loss/exp': int32: it takes floating-point numbers: cast it ('i')", "exp", NULL,
            NODES(i), NO_ATTRS);
    refused("where 'loss/where': the condition is int32: it is bool ('i', 'x' ...)", "where", NULL,
            NODES(i, x, x), NO_ATTRS);
    refused("where 'loss/where': float32 and int32: cast one of them ('u', 'x' ...)", "where", NULL,
            NODES(u, x, i), NO_ATTRS);
    refused("cast 'loss/cast': to string: it gives numbers or bool ('x')", "cast", NULL, NODES(x),
            ATTRS(pl_attr_dtype("dtype", PL_STRING)));
}

static int infer(const char *op, const pl_type *inputs, int n, const pl_attr *attrs, int n_attrs,
                 pl_type *ret_type)
{
    const char *names[] = {"x", "y"};
    return pl_op_infer(pl_op_find(op), "m", inputs, n <= 2 ? names : NULL, n, attrs, n_attrs,
                       ret_type, &error);
}

static void an_op_is_inferred_without_a_graph_as_in_one(void **state)
{
    (void)state;
    const pl_type a = {PL_F32, PL_SHAPE(3, 4)}, b = {PL_F32, PL_SHAPE(4, PL_UNKNOWN)};
    const pl_attr axes = pl_attr_ints("axes", (const int64_t[]){1}, 1);
    pl_type type;
    assert_int_equal(infer("matmul", (pl_type[]){a, b}, 2, NULL, 0, &type), 0);
    assert_int_equal(type.dtype, PL_F32);
    assert_true(pl_shape_equal(&type.shape, &PL_SHAPE(3, PL_UNKNOWN)));
    assert_int_equal(infer("sum", &a, 1, &axes, 1, &type), 0);
    assert_true(pl_shape_equal(&type.shape, &PL_SHAPE(3)));
    assert_int_equal(infer("matmul", (pl_type[]){a, a}, 2, NULL, 0, &type), -EINVAL);
    assert_string_equal(error.message, "matmul 'm': inner dimensions differ: [3,4] x [3,4]: 4 and "
                                       "3 ('x' and 'y')");
    assert_int_equal(infer("matmul", &a, 1, NULL, 0, &type), -EINVAL);
    assert_string_equal(error.message, "matmul 'm': inputs: 1 given, it takes 2");
    assert_int_equal(infer("nonsense", &a, 1, NULL, 0, &type), -EINVAL);

    pl_type many[100];
    const pl_attr axis = pl_attr_int("axis", 0);
    for (int i = 0; i < 100; i++)
        many[i] = (pl_type){PL_I64, PL_SHAPE(i, 2)};
    assert_int_equal(infer("concat", many, 100, &axis, 1, &type), 0);
    assert_true(pl_shape_equal(&type.shape, &PL_SHAPE(4950, 2)));
}

static void of_an_unknown_rank_the_dtype_is_inferred(void **state)
{
    (void)state;
    const pl_type a = {PL_F32, PL_SHAPE(3, 4)}, any = {PL_U8, {.rank = PL_RANK_UNKNOWN}};
    const pl_attr axes = pl_attr_ints("axes", (const int64_t[]){1}, 1);
    const pl_attr size = pl_attr_ints("size", (const int64_t[]){8, 9}, 2);
    const pl_attr shape = pl_attr_shape("shape", &PL_SHAPE(PL_UNKNOWN, 2));
    const pl_attr keepdims = pl_attr_bool("keepdims", true);
    pl_type type;
    assert_int_equal(infer("sum", &any, 1, &axes, 1, &type), 0);
    assert_int_equal(type.dtype, PL_U64);
    assert_int_equal(type.shape.rank, PL_RANK_UNKNOWN);
    assert_int_equal(infer("sum", &any, 1, NULL, 0, &type), 0);
    assert_int_equal(type.shape.rank, 0);
    assert_int_equal(infer("sum", &any, 1, &keepdims, 1, &type), 0);
    assert_int_equal(type.shape.rank, PL_RANK_UNKNOWN);
    assert_int_equal(infer("ensure_shape", &any, 1, &shape, 1, &type), 0);
    assert_true(pl_shape_equal(&type.shape, &PL_SHAPE(PL_UNKNOWN, 2)));
    assert_int_equal(infer("reshape", &any, 1, &shape, 1, &type), 0);
    assert_true(pl_shape_equal(&type.shape, &PL_SHAPE(PL_UNKNOWN, 2)));
    assert_int_equal(infer("resize", &any, 1, &size, 1, &type), 0);
    assert_int_equal(type.dtype, PL_F32);
    assert_int_equal(infer("matmul", (pl_type[]){a, any}, 2, NULL, 0, &type), -EINVAL);
    assert_string_equal(error.message,
                        "matmul 'm': float32 and uint8: cast one of them ('x' and 'y')");
}

static void the_table_of_ops_can_be_asked(void **state)
{
    (void)state;
    int sum = pl_op_find("sum");
    assert_int_equal(pl_op_find("nonsense"), -1);
    assert_false(pl_op_is_elementwise(-1));
    assert_false(pl_op_is_elementwise(sum));
    assert_true(pl_op_is_elementwise(pl_op_find("mul")));
    assert_string_equal(pl_op_name(sum), "sum");
    assert_null(pl_op_name(-1));
    assert_null(pl_op_name(1000));
    assert_int_equal(pl_op_n_attrs(sum), 2);
    assert_string_equal(pl_op_attr_name(sum, pl_op_attr_find(sum, "keepdims")), "keepdims");
    assert_null(pl_op_attr_name(sum, 2));
    assert_int_equal(pl_op_attr_type(sum, pl_op_attr_find(sum, "axes")), PL_ATTR_INTS);
    assert_int_equal(pl_op_attr_find(sum, "axis"), -1);
}

static void a_matmul_that_does_not_fit_says_how(void **state)
{
    (void)state;
    pl_node *a = place("a", PL_F32, PL_SHAPE(3, 4)), *b = place("b", PL_F32, PL_SHAPE(5, 6));
    pl_node *v = place("v", PL_F32, PL_SHAPE(4));
    pl_node *c = place("c", PL_F32, PL_SHAPE(2, 3, 4)), *d = place("d", PL_F32, PL_SHAPE(5, 4, 3));
    refused("matmul 'm': inner dimensions differ: [3,4] x [5,6]: 4 and 5 ('a' and 'b')", "matmul",
            "m", NODES(a, b), NO_ATTRS);
    refused("matmul 'm': inner dimensions differ: [3,4] transposed x [5,6]: 3 and 5 ('a' and 'b')",
            "matmul", "m", NODES(a, b), ATTRS(pl_attr_bool("transpose_a", true)));
    refused("matmul 'm': [3,4] x [4]: both have at least two axes; add one of 1 ('a' and 'v')",
            "matmul", "m", NODES(a, v), NO_ATTRS);
    refused("matmul 'm': [2,3,4] x [5,4,3]: the batches' shapes [2] and [5] do not broadcast: "
            "axis 0 is 2 and 5 ('c' and 'd')",
            "matmul", "m", NODES(c, d), NO_ATTRS);
    is(must_add("matmul", "m", NODES(a, c),
                ATTRS(pl_attr_bool("transpose_b", true), pl_attr_bool("transpose_a", false))),
       PL_F32, "[2,3,3]");
}

static void unknown_dimensions_stay_unknown_where_they_must(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(-1, 4)), *row = place("row", PL_F32, PL_SHAPE(4));
    pl_node *y = place("y", PL_F32, PL_SHAPE(5, 1)), *z = place("z", PL_F32, PL_SHAPE(-1, -1));
    is(must_add("add", NULL, NODES(x, row), NO_ATTRS), PL_F32, "[?,4]");
    is(must_add("add", NULL, NODES(x, y), NO_ATTRS), PL_F32, "[5,4]");
    is(must_add("add", NULL, NODES(x, z), NO_ATTRS), PL_F32, "[?,4]");
    is(must_add("matmul", NULL, NODES(z, z), NO_ATTRS), PL_F32, "[?,?]");
    is(must_add("sum", NULL, NODES(x), ATTRS(INTS("axes", 0))), PL_F32, "[4]");
    is(must_add("concat", NULL, NODES(x, x), ATTRS(pl_attr_int("axis", 0))), PL_F32, "[?,4]");
    is(must_add("concat", NULL, NODES(z, x), ATTRS(pl_attr_int("axis", 0))), PL_F32, "[?,4]");
    is(must_add("slice", NULL, NODES(x), ATTRS(INTS("start", 0), INTS("stop", 3))), PL_F32,
       "[?,4]");
    is(must_add("ensure_shape", NULL, NODES(z), ATTRS(pl_attr_shape("shape", &PL_SHAPE(7, -1)))),
       PL_F32, "[7,?]");
    is(must_add("max", NULL, NODES(z), NO_ATTRS), PL_F32, "[]");
}

static void a_reshape_finds_one_dimension_and_keeps_axes(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(-1, 4, 6)), *z = place("z", PL_F32, PL_SHAPE(-1, -1));
    pl_node *known = place("known", PL_F32, PL_SHAPE(2, 3)),
            *none = place("none", PL_F32, PL_SHAPE(0, 3));
#define TO(...) ATTRS(pl_attr_shape("shape", &PL_SHAPE(__VA_ARGS__)))
    is(must_add("reshape", NULL, NODES(x), TO(-1, 24)), PL_F32, "[?,24]");
    is(must_add("reshape", NULL, NODES(x), TO(48)), PL_F32, "[48]");
    is(must_add("reshape", NULL, NODES(known), TO(-1)), PL_F32, "[6]");
    is(must_add("reshape", NULL, NODES(none), TO(0, 7)), PL_F32, "[0,7]");
    is(must_add("reshape", NULL, NODES(x),
                ATTRS(pl_attr_shape("shape", &PL_SHAPE(-1, -1)), INTS("keep", 0, -1))),
       PL_F32, "[?,24]");
    is(must_add("reshape", NULL, NODES(z),
                ATTRS(pl_attr_shape("shape", &PL_SHAPE(-1, 1, -1)), INTS("keep", 1, -1, 0))),
       PL_F32, "[?,1,?]");
    refused("reshape 'r': [?,4,6] does not become [25]: the numbers of elements do not fit ('x')",
            "reshape", "r", NODES(x), TO(25));
    refused(
        "reshape 'r': [2,3] does not become [4,?]: the numbers of elements do not fit ('known')",
        "reshape", "r", NODES(known), TO(4, -1));
    refused("reshape 'r': shape [?,?]: at most one dimension is -1 ('known')", "reshape", "r",
            NODES(known), TO(-1, -1));
    refused("reshape 'r': [0,3] does not become [0,?]: the numbers of elements do not fit ('none')",
            "reshape", "r", NODES(none), TO(0, -1));
    refused("reshape 'r': 'keep' has 5: an axis of [2,3], each at most once, or -1 ('known')",
            "reshape", "r", NODES(known),
            ATTRS(pl_attr_shape("shape", &PL_SHAPE(-1)), INTS("keep", 5)));
    refused("reshape 'r': axis 0 is 3 and keeps axis 0 of [2,3], which is not ('known')", "reshape",
            "r", NODES(known), ATTRS(pl_attr_shape("shape", &PL_SHAPE(3, 2)), INTS("keep", 0, -1)));
    pl_node *huge = place("huge", PL_U8, PL_SHAPE(INT64_MAX));
    refused("reshape 'r': [9223372036854775807] does not become [4294967296,4294967296]: the "
            "numbers of elements do not fit ('huge')",
            "reshape", "r", NODES(huge), TO(INT64_C(1) << 32, INT64_C(1) << 32));
}

static void axes_and_boxes_out_of_range_are_refused(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(4, 6)), *s = place("s", PL_F32, PL_SHAPE());
    refused("sum 'r': axis 2 of shape [4,6]: its axes are -2 to 1 ('x')", "sum", "r", NODES(x),
            ATTRS(INTS("axes", 0, 2)));
    refused("sum 'r': axis 1 is named twice ('x')", "sum", "r", NODES(x),
            ATTRS(INTS("axes", 1, -1)));
    refused("softmax 'r': axis -1 of a scalar, which has none ('s')", "softmax", "r", NODES(s),
            NO_ATTRS);
    refused("crop 'r': shape [4,6]: axis 1 has no 4 elements from 3 on ('x')", "crop", "r",
            NODES(x), ATTRS(INTS("start", 0, 3), INTS("size", -1, 4)));
    refused("pad 'r': 'before' has 1 numbers for shape [4,6]: one for each axis ('x')", "pad", "r",
            NODES(x), ATTRS(INTS("before", 1), INTS("after", 1, 1)));
    refused("pad 'r': axis 0 by -1 and 0: neither is negative; use slice to cut ('x')", "pad", "r",
            NODES(x), ATTRS(INTS("before", -1, 0), INTS("after", 0, 0)));
    refused("slice 'r': the step along axis 0 is 0 ('x')", "slice", "r", NODES(x),
            ATTRS(INTS("start", 0), INTS("stop", 1), INTS("step", 0)));
    refused("argmax 'r': shape [0,2]: axis 0 has no elements, so there is no argmax ('none')",
            "argmax", "r", NODES(place("none", PL_F32, PL_SHAPE(0, 2))),
            ATTRS(pl_attr_int("axis", 0)));
    refused("top_k_values 'r': shape [4,6]: the last axis has no 7 elements ('x')", "top_k_values",
            "r", NODES(x), ATTRS(pl_attr_int("k", 7)));
    refused("concat 'r': input 1 is [4,7]: axis 1 is 7, and 6 before: all are the same but along "
            "axis 0 ('x' and 'w')",
            "concat", "r", NODES(x, place("w", PL_F32, PL_SHAPE(4, 7))),
            ATTRS(pl_attr_int("axis", 0)));
}

static void sizes_that_cannot_be_counted_are_refused(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_U8, PL_SHAPE(INT64_MAX)), *node;
    refused("concat 'r': axis 0 would have more than 2^63 elements ('x' and 'x')", "concat", "r",
            NODES(x, x), ATTRS(pl_attr_int("axis", 0)));
    refused("tile 'r': axis 0 would have more than 2^63 elements ('x')", "tile", "r", NODES(x),
            ATTRS(INTS("multiples", 3)));
    refused("pad 'r': axis 0 would have more than 2^63 elements ('x')", "pad", "r", NODES(x),
            ATTRS(INTS("before", 1), INTS("after", 0)));
    assert_int_equal(pl_graph_cast(graph, "c", x, PL_F32, &node, &error), -EOVERFLOW);
    assert_int_equal(error.code, -EOVERFLOW);
    assert_string_equal(error.message, "cast 'c': a tensor of shape [9223372036854775807] with 4 "
                                       "bytes an element has more than 2^63 bytes ('x')");
    const pl_shape wide = PL_SHAPE(1, 1, 1, 1, 1, 1, 1, 1);
    pl_node *all = place("all", PL_I32, wide);
    refused("one_hot 'h': [1,1,1,1,1,1,1,1] has 8 axes already: there is no room for one more "
            "('all')",
            "one_hot", "h", NODES(all), ATTRS(pl_attr_int("depth", 2)));
    refused("gather 'g': [1,1,1,1,1,1,1,1] by indices [1,1,1,1,1,1,1,1]: at most 8 axes are "
            "possible ('all' and 'all')",
            "gather", "g", NODES(all, all), NO_ATTRS);
}

static void sources_know_their_shape_or_borrow_one(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F16, PL_SHAPE(-1, 4));
    const pl_attr shape = pl_attr_shape("shape", &PL_SHAPE(2, 3)), one = pl_attr_int("value", 1);
    is(must_add("fill", NULL, NO_NODES, ATTRS(shape, one)), PL_F32, "[2,3]");
    is(must_add("fill", NULL, NODES(x), ATTRS(one)), PL_F16, "[?,4]");
    is(must_add("random_normal", NULL, NODES(x), ATTRS(pl_attr_dtype("dtype", PL_F64))), PL_F64,
       "[?,4]");
    refused("fill 'f': neither 'shape' nor an input to have the shape of", "fill", "f", NO_NODES,
            ATTRS(one));
    refused("fill 'f': both 'shape' and an input to have the shape of ('x')", "fill", "f", NODES(x),
            ATTRS(one, shape));
    refused("fill 'f': shape [?]: every dimension is known, or an input has the shape", "fill", "f",
            NO_NODES, ATTRS(one, pl_attr_shape("shape", &PL_SHAPE(-1))));
    refused("variable 'v': shape [?]: every dimension of a variable is known", "variable", "v",
            NO_NODES, ATTRS(pl_attr_dtype("dtype", PL_F32), pl_attr_shape("shape", &PL_SHAPE(-1))));
    refused("random_uniform 'u': 'low' is 3 and 'high' 3: nothing is between", "random_uniform",
            "u", NO_NODES, ATTRS(shape, pl_attr_int("low", 3), pl_attr_int("high", 3)));
    refused(
        "random_uniform 'u': 'low' is -3e+38 and 'high' 3e+38: these, or what lies between, are "
        "more than float32 holds",
        "random_uniform", "u", NO_NODES,
        ATTRS(shape, pl_attr_float("low", -3e38), pl_attr_float("high", 3e38)));
    refused("random_uniform 'u': 'low' is 0 and 'high' inf: these, or what lies between, are more "
            "than float64 holds",
            "random_uniform", "u", NO_NODES,
            ATTRS(shape, pl_attr_dtype("dtype", PL_F64), pl_attr_float("high", __builtin_inf())));
    refused(
        "random_uniform 'u': 'low' is 0 and 'high' 70000: these, or what lies between, are more "
        "than float16 holds",
        "random_uniform", "u", NO_NODES,
        ATTRS(shape, pl_attr_dtype("dtype", PL_F16), pl_attr_int("high", 70000)));
    refused("random_uniform 'u': 'low' and 'high' are integers for dtype int32", "random_uniform",
            "u", NO_NODES,
            ATTRS(shape, pl_attr_dtype("dtype", PL_I32), pl_attr_float("high", 2.5)));
    refused("random_normal 'u': dtype int32: it gives floating-point numbers", "random_normal", "u",
            NO_NODES, ATTRS(shape, pl_attr_dtype("dtype", PL_I32)));
    refused("random_normal 'u': 'stddev' is nan: it is at least 0", "random_normal", "u", NO_NODES,
            ATTRS(shape, pl_attr_float("stddev", __builtin_nan(""))));
}

static void a_range_has_as_many_as_numpy_says(void **state)
{
    (void)state;
    const pl_attr f32 = pl_attr_dtype("dtype", PL_F32);
#define RANGE(of, start, stop, step)                                                               \
    must_add("range", NULL, NO_NODES,                                                              \
             ATTRS(f32, pl_attr_##of("start", start), pl_attr_##of("stop", stop),                  \
                   pl_attr_##of("step", step)))
    is(RANGE(int, 0, 10, 3), PL_F32, "[4]");
    is(RANGE(int, 10, 0, -3), PL_F32, "[4]");
    is(RANGE(int, 0, 10, -1), PL_F32, "[0]");
    is(RANGE(int, 5, 5, 1), PL_F32, "[0]");
    is(RANGE(float, 0, 1, 0.1), PL_F32, "[10]");
    is(RANGE(float, 1, 1.3, 0.1), PL_F32, "[4]"); /* as NumPy does, and warns of */
    is(RANGE(float, 0, -1, 0.5), PL_F32, "[0]");
    refused("range 'r': 'step' is 0", "range", "r", NO_NODES,
            ATTRS(f32, pl_attr_int("stop", 3), pl_attr_int("step", 0)));
    refused("range 'r': from 0 to inf by 1: these cannot be counted", "range", "r", NO_NODES,
            ATTRS(f32, pl_attr_float("stop", __builtin_inf())));
    refused("range 'r': from -9.22337e+18 to 9.22337e+18 by 1: these cannot be counted", "range",
            "r", NO_NODES,
            ATTRS(f32, pl_attr_int("start", INT64_MIN), pl_attr_int("stop", INT64_MAX)));
    is(must_add("range", NULL, NO_NODES,
                ATTRS(pl_attr_dtype("dtype", PL_U8), pl_attr_int("start", INT64_MAX),
                      pl_attr_int("stop", INT64_MIN), pl_attr_int("step", INT64_MIN))),
       PL_U8, "[2]");
}

static void only_variables_are_assigned_to_in_their_own_shape(void **state)
{
    (void)state;
    pl_node *v, *x = place("x", PL_F32, PL_SHAPE(-1, 3)), *y = place("y", PL_F32, PL_SHAPE(3));
    assert_int_equal(pl_graph_variable(graph, "v", PL_F32, &PL_SHAPE(2, 3), &v, &error), 0);
    is(must_add("assign_add", NULL, NODES(v, x), NO_ATTRS), PL_F32, "[2,3]");
    refused("assign 'a': shapes [2,3] and [3] differ: rank 2 and 1 ('v' and 'y')", "assign", "a",
            NODES(v, y), NO_ATTRS);
    refused("assign 'a': 'x' is made by placeholder: only a variable is assigned to ('x' and 'x')",
            "assign", "a", NODES(x, x), NO_ATTRS);
}

static void what_readers_make_is_known_as_far_as_can_be(void **state)
{
    (void)state;
    pl_node *name = place("name", PL_STRING, PL_SHAPE()),
            *many = place("many", PL_STRING, PL_SHAPE(5));
    pl_node *bytes = must_add("read_file", NULL, NODES(name), NO_ATTRS);
    is(bytes, PL_STRING, "[]");
    is(must_add("decode_jpeg", NULL, NODES(bytes), NO_ATTRS), PL_U8, "[?,?,?]");
    pl_node *image =
        must_add("decode_image", NULL, NODES(bytes), ATTRS(pl_attr_int("channels", 3)));
    is(image, PL_U8, "[?,?,3]");
    is(must_add("resize", NULL, NODES(image), ATTRS(INTS("size", 8, 9))), PL_F32, "[8,9,3]");
    is(must_add("resize", NULL, NODES(image),
                ATTRS(INTS("size", 8, 9), pl_attr_string("method", "nearest"))),
       PL_U8, "[8,9,3]");
    is(must_add("decode_png", NULL, NODES(name), ATTRS(pl_attr_dtype("dtype", PL_U16))), PL_U16,
       "[?,?,?]");
    refused("decode_image 'd': dtype float64: pixels are uint8, uint16 or float32 ('name')",
            "decode_image", "d", NODES(name), ATTRS(pl_attr_dtype("dtype", PL_F64)));
    is(must_add("string_length", NULL, NODES(many), NO_ATTRS), PL_I64, "[5]");
    is(must_add("string_join", NULL, NODES(name, many, many), NO_ATTRS), PL_STRING, "[5]");
    is(must_add("string_split", NULL, NODES(name), NO_ATTRS), PL_STRING, "[?]");
    is(must_add("string_to_number", NULL, NODES(many), ATTRS(pl_attr_dtype("dtype", PL_I32))),
       PL_I32, "[5]");
    is(must_add("decode_raw", NULL, NODES(many), ATTRS(pl_attr_dtype("dtype", PL_F32))), PL_F32,
       "[5,?]");
    is(must_add("equal", NULL, NODES(many, name), NO_ATTRS), PL_BOOL, "[5]");
    refused("decode_png 'd': shape [5]: it takes a scalar, one at a time ('many')", "decode_png",
            "d", NODES(many), NO_ATTRS);
    refused("decode_png 'd': 'channels' is 2: it is 0, 1, 3 or 4 ('name')", "decode_png", "d",
            NODES(name), ATTRS(pl_attr_int("channels", 2)));
    refused("resize 'r': method 'cubic': it is 'bilinear' or 'nearest' ('image')", "resize", "r",
            NODES(must_add("identity", "image", NODES(image), NO_ATTRS)),
            ATTRS(INTS("size", 8, 9), pl_attr_string("method", "cubic")));
    refused("add 'a': string: it takes numbers: cast it ('name' and 'name')", "add", "a",
            NODES(name, name), NO_ATTRS);
}

static void halves_are_floats(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_BF16, PL_SHAPE(2, 3));
    is(must_add("exp", NULL, NODES(x), NO_ATTRS), PL_BF16, "[2,3]");
    is(must_add("sum", NULL, NODES(x), NO_ATTRS), PL_BF16, "[]");
    is(must_add("mean", NULL, NODES(x), NO_ATTRS), PL_BF16, "[]");
    is(must_add("is_nan", NULL, NODES(x), NO_ATTRS), PL_BOOL, "[2,3]");
}

static void what_is_not_needed_is_not_checked(void **state)
{
    (void)state;
    pl_shape shapes[8];
    bool needed[8];
    pl_node *x = place("x", PL_F32, PL_SHAPE(-1)), *y = place("y", PL_F32, PL_SHAPE(-1));
    pl_node *both = must_add("add", NULL, NODES(x, y), NO_ATTRS);
    pl_node *twice = must_add("add", NULL, NODES(x, x), NO_ATTRS);
    const pl_feed_shape feeds[] = {{x, PL_SHAPE(2)}, {y, PL_SHAPE(3)}};
    assert_int_equal(pl_graph_infer(graph, feeds, 2, NULL, shapes, &error), -EINVAL);
    assert_string_equal(error.message, "add 'add': shapes [2] and [3] do not broadcast: axis 0 is "
                                       "2 and 3 ('x' and 'y')");
    pl_graph_mark_needed(graph, &twice, 1, needed);
    assert_true(needed[x->number] && needed[twice->number]);
    assert_false(needed[y->number] || needed[both->number]);
    assert_int_equal(pl_graph_infer(graph, feeds, 2, needed, shapes, &error), 0);
    assert_string_equal(PL_SHAPE_TEXT(&shapes[twice->number]), "[2]");
    assert_string_equal(PL_SHAPE_TEXT(&shapes[both->number]), "[?]");
    is(twice, PL_F32, "[?]"); /* the node itself is as it was */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_refusal_names_op_node_shapes_axis_and_operands),
        CASE(an_op_is_inferred_without_a_graph_as_in_one),
        CASE(of_an_unknown_rank_the_dtype_is_inferred),
        CASE(the_table_of_ops_can_be_asked),
        CASE(a_matmul_that_does_not_fit_says_how),
        CASE(unknown_dimensions_stay_unknown_where_they_must),
        CASE(a_reshape_finds_one_dimension_and_keeps_axes),
        CASE(axes_and_boxes_out_of_range_are_refused),
        CASE(sizes_that_cannot_be_counted_are_refused),
        CASE(sources_know_their_shape_or_borrow_one),
        CASE(a_range_has_as_many_as_numpy_says),
        CASE(only_variables_are_assigned_to_in_their_own_shape),
        CASE(what_readers_make_is_known_as_far_as_can_be),
        CASE(halves_are_floats),
        CASE(what_is_not_needed_is_not_checked),
    };
    return cmocka_run_group_tests_name("infer", tests, NULL, NULL);
}
