/* SPDX-License-Identifier: Apache-2.0 */
/* Chains over values so large that they are asked for ahead of time, and strips run in pieces. */
#include "session_fixture.h"

#include <assert.h>
#include <math.h>

#include "exec/step/lookahead.h"

/* Tiles, strips and pieces that are not full at their ends. */
enum { N = 4 * 1024 * 1024 / sizeof(double) + 77 };
static_assert(N * sizeof(double) >= PL_LOOKAHEAD_VALUE_BYTES, "no stream, else");

static int begin(void **state)
{
    return begin_with(state, 64 * PL_MIB, 2);
}

#define STRIPS_CASE(function) cmocka_unit_test_setup_teardown(function, begin, finish)

static pl_node *of_two(const char *op, pl_node *a, pl_node *b)
{
    return must_add(op, NULL, NODES(a, b), NO_ATTRS);
}

static pl_node *of_one(const char *op, pl_node *a)
{
    return must_add(op, NULL, NODES(a), NO_ATTRS);
}

static double naive(double a, double b)
{
    volatile double product = a * b; /* no fused multiply-add */
    return product + sqrt(a);
}

static void a_result_in_memory_is_the_naive_loops(void **state)
{
    (void)state;
    pl_node *a = constant_of("a", 1, N), *b = constant_of("b", -300, N);
    pl_tensor *result = must_run(of_two("add", of_two("mul", a, b), of_one("sqrt", a)));
    double *got = malloc(N * sizeof *got);
    const int64_t from[PL_RANK_MAX] = {0}, all[PL_RANK_MAX] = {N};
    assert_int_equal(pl_tensor_read(result, from, all, got, &error), 0);
    for (int i = 0; i < N; i++) {
        double wanted = naive(1 + (double)i, -300 + (double)i);
        if (memcmp(&got[i], &wanted, sizeof wanted) != 0)
            fail_msg("element %d is %.17g, and not %.17g", i, got[i], wanted);
    }
    free(got);
    pl_tensor_unref(result);
}

static void a_sum_has_all_elements_once(void **state)
{
    (void)state;
    pl_node *a = constant_of("a", 3, N), *b = constant_of("b", 5, N), *one = constant_of("c", 1, 1);
    pl_node *squares = of_two("add", of_one("square", of_two("sub", a, b)), one);
    pl_tensor *result = must_run(of_one("sum", squares));
    assert_true(element_of(result, 0) == 5.0 * N);
    pl_tensor_unref(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {STRIPS_CASE(a_result_in_memory_is_the_naive_loops),
                                       STRIPS_CASE(a_sum_has_all_elements_once)};
    return cmocka_run_group_tests_name("strips", tests, NULL, NULL);
}
