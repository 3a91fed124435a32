/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for devices, which are descriptions here: what is computed where, and in which tiles. */
#include "graph_fixture.h"

#include <stdio.h>

#include "plan/device_work.h"
#include "plan/plan.h"

enum { SOURCES = 8 };

static pl_plan_source sources[SOURCES];
static int n_sources;
static pl_plan *plan;
static uint64_t budget_bytes, largest_bytes;
static uint64_t host_bytes;
static int64_t rows_that_work; /* of a product; with fewer, workspace() fails */
static bool strict;

static int place_setup(void **state)
{
    n_sources = 0;
    budget_bytes = largest_bytes = PL_GIB;
    strict = false;
    rows_that_work = 0;
    host_bytes = PL_GIB;
    return setup(state);
}

static int place_teardown(void **state)
{
    pl_plan_free(PL_TAKE(plan));
    return teardown(state);
}

#define PLACE_CASE(function) cmocka_unit_test_setup_teardown(function, place_setup, place_teardown)

static pl_node *given(const char *name, pl_shape shape)
{
    pl_node *node = place(name, PL_F32, shape);
    sources[n_sources++] = (pl_plan_source){.node = node, .shape = shape, .resident = true};
    return node;
}

static bool takes(const void *context, const pl_node *node)
{
    (void)context;
    return node->dtype == PL_F32 || node->dtype == PL_BOOL;
}

/* What is not a multiple of 8 rows has to be padded. */
static int workspace(const void *context, const pl_node *node, int64_t m, int64_t n, int64_t k,
                     uint64_t *ret_bytes, pl_error *reterr)
{
    (void)context, (void)node;
    if (m < rows_that_work)
        return pl_error_set(reterr, -EIO, "/GPU:0: CLBlast's workspace: it is broken");
    *ret_bytes = m % 8 == 0 ? 0 : (uint64_t)(4 * m * (n + k));
    return 0;
}

static int make(pl_node *fetch)
{
    const pl_plan_device devices[] = {
        {"/GPU:0", budget_bytes, largest_bytes, false, takes, workspace, NULL},
        {"/GPU:1", budget_bytes, largest_bytes, true, takes, workspace, NULL}};
    const pl_plan_fetch fetches[] = {{fetch, false}};
    const pl_plan_request request = {.graph = graph,
                                     .fetches = fetches,
                                     .n_fetches = 1,
                                     .sources = sources,
                                     .n_sources = n_sources,
                                     .budget_bytes = host_bytes,
                                     .disk = {.bytes = PL_GIB},
                                     .devices = devices,
                                     .n_devices = 2,
                                     .strict = strict,
                                     .n_threads = 2};
    pl_plan_free(PL_TAKE(plan));
    error.message[0] = '\0';
    return pl_plan_new(&request, &plan, &error);
}

/* The steps' nodes and devices, as "a/0 b/2"; 0 is the CPU. */
static const char *steps_of(pl_node *fetch)
{
    static char text[256];
    text[0] = '\0';
    if (make(fetch) < 0)
        fail_msg("%s", error.message);
    for (int i = 0; i < plan->n_steps; i++) {
        const pl_step *step = &plan->steps[i];
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s/%d", i > 0 ? " " : "",
                 step->node->name, step->work ? step->work->device + 1 : 0);
        assert_int_equal(step->work != NULL, step->kind == PL_STEP_DEVICE);
    }
    return text;
}

static void on(const char *device)
{
    pl_graph_pop_device(graph);
    assert_int_equal(pl_graph_push_device(graph, device, &error), 0);
}

static void a_step_is_of_one_device_and_one_shape(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(100, 10)), *row = given("row", PL_SHAPE(10));
    on("/GPU:0");
    pl_node *b = must_add("exp", "b", NODES(a), NO_ATTRS);
    pl_node *c = must_add("add", "c", NODES(b, row), NO_ATTRS);
    assert_string_equal(steps_of(c), "c/1");
    assert_int_equal(plan->steps[0].work->n_inputs, 2);
    pl_node *small = must_add("exp", "small", NODES(row), NO_ATTRS);
    pl_node *d = must_add("mul", "d", NODES(c, small), NO_ATTRS);
    assert_string_equal(steps_of(d), "small/1 d/1");
    on("/GPU:1");
    pl_node *e = must_add("neg", "e", NODES(d), NO_ATTRS);
    on(NULL);
    pl_node *f = must_add("abs", "f", NODES(e), NO_ATTRS);
    pl_node *g = must_add("sum", "g", NODES(f), NO_ATTRS);
    assert_string_equal(steps_of(g), "small/1 d/1 e/2 g/0");
    on("/GPU:0");
    pl_node *turned = must_add("transpose", "turned", NODES(d), NO_ATTRS);
    pl_node *h = must_add("neg", "h", NODES(turned), NO_ATTRS);
    assert_string_equal(steps_of(h), "small/1 d/1 turned/0 h/1");
}

static void a_number_is_part_of_the_kernel(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(10)), *two;
    on("/GPU:0");
    assert_int_equal(pl_graph_fill(graph, "two", PL_F32, &PL_SHAPE(), 2, &two, &error), 0);
    pl_node *b = must_add("mul", "b", NODES(a, two), NO_ATTRS);
    assert_string_equal(steps_of(b), "b/1");
    assert_int_equal(plan->steps[0].work->n_inputs, 1);
    assert_int_equal(plan->steps[0].work->n_terms, 3);
}

/* However its nodes are wanted, a kernel has no more than it can take. */
static void a_step_never_has_more_nodes_than_a_kernel(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(10));
    on("/GPU:0");
    pl_node *last = a, *cheap[60];
    for (int i = 0; i < 60; i++)
        cheap[i] = must_add("neg", NULL, NODES(a), NO_ATTRS);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 60; i++)
            last = must_add(
                "where", NULL,
                NODES(must_add("less", NULL, NODES(last, cheap[i]), NO_ATTRS), cheap[i], last),
                NO_ATTRS);
    assert_int_equal(make(last), 0);
    for (int i = 0; i < plan->n_steps; i++) {
        int n_ops = 0;
        for (int t = 0; plan->steps[i].work && t < plan->steps[i].work->n_terms; t++)
            n_ops += plan->steps[i].work->terms[t].input < 0;
        assert_true(n_ops <= PL_DEVICE_NODES_MAX);
    }
}

static void what_falls_back_is_counted_by_reason(void **state)
{
    (void)state;
    char text[256];
    pl_node *a = given("a", PL_SHAPE(10));
    on("/GPU:5");
    pl_node *b = must_add("exp", "b", NODES(a), NO_ATTRS);
    pl_node *c = must_add("neg", "c", NODES(b), NO_ATTRS);
    on("/GPU:0");
    pl_node *sum = must_add("sum", "sum", NODES(c), ATTRS(pl_attr_bool("keepdims", true)));
    pl_node *again = must_add("sum", "again", NODES(sum), NO_ATTRS);
    must_add("sort", "unused", NODES(a), NO_ATTRS);
    assert_string_equal(steps_of(again), "sum/0 again/0");
    assert_int_equal(plan->n_fallbacks, 2);
    assert_int_equal(plan->fallbacks[0].n_nodes, 2);
    pl_fallback_format(&plan->fallbacks[0], text, sizeof text);
    assert_string_equal(text, "there is no /GPU:5: what is placed on it is computed on /CPU:0");
    assert_int_equal(plan->fallbacks[1].n_nodes, 2);
    pl_fallback_format(&plan->fallbacks[1], text, sizeof text);
    assert_string_equal(text, "/GPU:0 cannot run sum of float32: it is computed on /CPU:0");
    strict = true;
    assert_int_equal(make(again), -ENODEV);
    assert_string_equal(error.message, "exp 'b' is placed on /GPU:5, which is not there: there are "
                                       "/CPU:0, /GPU:0, /GPU:1; or allow soft placement");
}

static void tiles_fit_the_device(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(1000, 1000));
    on("/GPU:0");
    pl_node *b = must_add("exp", "b", NODES(a), NO_ATTRS);
    assert_string_equal(steps_of(b), "b/1");
    assert_int_equal(plan->steps[0].n_tiles, 1);
    budget_bytes = PL_MIB;
    assert_string_equal(steps_of(b), "b/1");
    assert_true(plan->steps[0].n_tiles >= 8);
    assert_true(plan->steps[0].work->device_bytes <= PL_MIB);
    budget_bytes = PL_GIB;
    largest_bytes = PL_MIB; /* of one buffer */
    assert_string_equal(steps_of(b), "b/1");
    assert_true(plan->steps[0].work->buffer_bytes[0] <= PL_MIB);
    budget_bytes = 255;
    strict = true;
    assert_int_equal(make(b), PL_EBUDGET);
    assert_string_equal(error.message,
                        "exp 'b': its smallest tile needs 256 B on /GPU:0, whose budget is 255 B: "
                        "give at least 256 B, place it on /CPU:0, or allow soft placement");
}

static void what_a_device_has_no_room_for_is_computed_on_the_cpu(void **state)
{
    (void)state;
    char text[256];
    pl_node *a = given("a", PL_SHAPE(64, 64));
    on("/GPU:0");
    pl_node *small = must_add("exp", "small", NODES(a), NO_ATTRS);
    pl_node *large = must_add("matmul", "large", NODES(small, small), NO_ATTRS);
    pl_node *again = must_add("matmul", "again", NODES(large, a), NO_ATTRS);
    pl_node *last = must_add("neg", "last", NODES(again), NO_ATTRS);
    budget_bytes = 600; /* a row and a column are 512 */
    assert_string_equal(steps_of(last), "small/1 large/0 again/0 last/1");
    assert_int_equal(plan->n_fallbacks, 1);
    assert_int_equal(plan->fallbacks[0].n_nodes, 2);
    assert_ptr_equal(plan->fallbacks[0].node, large);
    assert_true(plan->fallbacks[0].needed_bytes > 600);
    pl_fallback_format(&plan->fallbacks[0], text, sizeof text);
    assert_string_equal(text, "/GPU:0, with a budget of 600 B, has no room for matmul of float32: "
                              "it is computed on /CPU:0");
    char *table = pl_plan_explain(plan, false);
    assert_non_null(strstr(table, "('large' and others, which needs at least "));
    free(table);
    budget_bytes = 200; /* not even for an element in, and one out */
    assert_string_equal(steps_of(last), "small/0 large/0 again/0 last/0");
    assert_int_equal(plan->n_fallbacks, 3);
}

/* Where values do not fit, steps are put in another order; on the devices as before, or there would
 * be more steps than the order has. */
static void what_fell_back_does_so_in_another_order(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(512, 512)), *wide[6], *total = NULL;
    for (int i = 0; i < 6; i++)
        wide[i] = must_add("sort", NULL, NODES(a), NO_ATTRS);
    for (int i = 0; i < 6; i++) {
        on("/GPU:0");
        pl_node *small = must_add("exp", NULL, NODES(wide[i]), NO_ATTRS);
        on(NULL);
        pl_node *sum = must_add("sum", NULL, NODES(small), NO_ATTRS);
        total = total ? must_add("add", NULL, NODES(total, sum), NO_ATTRS) : sum;
    }
    budget_bytes = 100;
    assert_int_equal(make(total), 0);
    assert_ptr_equal(plan->steps[1].node, wide[1]);
    assert_int_equal(plan->n_steps, 6 + 6 + 1);
    host_bytes = 5 * PL_MIB; /* the values are 7 */
    assert_int_equal(make(total), 0);
    assert_string_equal(plan->steps[1].node->op->name, "sum");
    assert_int_equal(plan->disk_bytes, 0);
    assert_int_equal(plan->n_fallbacks, 1);
    assert_int_equal(plan->fallbacks[0].n_nodes, 6);
}

/* Tiles at the end have other sizes, and may need more. */
static void a_products_workspace_is_the_largest_of_all_its_tiles(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(1000, 64)), *b = given("b", PL_SHAPE(64, 64));
    pl_node *tall = given("tall", PL_SHAPE(4100, 64));
    on("/GPU:0");
    pl_node *even = must_add("matmul", "even", NODES(a, b), NO_ATTRS);
    assert_string_equal(steps_of(even), "even/1");
    assert_int_equal(plan->steps[0].work->workspace_bytes, 0);
    pl_node *uneven = must_add("matmul", "uneven", NODES(tall, b), NO_ATTRS);
    assert_string_equal(steps_of(uneven), "uneven/1");
    const pl_step *step = &plan->steps[0];
    assert_int_equal(step->extent[0], 4096); /* and 4 */
    assert_int_equal(step->work->workspace_bytes, 4 * 4 * (64 + 64));
    /* The device's own, or the host's as well. */
    uint64_t elsewhere = step->worker_bytes, more = step->work->workspace_bytes;
    on("/GPU:1");
    pl_node *unified = must_add("matmul", "unified", NODES(tall, b), NO_ATTRS);
    assert_string_equal(steps_of(unified), "unified/2");
    assert_int_equal(plan->steps[0].worker_bytes, elsewhere + more);
}

static void what_a_device_says_when_smaller_tiles_are_tried_is_told(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(512, 512)), *b = given("b", PL_SHAPE(512, 512));
    on("/GPU:1");
    pl_node *product = must_add("matmul", "product", NODES(a, b), NO_ATTRS);
    assert_string_equal(steps_of(product), "product/2");
    rows_that_work = 512;
    host_bytes = 4 * PL_MIB; /* the values are 3 of it */
    assert_int_equal(make(product), -EIO);
    assert_string_equal(error.message,
                        "matmul 'product': /GPU:0: CLBlast's workspace: it is broken");
}

/* Two chains of other shapes, on /GPU:0 or /GPU:1: the row is made, and then used. */
static pl_node *row_and_sum(const char *device)
{
    pl_node *a = given("a", PL_SHAPE(1000, 1000)), *b = given("b", PL_SHAPE(1000));
    on(device);
    pl_node *row = must_add("exp", "row", NODES(b), NO_ATTRS);
    return must_add("add", "sum", NODES(a, row), NO_ATTRS);
}

static const pl_plan_value *value_at(int s)
{
    return &plan->values[plan->steps[s].value];
}

static void what_the_next_step_reads_stays_on_the_device(void **state)
{
    (void)state;
    pl_node *sum = row_and_sum("/GPU:0");
    assert_string_equal(steps_of(sum), "row/1 sum/1");
    const pl_device_work *first = plan->steps[0].work, *second = plan->steps[1].work;
    assert_int_equal(value_at(0)->place, PL_PLACE_DEVICE);
    assert_int_equal(value_at(1)->place, PL_PLACE_MEMORY); /* is asked for */
    assert_int_equal(first->device_bytes, 4096);           /* `b`; the result is the value */
    assert_int_equal(first->stay_bytes, 4096);
    assert_int_equal(second->stay_bytes, 4096);
    assert_int_equal(second->device_bytes, 2 * pl_staging_bytes(4000000));
    assert_int_equal(first->claim_bytes, pl_device_step_bytes(&plan->steps[1]));
    assert_false(first->lets_go);
    assert_int_equal(second->claim_bytes, 0);
    assert_true(second->lets_go);
    char *table = pl_plan_explain(plan, false);
    assert_non_null(strstr(table, " device "));
    assert_non_null(strstr(table, "there, where it stays\n"));
    free(table);
}

/* Where its memory is the host's, what stays is counted there; else it takes nothing there. */
static void what_stays_takes_memory_of_the_host_if_that_is_the_devices(void **state)
{
    (void)state;
    uint64_t peaks[2];
    for (int i = 0; i < 2; i++) {
        pl_node *x = given(i ? "x" : "y", PL_SHAPE(1000, 1000));
        on(i ? "/GPU:1" : "/GPU:0");
        pl_node *square = must_add("matmul", NULL, NODES(x, x), NO_ATTRS);
        pl_node *last = must_add("neg", NULL, NODES(square), NO_ATTRS);
        assert_int_equal(make(last), 0);
        assert_int_equal(value_at(0)->place, PL_PLACE_DEVICE);
        peaks[i] = plan->steps[0].peak_bytes;
    }
    assert_true(peaks[1] >= peaks[0] + 4000000 && peaks[1] < peaks[0] + 4100000);
}

static void what_stays_makes_no_tile_smaller(void **state)
{
    (void)state;
    pl_node *sum = row_and_sum("/GPU:0");
    budget_bytes = 2 * pl_staging_bytes(4000000) + 4096;
    assert_string_equal(steps_of(sum), "row/1 sum/1");
    assert_int_equal(value_at(0)->place, PL_PLACE_DEVICE);
    budget_bytes--;
    assert_string_equal(steps_of(sum), "row/1 sum/1");
    assert_int_equal(value_at(0)->place, PL_PLACE_MEMORY);
    assert_int_equal(plan->steps[0].work->stay_bytes, 0);
    assert_int_equal(plan->steps[0].work->claim_bytes, plan->steps[0].work->device_bytes);
    assert_true(plan->steps[0].work->lets_go);
    budget_bytes = largest_bytes = PL_GIB;
    largest_bytes = 4000; /* of one buffer */
    assert_string_equal(steps_of(sum), "row/1 sum/1");
    assert_int_equal(value_at(0)->place, PL_PLACE_MEMORY);
}

static void what_stays_is_on_the_host_again_if_that_needs_smaller_tiles(void **state)
{
    (void)state;
    pl_node *sum = row_and_sum("/GPU:1");
    host_bytes = 15 * PL_MIB; /* of which the values are 8, and a whole tile 8 */
    assert_string_equal(steps_of(sum), "row/2 sum/2");
    assert_int_equal(value_at(0)->place, PL_PLACE_MEMORY);
    assert_int_equal(plan->steps[1].work->stay_bytes, 0);
    assert_true(plan->steps[1].n_tiles > 1);
    assert_int_equal(plan->disk_bytes, 0);
    host_bytes = 17 * PL_MIB;
    assert_string_equal(steps_of(sum), "row/2 sum/2");
    assert_int_equal(value_at(0)->place, PL_PLACE_DEVICE);
    host_bytes = 1000;
    assert_int_equal(make(sum), PL_EBUDGET);
}

static void only_what_one_device_makes_and_reads_at_once_stays(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(64, 64)), *pairs = given("pairs", PL_SHAPE(2, 64, 64));
    on("/GPU:0");
    pl_node *one = must_add("matmul", "one", NODES(a, a), NO_ATTRS);
    on("/GPU:1");
    pl_node *two = must_add("matmul", "two", NODES(one, a), NO_ATTRS);
    pl_node *three = must_add("matmul", "three", NODES(two, two), NO_ATTRS);
    pl_node *batch = must_add("matmul", "batch", NODES(pairs, three), NO_ATTRS);
    on(NULL);
    pl_node *sorted = must_add("sort", "sorted", NODES(three), NO_ATTRS);
    on("/GPU:1");
    pl_node *both = must_add("add", "both", NODES(three, sorted), NO_ATTRS);
    assert_string_equal(steps_of(both), "one/1 two/2 three/2 sorted/0 both/2");
    assert_int_equal(value_at(0)->place, PL_PLACE_MEMORY); /* another device reads it */
    assert_int_equal(value_at(1)->place, PL_PLACE_DEVICE);
    assert_int_equal(value_at(2)->place, PL_PLACE_MEMORY); /* the CPU reads it */
    assert_string_equal(steps_of(batch), "one/1 two/2 three/2 batch/2");
    assert_int_equal(value_at(2)->place, PL_PLACE_MEMORY); /* pair by pair */
}

static void both_sides_of_a_product_may_be_the_same(void **state)
{
    (void)state;
    pl_node *a = given("a", PL_SHAPE(16, 16));
    on("/GPU:0");
    pl_node *square = must_add("matmul", "square", NODES(a, a), NO_ATTRS);
    assert_string_equal(steps_of(square), "square/1");
    assert_int_equal(plan->steps[0].work->n_inputs, 2);
    assert_int_equal(plan->steps[0].n_uses, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_CASE(a_step_is_of_one_device_and_one_shape),
        PLACE_CASE(a_number_is_part_of_the_kernel),
        PLACE_CASE(a_step_never_has_more_nodes_than_a_kernel),
        PLACE_CASE(what_falls_back_is_counted_by_reason),
        PLACE_CASE(tiles_fit_the_device),
        PLACE_CASE(what_a_device_has_no_room_for_is_computed_on_the_cpu),
        PLACE_CASE(what_fell_back_does_so_in_another_order),
        PLACE_CASE(a_products_workspace_is_the_largest_of_all_its_tiles),
        PLACE_CASE(what_a_device_says_when_smaller_tiles_are_tried_is_told),
        PLACE_CASE(what_the_next_step_reads_stays_on_the_device),
        PLACE_CASE(what_stays_takes_memory_of_the_host_if_that_is_the_devices),
        PLACE_CASE(what_stays_makes_no_tile_smaller),
        PLACE_CASE(what_stays_is_on_the_host_again_if_that_needs_smaller_tiles),
        PLACE_CASE(only_what_one_device_makes_and_reads_at_once_stays),
        PLACE_CASE(both_sides_of_a_product_may_be_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
