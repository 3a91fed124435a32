/* SPDX-License-Identifier: Apache-2.0 */
/* The budget that a refusal names is enough, and little less is not: of graphs at random, from
 * products of a few elements to some that are larger than the blocks that they are read in.
 *
 * PLIMSOLL_TEST_ROUNDS=20 makes so many times as many graphs. */
#include "graph_fixture.h"

#include <stdio.h>

#include "base/size.h"
#include "plan/matmul_plan.h"
#include "plan/plan.h"

enum { GRAPHS = 600, MATRICES = 24, FETCHES = 3 };

/* Of the number, less what writing it with one decimal has added. */
enum { PART = 50 };

typedef struct random_graph {
    uint64_t state;
    int64_t dims[3]; /* that matrices have */
    pl_node *nodes[MATRICES];
    int n_nodes;
    pl_plan_source sources[MATRICES];
    int n_sources;
    pl_plan_fetch fetches[FETCHES];
    int n_fetches;
    uint64_t slab_bytes;
} random_graph;

static int64_t chance(random_graph *g, int64_t below)
{
    g->state = g->state * 6364136223846793005 + 1442695040888963407;
    return (int64_t)((g->state >> 33) % (uint64_t)below);
}

static void keep(random_graph *g, pl_node *node)
{
    g->nodes[g->n_nodes++] = node;
}

static pl_node *any(random_graph *g)
{
    return g->nodes[chance(g, g->n_nodes)];
}

static void give(random_graph *g, pl_dtype dtype)
{
    char name[24];
    snprintf(name, sizeof name, "given%d", g->n_nodes);
    const pl_shape shape = PL_SHAPE(g->dims[chance(g, 3)], g->dims[chance(g, 3)]);
    pl_node *node = place(name, dtype, shape);
    g->sources[g->n_sources++] =
        (pl_plan_source){.node = node, .shape = shape, .resident = chance(g, 2)};
    keep(g, node);
}

/* Turned, if that fits better; false if the two have no dimension in common. */
static bool multiply(random_graph *g)
{
    pl_node *a = any(g), *b = any(g);
    if (chance(g, 3) == 0)
        a = must_add("transpose", NULL, NODES(a), NO_ATTRS);
    if (a->shape.dims[1] != b->shape.dims[0])
        b = must_add("transpose", NULL, NODES(b), NO_ATTRS);
    if (a->shape.dims[1] != b->shape.dims[0])
        return false;
    keep(g, must_add("matmul", NULL, NODES(a, b), NO_ATTRS));
    return true;
}

static void compute(random_graph *g)
{
    static const char *const alone[] = {"tanh", "softmax", "sort", "abs"};
    pl_node *a = any(g), *b = any(g);
    if (pl_shape_equal(&a->shape, &b->shape))
        keep(g, must_add("add", NULL, NODES(a, b), NO_ATTRS));
    else
        keep(g, must_add(alone[chance(g, 4)], NULL, NODES(a), NO_ATTRS));
}

static void make_graph(random_graph *g, uint64_t seed)
{
    static const int64_t sizes[] = {8, 40, 200, 700};
    *g = (random_graph){.state = seed};
    int64_t most = sizes[chance(g, 4)];
    for (int i = 0; i < 3; i++)
        g->dims[i] = 1 + chance(g, most);
    const pl_dtype dtype = chance(g, 2) ? PL_F32 : PL_F64;
    for (int64_t n = 1 + chance(g, 3); n > 0; n--)
        give(g, dtype);
    for (int64_t n = 1 + chance(g, 8); n > 0; n--)
        if (chance(g, 2) || !multiply(g))
            compute(g);
    for (int64_t n = 1 + chance(g, FETCHES); n > 0; n--)
        g->fetches[g->n_fetches++] =
            (pl_plan_fetch){n == 1 ? g->nodes[g->n_nodes - 1] : any(g), chance(g, 3) == 0};
    g->slab_bytes = chance(g, 2) ? 64 * PL_KIB : 0;
}

static uint64_t library_bytes(pl_dtype dtype, int64_t rows)
{
    return pl_matmul_workspace_bytes(dtype, rows, 1);
}

static int plan_with(const random_graph *g, uint64_t budget_bytes)
{
    const pl_plan_request request = {.graph = graph,
                                     .fetches = g->fetches,
                                     .n_fetches = g->n_fetches,
                                     .sources = g->sources,
                                     .n_sources = g->n_sources,
                                     .budget_bytes = budget_bytes,
                                     .disk = {.bytes = PL_GIB},
                                     .slab_bytes = g->slab_bytes,
                                     .small_bytes = g->slab_bytes / 64,
                                     .library_bytes = library_bytes,
                                     .n_threads = 2};
    pl_plan *plan = NULL;
    error.message[0] = '\0';
    int r = pl_plan_new(&request, &plan, &error);
    pl_plan_free(plan);
    return r;
}

/* What the refusal says, and by how much less it may have been before it was written. */
static uint64_t named_bytes(uint64_t *ret_unit_bytes)
{
    char text[PL_SIZE_TEXT_BYTES], unit[8] = "";
    const char *at = strstr(error.message, "give at least ");
    double number = 0;
    uint64_t bytes = 0;
    if (!at || sscanf(at, "give at least %lf %7s", &number, unit) != 2)
        fail_msg("%s", error.message);
    snprintf(text, sizeof text, "%g%s", number, unit[0] == 'B' ? "" : unit);
    assert_int_equal(pl_size_parse(text, 0, &bytes, &error), 0);
    snprintf(text, sizeof text, "0.1%s", unit);
    *ret_unit_bytes = 1;
    if (unit[0] != 'B')
        assert_int_equal(pl_size_parse(text, 0, ret_unit_bytes, &error), 0);
    return bytes;
}

static void check_graph(uint64_t seed)
{
    random_graph g;
    uint64_t unit;
    make_graph(&g, seed);
    int r = plan_with(&g, 1);
    if (r == 0)
        return; /* there is nothing to compute */
    assert_int_equal(r, PL_EBUDGET);
    uint64_t enough = named_bytes(&unit);
    if (plan_with(&g, enough) < 0)
        fail_msg("seed %d: %d bytes were named, and then: %s", (int)seed, (int)enough,
                 error.message);
    uint64_t less = enough - unit;
    less -= less / PART;
    if (plan_with(&g, less) == 0)
        fail_msg("seed %d: %d bytes were named, and %d are enough", (int)seed, (int)enough,
                 (int)less);
}

static void the_budget_that_is_named_is_the_least(void **state)
{
    const char *rounds = getenv("PLIMSOLL_TEST_ROUNDS");
    int n = GRAPHS * (rounds ? atoi(rounds) : 1);
    for (int seed = 0; seed < n; seed++) {
        assert_int_equal(setup(state), 0);
        check_graph((uint64_t)seed);
        teardown(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_budget_that_is_named_is_the_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
