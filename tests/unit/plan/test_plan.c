/* SPDX-License-Identifier: Apache-2.0 */
/* Plans are made of descriptions alone: what becomes a step, where values lie, what is refused. */
#include "graph_fixture.h"

#include <stdio.h>

#include "graph/op_region.h"
#include "plan/plan.h"

enum { SOURCES = 8 };

static pl_plan_source sources[SOURCES];
static int n_sources;
static pl_plan *plan;

static int plan_setup(void **state)
{
    n_sources = 0;
    return setup(state);
}

static int plan_teardown(void **state)
{
    pl_plan_free(PL_TAKE(plan));
    return teardown(state);
}

#define PLAN_CASE(function) cmocka_unit_test_setup_teardown(function, plan_setup, plan_teardown)

static pl_node *given(const char *name, pl_shape shape, bool resident)
{
    pl_node *node = place(name, PL_F32, shape);
    sources[n_sources++] = (pl_plan_source){.node = node, .shape = shape, .resident = resident};
    return node;
}

static int make(pl_node *fetch, uint64_t budget_bytes)
{
    const pl_plan_fetch fetches[] = {{fetch, false}};
    const pl_plan_request request = {.graph = graph,
                                     .fetches = fetches,
                                     .n_fetches = 1,
                                     .sources = sources,
                                     .n_sources = n_sources,
                                     .budget_bytes = budget_bytes,
                                     .disk = {.bytes = PL_GIB},
                                     .n_threads = 2};
    pl_plan_free(PL_TAKE(plan));
    error.message[0] = '\0';
    return pl_plan_new(&request, &plan, &error);
}

static void must_make(pl_node *fetch, uint64_t budget_bytes)
{
    if (make(fetch, budget_bytes) < 0)
        fail_msg("%s", error.message);
}

/* The steps' nodes, as "a b c". */
static const char *steps(void)
{
    static char text[256];
    text[0] = '\0';
    for (int i = 0; i < plan->n_steps; i++) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, plan->steps[i].node->name);
    }
    return text;
}

static const pl_plan_value *value_of(const pl_node *node)
{
    return &plan->values[plan->value_of[node->number]];
}

static void a_chain_is_one_step(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(1000, 1000), true);
    pl_node *b = given("b", PL_SHAPE(1000), true);
    pl_node *m = must_add("mul", "m", NODES(a, b), NO_ATTRS);
    pl_node *s = must_add("sin", "s", NODES(a), NO_ATTRS);
    pl_node *z = must_add("add", "z", NODES(m, s), NO_ATTRS);
    pl_node *sum = must_add("sum", "sum", NODES(z), NO_ATTRS);
    must_make(sum, PL_GIB);
    assert_string_equal(steps(), "sum");
    assert_true(plan->peak_bytes < 4 * 1000 * 1000 + 5000 + 3 * PL_MIB);
    must_make(z, PL_GIB);
    assert_string_equal(steps(), "z");
}

static void what_is_used_twice_is_a_value_unless_it_is_cheap(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(1000, 1000), true);
    pl_node *dear = must_add("tanh", "dear", NODES(a), NO_ATTRS);
    pl_node *total = must_add("sum", "total", NODES(dear), ATTRS(INTS("axes", 0)));
    pl_node *apart = must_add("sub", "apart", NODES(dear, total), NO_ATTRS);
    must_make(apart, PL_GIB);
    assert_string_equal(steps(), "dear total apart");

    pl_node *cheap = must_add("neg", "cheap", NODES(a), NO_ATTRS);
    total = must_add("sum", "total2", NODES(cheap), ATTRS(INTS("axes", 0)));
    apart = must_add("sub", "apart2", NODES(cheap, total), NO_ATTRS);
    must_make(apart, PL_GIB);
    assert_string_equal(steps(), "total2 apart2");

    /* Twice in one place is once. */
    pl_node *square = must_add("mul", "square", NODES(dear, dear), NO_ATTRS);
    must_make(square, PL_GIB);
    assert_string_equal(steps(), "square");
}

static void the_value_that_is_used_last_goes_to_disk_first(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(1024, 1024), false);
    pl_node *late = must_add("softmax", "late", NODES(a), NO_ATTRS);
    pl_node *soon = must_add("sort", "soon", NODES(late), NO_ATTRS);
    pl_node *more = must_add("softmax", "more", NODES(soon), NO_ATTRS);
    pl_node *end = must_add("add", "end", NODES(late, more), NO_ATTRS);
    pl_node *sum = must_add("sum", "sum", NODES(end), NO_ATTRS);
    must_make(sum, PL_GIB);
    assert_int_equal(plan->disk_bytes, 0);
    uint64_t all = plan->peak_bytes;
    must_make(sum, all - PL_MIB);
    assert_int_equal(value_of(late)->place, PL_PLACE_SPILL);
    assert_int_equal(value_of(soon)->place, PL_PLACE_MEMORY);
    assert_int_equal(value_of(more)->place, PL_PLACE_MEMORY);
    assert_int_equal(plan->disk_bytes, 4 * PL_MIB);
}

static void no_plan_passes_its_budget_and_what_is_refused_says_what_would_do(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(300, 700), true);
    pl_node *turned = must_add("transpose", "turned", NODES(a), NO_ATTRS);
    pl_node *sorted = must_add("sort", "sorted", NODES(turned), NO_ATTRS);
    pl_node *product = must_add("matmul", "product", NODES(a, sorted), NO_ATTRS);
    pl_node *sum = must_add("sum", "sum", NODES(product), ATTRS(INTS("axes", 1)));
    uint64_t least = 0;
    for (uint64_t budget = PL_KIB; budget < 8 * PL_MIB; budget += budget / 8) {
        int r = make(sum, budget);
        if (r == 0) {
            assert_true(plan->peak_bytes <= budget);
            least = least ? least : budget;
            continue;
        }
        assert_int_equal(r, PL_EBUDGET);
        assert_int_equal(least, 0); /* more never fits less */
        bool sorting = strstr(error.message, "sort 'sorted': its smallest tiles need ");
        assert_true(sorting ||
                    strstr(error.message, "matmul 'product': the smallest tiling needs "));
    }
    assert_in_range(least, 2 * PL_MIB, 4 * PL_MIB); /* BLAS wants 2 MiB for itself */
}

/* It is not the budget: no larger one would do. */
static void a_product_that_nobody_could_finish_is_called_that(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(1024, INT64_C(1) << 39), false);
    pl_node *b = given("b", PL_SHAPE(INT64_C(1) << 39, 1024), false);
    pl_node *product = must_add("matmul", "product", NODES(a, b), NO_ATTRS);
    assert_int_equal(make(product, 4 * PL_GIB), -EOVERFLOW);
    assert_string_equal(
        error.message,
        "matmul 'product': 5.76e+17 products are too many: at most 2.88e+17 are computed");
}

static void the_same_request_gives_the_same_plan_byte_for_byte(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(512, 512), false);
    pl_node *x = must_add("tanh", "x", NODES(a), NO_ATTRS);
    pl_node *mean = must_add("mean", "mean", NODES(x), ATTRS(INTS("axes", 0)));
    pl_node *z = must_add("sub", "z", NODES(x, mean), NO_ATTRS);
    char *texts[2];
    for (int i = 0; i < 2; i++) {
        must_make(z, 600 * PL_KIB);
        texts[i] = pl_plan_explain(plan, false);
    }
    assert_string_equal(texts[0], texts[1]);
    assert_non_null(strstr(texts[0], "tanh 'x'"));
    assert_non_null(strstr(texts[0], "is used in several places"));
    assert_non_null(strstr(texts[0], "spill"));
    free(texts[0]);
    free(texts[1]);
}

/* Tiles of a step that only moves: no scratch, rows of both sides together, several of them. */
static void check_move(pl_node *moved, int64_t least_tiles, const int64_t *extent)
{
    must_make(moved, PL_GIB);
    const pl_step *step = &plan->steps[plan->n_steps - 1];
    assert_true(step->direct);
    assert_int_equal(step->worker_bytes, 0);
    assert_true(step->n_tiles >= least_tiles);
    for (int i = 0; i < pl_node_shape(moved)->rank; i++)
        assert_int_equal(step->extent[i], extent[i]);
}

static void what_only_moves_needs_no_scratch_and_has_long_rows_on_both_sides(void **state)
{
    (void)state;
    pl_node *square = given("square", PL_SHAPE(4096, 4096), true);
    pl_node *few = given("few", PL_SHAPE(1000000, 5), true);
    pl_node *pixels = given("pixels", PL_SHAPE(4, 600, 700, 3), true);
    pl_node *small = given("small", PL_SHAPE(64, 64), true);
    check_move(must_add("transpose", NULL, NODES(square), NO_ATTRS), 64, (int64_t[]){512, 512});
    check_move(must_add("transpose", NULL, NODES(few), NO_ATTRS), 16, (int64_t[]){5, 52428});
    check_move(must_add("transpose", NULL, NODES(pixels),
                        ATTRS(pl_attr_ints("axes", (int64_t[]){0, 3, 1, 2}, 4))),
               16, (int64_t[]){1, 3, 124, 700});
    check_move(
        must_add("reverse", NULL, NODES(square), ATTRS(pl_attr_ints("axes", (int64_t[]){1}, 1))),
        64, (int64_t[]){64, 4096});
    check_move(must_add("transpose", NULL, NODES(small), NO_ATTRS), 1, (int64_t[]){64, 64});
}

static void what_is_missing_is_told_by_name(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(PL_UNKNOWN));
    pl_node *y = must_add("neg", "y", NODES(x), NO_ATTRS);
    assert_int_equal(make(y, PL_GIB), -EINVAL);
    assert_string_equal(error.message, "placeholder 'x' has no value: feed it");
    pl_node *names = place("names", PL_STRING, PL_SHAPE(3));
    sources[n_sources++] = (pl_plan_source){.node = names, .shape = PL_SHAPE(3)};
    pl_node *lengths = must_add("string_length", "lengths", NODES(names), NO_ATTRS);
    assert_int_equal(make(lengths, PL_GIB), -ENOTSUP);
    assert_string_equal(error.message, "string_length 'lengths': sessions cannot run it");
}

static void a_disk_that_is_too_small_is_refused(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(1024, 1024), false);
    pl_node *sorted = must_add("sort", "sorted", NODES(a), NO_ATTRS);
    const pl_plan_fetch fetch = {sorted, false};
    pl_plan_request request = {.graph = graph,
                               .fetches = &fetch,
                               .n_fetches = 1,
                               .sources = sources,
                               .n_sources = n_sources,
                               .budget_bytes = PL_MIB,
                               .disk = {.bytes = PL_MIB}};
    assert_int_equal(pl_plan_new(&request, &plan, &error), -ENOSPC);
    assert_non_null(strstr(error.message, "sort 'sorted': 4.0 MiB must be spilled"));
    const char *enough = strstr(error.message, " with more, or give at least 4.");
    assert_non_null(enough);
    const char *number = strrchr(enough, 't') + 1;
    double mib = strtod(number, NULL);
    request.budget_bytes = (uint64_t)(mib * PL_MIB);
    assert_int_equal(pl_plan_new(&request, &plan, &error), 0);
    pl_plan_free(PL_TAKE(plan));
    request.budget_bytes -= request.budget_bytes / 16; /* of which little can be less */
    assert_int_equal(pl_plan_new(&request, &plan, &error), -ENOSPC);
    assert_non_null(strstr(error.message, "the disk has room for 1.0 MiB: set PLIMSOLL_SPILL"));
    request.disk = (pl_spill_room){.bytes = PL_MIB,
                                   .bound = PL_SPILL_LIMIT_BOUND,
                                   .limit_bytes = 3 * PL_MIB,
                                   .used_bytes = 2 * PL_MIB};
    assert_int_equal(pl_plan_new(&request, &plan, &error), -ENOSPC);
    assert_null(strstr(error.message, "disk"));
    assert_non_null(strstr(error.message, "must be spilled, and the limit of 3.0 MiB on what is "
                                          "spilled leaves 1.0 MiB: raise the runtime's "
                                          "spill_limit_bytes, or give at least 4."));
}

static uint64_t seed;

static int64_t chance(int64_t below)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

/* Every tile's region is within the bound that was made without its place. */
static void check_bounds(const pl_node *node)
{
    pl_shape shapes[64];
    assert_int_equal(pl_graph_infer(graph, NULL, 0, NULL, shapes, &error), 0);
    const pl_shape *shape = &shapes[node->number];
    for (int trial = 0; trial < 300; trial++) {
        pl_region bound = {.rank = shape->rank}, tile;
        for (int i = 0; i < shape->rank; i++)
            bound.extent[i] = 1 + chance(shape->dims[i]);
        tile = bound;
        for (int i = 0; i < shape->rank; i++) {
            tile.extent[i] = 1 + chance(bound.extent[i]);
            tile.begin[i] = chance(shape->dims[i] - tile.extent[i] + 1);
        }
        for (int k = 0; k < node->n_inputs; k++) {
            pl_region most = pl_bound_of_input(node, shapes, &bound, k), in;
            if (!pl_op_region(node, shapes, &tile, k, &in))
                continue;
            for (int i = 0; i < in.rank; i++)
                if (in.extent[i] > most.extent[i])
                    fail_msg("%s: axis %d of input %d needs %d, and %d was thought the most",
                             node->op->name, i, k, (int)in.extent[i], (int)most.extent[i]);
        }
    }
}

static void no_region_is_larger_than_its_bound(void **state)
{
    (void)state;
    pl_node *x = place("x", PL_F32, PL_SHAPE(6, 10, 14));
    pl_node *y = place("y", PL_F32, PL_SHAPE(10, 1));
    pl_node *index = place("index", PL_I32, PL_SHAPE(3, 5));
    check_bounds(must_add("add", NULL, NODES(x, y), NO_ATTRS));
    check_bounds(must_add("transpose", NULL, NODES(x), NO_ATTRS));
    check_bounds(
        must_add("slice", NULL, NODES(x),
                 ATTRS(INTS("start", 5, 1, 13), INTS("stop", 0, 9, 1), INTS("step", -2, 3, -5))));
    check_bounds(must_add("tile", NULL, NODES(x), ATTRS(INTS("multiples", 2, 3, 2))));
    check_bounds(
        must_add("pad", NULL, NODES(x), ATTRS(INTS("before", 2, 0, 9), INTS("after", 0, 5, 1))));
    check_bounds(must_add("concat", NULL, NODES(x, x), ATTRS(pl_attr_int("axis", 1))));
    check_bounds(must_add("gather", NULL, NODES(x, index), ATTRS(pl_attr_int("axis", 1))));
    check_bounds(must_add("matmul", NULL, NODES(x, x), ATTRS(pl_attr_bool("transpose_b", true))));
    const pl_shape to[] = {PL_SHAPE(60, 14),    PL_SHAPE(6, 140),      PL_SHAPE(840),
                           PL_SHAPE(14, 10, 6), PL_SHAPE(2, 3, 5, 28), PL_SHAPE(1, 6, 10, 1, 14)};
    for (size_t i = 0; i < PL_COUNT_OF(to); i++)
        check_bounds(must_add("reshape", NULL, NODES(x), ATTRS(pl_attr_shape("shape", &to[i]))));
}

/* A step does not grow for ever, and its scratch does not grow with its length. */
static void a_long_chain_needs_no_more_scratch_than_a_short_one(void **state)
{
    (void)state;
    pl_node *x = given("x", PL_SHAPE(1000, 1000), false);
    pl_node *end = x;
    uint64_t scratch[2];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 50; i++)
            end = must_add("tanh", NULL, NODES(end), NO_ATTRS);
        must_make(end, PL_GIB);
        assert_int_equal(plan->n_steps, 1);
        scratch[round] = plan->steps[0].worker_bytes;
    }
    assert_int_equal(scratch[0], scratch[1]);
    for (int i = 0; i < 900; i++)
        end = must_add("tanh", NULL, NODES(end), NO_ATTRS);
    must_make(end, PL_GIB);
    assert_in_range(plan->n_steps, 3, 10);
}

/* Its input is read where it lies, and counts for nothing. */
static void a_gather_of_long_rows_takes_several_at_a_time(void **state)
{
    (void)state;
    pl_node *x = given("x", PL_SHAPE(4096, 4096), true);
    pl_node *places = place("places", PL_I64, PL_SHAPE(4096));
    sources[n_sources++] =
        (pl_plan_source){.node = places, .shape = PL_SHAPE(4096), .resident = true};
    pl_node *rows = must_add("gather", "rows", NODES(x, places), NO_ATTRS);
    must_make(rows, PL_GIB);
    assert_true(plan->steps[0].worker_bytes < 64 * PL_KIB);
    assert_true(plan->steps[0].extent[0] > 1);
    assert_int_equal(plan->steps[0].extent[1], 4096);
}

static void columns_of_a_softmax_are_taken_several_lines_at_a_time(void **state)
{
    (void)state;
    pl_node *x = given("x", PL_SHAPE(4096, 4096), true);
    pl_node *shares = must_add("softmax", "shares", NODES(x), ATTRS(pl_attr_int("axis", 0)));
    must_make(shares, PL_GIB);
    assert_int_equal(plan->steps[0].extent[0], 4096);
    assert_in_range(plan->steps[0].extent[1], 32, 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAN_CASE(a_chain_is_one_step),
        PLAN_CASE(what_is_used_twice_is_a_value_unless_it_is_cheap),
        PLAN_CASE(the_value_that_is_used_last_goes_to_disk_first),
        PLAN_CASE(no_plan_passes_its_budget_and_what_is_refused_says_what_would_do),
        PLAN_CASE(a_product_that_nobody_could_finish_is_called_that),
        PLAN_CASE(the_same_request_gives_the_same_plan_byte_for_byte),
        PLAN_CASE(what_only_moves_needs_no_scratch_and_has_long_rows_on_both_sides),
        PLAN_CASE(what_is_missing_is_told_by_name),
        PLAN_CASE(a_disk_that_is_too_small_is_refused),
        PLAN_CASE(no_region_is_larger_than_its_bound),
        PLAN_CASE(a_long_chain_needs_no_more_scratch_than_a_short_one),
        PLAN_CASE(a_gather_of_long_rows_takes_several_at_a_time),
        PLAN_CASE(columns_of_a_softmax_are_taken_several_lines_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
