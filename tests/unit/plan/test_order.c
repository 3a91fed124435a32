/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of steps: another one is taken where it spills less, and only there. */
#include "session_fixture.h"

#include "plan/order.h"

enum { BRANCHES = 8, N = 128 * 1024 /* elements of 8 bytes: 1 MiB */ };

static pl_plan *plan;

static int begin(void **state)
{
    return begin_with(state, 64 * PL_MIB, 2);
}

static int end(void **state)
{
    pl_plan_free(PL_TAKE(plan));
    return finish(state);
}

#define ORDER_CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

static int make(pl_node *const *nodes, int n, uint64_t budget_bytes, uint64_t disk_bytes)
{
    pl_plan_fetch fetches[BRANCHES] = {{0}};
    for (int i = 0; i < n; i++)
        fetches[i].node = nodes[i];
    const pl_plan_request request = {.graph = graph,
                                     .fetches = fetches,
                                     .n_fetches = n,
                                     .budget_bytes = budget_bytes,
                                     .disk = {.bytes = disk_bytes},
                                     .n_threads = 2};
    pl_plan_free(PL_TAKE(plan));
    return pl_plan_new(&request, &plan, &error);
}

static void must_make(pl_node *node, uint64_t budget_bytes)
{
    if (make(&node, 1, budget_bytes, PL_GIB) < 0)
        fail_msg("%s", error.message);
}

static const char *steps(void)
{
    static char text[512];
    text[0] = '\0';
    for (int i = 0; i < plan->n_steps; i++) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, plan->steps[i].node->name);
    }
    return text;
}

/* A value of so many MiB that is computed as a whole. */
static pl_node *whole(const char *name, int64_t mib)
{
    pl_node *x;
    const pl_shape shape = PL_SHAPE(mib, N);
    assert_int_equal(pl_graph_fill(graph, NULL, PL_F64, &shape, 1, &x, &error), 0);
    return must_add("cumsum", name, NODES(x), ATTRS(pl_attr_int("axis", 0)));
}

/* All wide values first, then what becomes of each: as people write it, row by row. */
static pl_node *broad(void)
{
    pl_node *wide[BRANCHES], *sum = NULL;
    char name[8];
    for (int i = 0; i < BRANCHES; i++) {
        snprintf(name, sizeof name, "w%d", i);
        wide[i] = whole(name, 1);
    }
    for (int i = 0; i < BRANCHES; i++) {
        snprintf(name, sizeof name, "s%d", i);
        pl_node *s = must_add("sum", name, NODES(wide[i]), NO_ATTRS);
        sum = sum ? must_add("add", NULL, NODES(sum, s), NO_ATTRS) : s;
    }
    return sum;
}

static void what_fits_is_run_as_it_was_made(void **state)
{
    (void)state;
    must_make(broad(), 32 * PL_MIB);
    assert_string_equal(steps(), "w0 w1 w2 w3 w4 w5 w6 w7 s0 s1 s2 s3 s4 s5 s6 s7 add_6");
    assert_int_equal(plan->disk_bytes, 0);
}

static void branches_are_finished_one_by_one_if_that_saves_a_spill(void **state)
{
    (void)state;
    pl_node *sum = broad();
    must_make(sum, 4 * PL_MIB);
    assert_string_equal(steps(), "w0 s0 w1 s1 w2 s2 w3 s3 w4 s4 w5 s5 w6 s6 w7 s7 add_6");
    assert_int_equal(plan->disk_bytes, 0);
    assert_true(plan->peak_bytes <= 4 * PL_MIB);
    for (int i = 0; i < plan->n_steps; i++)
        assert_int_equal(plan->values[plan->steps[i].value].born, i);
}

static void what_needs_most_is_made_first(void **state)
{
    (void)state;
    pl_node *light = whole("light", 1);
    pl_node *heavy = must_add("sum", "heavy", NODES(whole("heap", 6)), ATTRS(INTS("axes", 0)));
    pl_node *row =
        must_add("reshape", "row", NODES(light), ATTRS(pl_attr_shape("shape", &PL_SHAPE(N))));
    pl_node *both = must_add("add", "both", NODES(row, heavy), NO_ATTRS);
    must_make(both, 32 * PL_MIB);
    assert_string_equal(steps(), "light heap heavy both");
    must_make(both, 7 * PL_MIB + 768 * PL_KIB);
    assert_string_equal(steps(), "heap heavy light both");
    assert_int_equal(plan->disk_bytes, 0);
}

static void an_order_can_save_a_plan_that_would_be_refused(void **state)
{
    (void)state;
    pl_node *sum = broad();
    assert_int_equal(make(&sum, 1, 4 * PL_MIB, 0), 0); /* with no disk at all */
    assert_int_equal(plan->disk_bytes, 0);
}

static void an_order_that_is_no_better_is_not_taken(void **state)
{
    (void)state;
    pl_node *kept[4];
    char name[8];
    for (int i = 0; i < 4; i++) { /* results must all be there in the end */
        snprintf(name, sizeof name, "k%d", i);
        kept[i] = whole(name, 1);
    }
    assert_int_equal(make(kept, 4, 2 * PL_MIB + 512 * PL_KIB, PL_GIB), 0);
    assert_string_equal(steps(), "k0 k1 k2 k3");
    assert_true(plan->disk_bytes > 0);
}

/* Every step once, after all that it uses. */
static void check_order(const int *nodes)
{
    bool done[64] = {false};
    for (int i = 0; i < plan->n_steps; i++) {
        const pl_step *step = &plan->steps[plan->values[plan->value_of[nodes[i]]].born];
        for (int k = 0; k < step->n_uses; k++)
            assert_true(done[step->uses[k]] || plan->values[step->uses[k]].from_outside);
        assert_false(done[step->value]);
        done[step->value] = true;
    }
}

static void orders_are_orders_whatever_is_shared(void **state)
{
    (void)state;
    pl_node *a = whole("a", 1), *b = must_add("sort", "b", NODES(a), NO_ATTRS);
    pl_node *c =
        must_add("sort", "c", NODES(must_add("add", NULL, NODES(a, b), NO_ATTRS)), NO_ATTRS);
    pl_node *d =
        must_add("sort", "d", NODES(must_add("mul", NULL, NODES(b, c), NO_ATTRS)), NO_ATTRS);
    pl_node *e =
        must_add("sum", "e", NODES(must_add("mul", NULL, NODES(a, d), NO_ATTRS)), NO_ATTRS);
    pl_node *both[] = {c, e};
    assert_int_equal(make(both, 2, PL_GIB, PL_GIB), 0);
    int nodes[64];
    for (int kind = 0; kind < PL_N_ORDERS; kind++) {
        assert_int_equal(pl_plan_order(plan, (pl_order_kind)kind, nodes), 0);
        check_order(nodes);
    }
    assert_int_equal(pl_plan_order_bytes(plan, NULL), 4 * PL_MIB);
}

/* The same numbers, however it is run. */
static void results_are_the_same_in_every_order(void **state)
{
    (void)state;
    pl_node *sum = broad();
    const pl_run_options little = {.budget_bytes = 3 * PL_MIB};
    int r;
    pl_tensor *ample = must_run(sum), *tight = run_for(sum, &little, &r);
    assert_int_equal(r, 0);
    double a, b;
    assert_int_equal(pl_tensor_read(ample, NULL, NULL, &a, &error), 0);
    assert_int_equal(pl_tensor_read(tight, NULL, NULL, &b, &error), 0);
    assert_true(a == b && a == (double)BRANCHES * N);
    pl_tensor_unref(ample);
    pl_tensor_unref(tight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ORDER_CASE(what_fits_is_run_as_it_was_made),
        ORDER_CASE(branches_are_finished_one_by_one_if_that_saves_a_spill),
        ORDER_CASE(what_needs_most_is_made_first),
        ORDER_CASE(an_order_can_save_a_plan_that_would_be_refused),
        ORDER_CASE(an_order_that_is_no_better_is_not_taken),
        ORDER_CASE(orders_are_orders_whatever_is_shared),
        ORDER_CASE(results_are_the_same_in_every_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
