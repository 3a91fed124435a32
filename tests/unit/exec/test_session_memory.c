/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors, constants, variables and results that nobody computes with leave memory when room is
 * needed, least recently used first, and come back on use: more of them than memory holds. */
#include "session_fixture.h"

#include "plimsoll/live.h"
#include "tensor/runtime.h"

enum { SMALL = 64 /* elements: 512 bytes */, N_SMALL = 10000 };

#define CAP (2 * PL_MIB)

static int begin(void **state)
{
    return begin_with(state, CAP, 2);
}

static int end(void **state)
{
    assert_int_equal(pl_pool_check(runtime->pool, &error), 0);
    assert_true(pl_runtime_peak_bytes(runtime) <= CAP);
    return finish(state);
}

#define MEMORY_CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

static pl_pool_state state_now(void)
{
    pl_pool_state now;
    pl_pool_state_read(runtime->pool, &now);
    return now;
}

static void assert_moved_out(uint64_t bytes)
{
    assert_true(state_now().out_bytes >= bytes);
}

static void ten_thousand_small_tensors_leave_and_come_back(void **state)
{
    (void)state;
    pl_tensor **tensors = calloc(N_SMALL, sizeof(pl_tensor *));
    for (int i = 0; i < N_SMALL; i++)
        tensors[i] = tensor_named("small", i, SMALL);
    assert_moved_out(N_SMALL * SMALL * 8 - CAP);
    pl_node *x = place("x", PL_F64, PL_SHAPE(SMALL));
    pl_node *y = must_add("neg", "y", NODES(x), NO_ATTRS);
    for (int i = 0; i < N_SMALL; i += 7) { /* fed to a run */
        pl_tensor *result;
        const pl_feed feed = {x, tensors[i]};
        const pl_fetch fetch = {y, NULL};
        if (pl_session_run(session, &fetch, 1, &feed, 1, NULL, &result, &error) < 0)
            fail_msg("%s", error.message);
        assert_true(element_of(result, 5) == -(i + 5));
        pl_tensor_unref(result);
    }
    for (int i = N_SMALL - 1; i >= 0; i--) { /* brought back whole */
        const void *data;
        int64_t strides[PL_RANK_MAX];
        assert_int_equal(pl_tensor_pin(tensors[i], &data, strides, &error), 0);
        assert_true(((const double *)data)[SMALL - 1] == i + SMALL - 1);
        pl_tensor_unpin(tensors[i]);
        pl_tensor_unref(tensors[i]);
    }
    assert_true(state_now().n_in > 10);
    free(tensors);
}

static void constants_that_do_not_fit_together_are_computed_with(void **state)
{
    (void)state;
    pl_node *sum = NULL;
    for (int i = 0; i < N_SMALL; i++) {
        pl_node *c = constant_of("c", i, SMALL);
        sum = sum ? must_add("add", NULL, NODES(sum, c), NO_ATTRS) : c;
    }
    assert_moved_out(N_SMALL * SMALL * 8 - CAP);
    for (int i = 0; i < 2; i++) {
        pl_tensor *result = must_run(sum);
        assert_true(element_of(result, 3) == (double)N_SMALL * (N_SMALL - 1) / 2 + 3.0 * N_SMALL);
        pl_tensor_unref(result);
    }
}

static void variables_that_do_not_fit_together_are_assigned_to(void **state)
{
    (void)state;
    enum { N_VARIABLES = 40, LARGE = 16 * 1024 /* 128 KiB: 5 MiB in all */ };
    pl_node *adds[N_VARIABLES], *variables[N_VARIABLES], *one;
    const pl_shape shape = PL_SHAPE(LARGE);
    assert_int_equal(pl_graph_fill(graph, "one", PL_F64, &shape, 1, &one, &error), 0);
    for (int i = 0; i < N_VARIABLES; i++) {
        variables[i] = variable_of("v", i, LARGE);
        adds[i] = must_add("assign_add", NULL, NODES(variables[i], one), NO_ATTRS);
    }
    for (int round = 1; round <= 3; round++)
        for (int i = 0; i < N_VARIABLES; i++) {
            pl_tensor *result = must_run(adds[i]);
            assert_true(element_of(result, LARGE - 1) == i + LARGE - 1 + round);
            pl_tensor_unref(result);
        }
    assert_moved_out(N_VARIABLES * LARGE * 8);
    for (int i = 0; i < N_VARIABLES; i++) {
        pl_tensor *value;
        assert_int_equal(pl_session_get(session, variables[i], &value, &error), 0);
        assert_true(element_of(value, 0) == i + 3);
        pl_tensor_unref(value);
    }
}

static void results_that_are_kept_make_room_for_new_ones(void **state)
{
    (void)state;
    enum { N_RESULTS = 100 };
    pl_tensor *results[N_RESULTS];
    pl_node *x = place("x", PL_F64, PL_SHAPE(1));
    const pl_shape shape = PL_SHAPE(8 * 1024);
    pl_node *row = must_add("broadcast_to", "row", NODES(x), ATTRS(pl_attr_shape("shape", &shape)));
    for (int i = 0; i < N_RESULTS; i++) {
        pl_tensor *fed = tensor_named("fed", i, 1);
        const pl_feed feed = {x, fed};
        const pl_fetch fetch = {row, NULL};
        if (pl_session_run(session, &fetch, 1, &feed, 1, NULL, &results[i], &error) < 0)
            fail_msg("%s", error.message);
        pl_tensor_unref(fed);
    }
    assert_moved_out(N_RESULTS * 8 * 1024 * 8 - CAP);
    for (int i = 0; i < N_RESULTS; i++) {
        assert_true(element_of(results[i], 8191) == i);
        pl_tensor_unref(results[i]);
    }
}

static pl_live_where where_is(const char *name)
{
    pl_live *live;
    pl_live_where where = PL_LIVE_NOWHERE;
    assert_int_equal(pl_live_new(runtime, NULL, &live, &error), 0);
    for (int i = 0; i < pl_live_n_entries(live); i++)
        if (strcmp(pl_live_entry_at(live, i)->name, name) == 0)
            where = pl_live_entry_at(live, i)->where;
    pl_live_free(live);
    return where;
}

static void what_was_used_last_stays(void **state)
{
    (void)state;
    enum { LARGE = 32 * 1024 /* 256 KiB: seven fit */ };
    pl_tensor *used = tensor_named("used", 1, LARGE), *idle = tensor_named("idle", 2, LARGE);
    pl_tensor *others[20];
    for (int i = 0; i < 20; i++) {
        others[i] = tensor_named("other", i, LARGE);
        const void *data;
        int64_t strides[PL_RANK_MAX];
        assert_int_equal(pl_tensor_pin(used, &data, strides, &error), 0);
        pl_tensor_unpin(used);
    }
    assert_int_equal(where_is("used"), PL_LIVE_MEMORY);
    assert_int_equal(where_is("idle"), PL_LIVE_SPILL);
    assert_true(element_of(idle, 1) == 3);
    for (int i = 0; i < 20; i++)
        pl_tensor_unref(others[i]);
    pl_tensor_unref(used);
    pl_tensor_unref(idle);
}

/* What is in use stays, what is idle goes, and comes back as it was. */
static void room_is_made_for_others(void **state)
{
    (void)state;
    enum { LARGE = 32 * 1024 /* 256 KiB */ };
    const void *data;
    int64_t strides[PL_RANK_MAX];
    pl_tensor *used = tensor_named("used", 1, LARGE), *idle = tensor_named("idle", 2, LARGE);
    assert_int_equal(pl_tensor_pin(used, &data, strides, &error), 0);
    uint64_t claimed = pl_runtime_claimed_bytes(runtime);
    assert_int_equal(pl_runtime_make_room(runtime, 0), 0);
    uint64_t freed = pl_runtime_make_room(runtime, UINT64_MAX);
    assert_true(freed >= pl_tensor_bytes(idle));
    assert_int_equal(pl_runtime_claimed_bytes(runtime), claimed - freed);
    assert_int_equal(where_is("idle"), PL_LIVE_SPILL);
    assert_int_equal(where_is("used"), PL_LIVE_MEMORY);
    assert_int_equal(pl_runtime_make_room(runtime, UINT64_MAX), 0);
    assert_true(element_of(idle, 1) == 3);
    pl_tensor_unpin(used);
    pl_tensor_unref(used);
    pl_tensor_unref(idle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEMORY_CASE(ten_thousand_small_tensors_leave_and_come_back),
        MEMORY_CASE(constants_that_do_not_fit_together_are_computed_with),
        MEMORY_CASE(variables_that_do_not_fit_together_are_assigned_to),
        MEMORY_CASE(results_that_are_kept_make_room_for_new_ones),
        MEMORY_CASE(what_was_used_last_stays),
        MEMORY_CASE(room_is_made_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
