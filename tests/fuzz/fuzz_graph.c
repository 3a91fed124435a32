/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a graph: each byte or so chooses an op, its inputs, an attribute or a dimension.
 * What does not fit is refused with a message, and the graph is as before. What fits is planned,
 * however large; if it is small it is run as well, under a small budget: the run claims no more
 * than its plan states, which is not much more than it claims. */
#include <errno.h>

#include "fuzz.h"
#include "graph/node.h"
#include "plimsoll/session.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

enum { NODES_MOST = 40, INPUTS_MOST = 5, NUMBERS_MOST = 8, FETCHES_MOST = 3, UNKNOWN_IS = 3 };
#define CAP_BYTES    (16 * PL_MIB)
#define SLAB_BYTES   (CAP_BYTES / 64)
#define RUN_ELEMENTS 20000 /* of all values together; more is only planned */

static long n_taken, n_refused, n_ran; /* 0 would make the test worthless */

/* ---- bytes ---- */

typedef struct reader {
    const uint8_t *data;
    size_t n;
} reader;

static unsigned next(reader *in)
{
    if (in->n == 0)
        return 0;
    in->n--;
    return *in->data++;
}

/* Mostly small, now and then as large as can be. */
static int64_t next_number(reader *in)
{
    static const int64_t odd[] = {INT64_MAX, INT64_MIN, INT64_C(1) << 40, -(INT64_C(1) << 40),
                                  INT64_C(1) << 31};
    unsigned byte = next(in);
    return byte < 250 ? (int64_t)byte % 16 - 4 : odd[byte - 250 < 5 ? byte - 250 : 4];
}

static int64_t next_dim(reader *in)
{
    unsigned byte = next(in);
    if (byte >= 252)
        return INT64_C(1) << (byte - 252) * 20;
    return byte < 200 ? byte % 12 : byte % 90;
}

static pl_dtype next_dtype(reader *in)
{
    return (pl_dtype)(next(in) % (PL_STRING + 2)); /* none and one past the last among them */
}

/* ---- nodes ---- */

typedef struct given {
    int64_t numbers[NUMBERS_MOST];
    pl_shape shape;
} given;

static pl_shape next_shape(reader *in)
{
    pl_shape shape = {.rank = (int32_t)(next(in) % 5)};
    if (next(in) == 255)
        shape.rank = PL_RANK_MAX;
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = next_dim(in);
    return shape;
}

static pl_attr next_attr(reader *in, const pl_attr_spec *spec, given *g)
{
    int n = (int)(next(in) % (NUMBERS_MOST / 2));
    pl_attr_type type = spec->type;
    if (next(in) == 255)
        type = (pl_attr_type)(next(in) % (PL_ATTR_NUMBER + 1)); /* another one */
    switch (type) {
    case PL_ATTR_INT:
    case PL_ATTR_NUMBER:
        return pl_attr_int(spec->name, next_number(in));
    case PL_ATTR_FLOAT:
        return pl_attr_float(spec->name, (double)next_number(in) / 2);
    case PL_ATTR_BOOL:
        return pl_attr_bool(spec->name, next(in) % 2);
    case PL_ATTR_DTYPE:
        return pl_attr_dtype(spec->name, next_dtype(in));
    case PL_ATTR_SHAPE:
        g->shape = next_shape(in);
        if (g->shape.rank > 0 && next(in) % 8 == 0)
            g->shape.dims[0] = PL_UNKNOWN;
        return pl_attr_shape(spec->name, &g->shape);
    case PL_ATTR_INTS:
        for (int i = 0; i < n; i++)
            g->numbers[i] = next_number(in);
        return pl_attr_ints(spec->name, g->numbers, n);
    default:
        return pl_attr_string(spec->name, "text");
    }
}

static int next_inputs(reader *in, const pl_graph *graph, const pl_op *op, pl_node **inputs)
{
    int n_nodes = pl_graph_n_nodes(graph), n = op->min_inputs;
    if (op->max_inputs > n)
        n += (int)(next(in) % 3);
    if (next(in) == 255)
        n = (int)(next(in) % INPUTS_MOST);
    if (n_nodes == 0)
        return 0;
    for (int i = 0; i < n && i < INPUTS_MOST; i++) {
        int back = (int)(next(in) % 6) + 1; /* the last are likelier */
        inputs[i] = pl_graph_node(graph, n_nodes > back ? n_nodes - back : (int)next(in) % n_nodes);
    }
    return n < INPUTS_MOST ? n : INPUTS_MOST;
}

static void add_node(reader *in, pl_graph *graph)
{
    const pl_op *op = pl_op_of((pl_op_id)(next(in) % PL_N_OPS));
    given values[PL_ATTRS_MAX];
    pl_attr attrs[PL_ATTRS_MAX];
    pl_node *inputs[INPUTS_MOST] = {0}, *node = NULL;
    pl_error error = {0};
    int n_before = pl_graph_n_nodes(graph), n_attrs = 0;
    if (op->op_class == PL_CLASS_DATA || op->id == PL_OP_file)
        return; /* what reads files */
    int n_inputs = next_inputs(in, graph, op, inputs);
    for (int i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].required ? next(in) != 255 : next(in) % 2) {
            attrs[n_attrs] = next_attr(in, &op->attrs[i], &values[n_attrs]);
            n_attrs++;
        }
    int r = pl_graph_add(graph, op->name, NULL, inputs, n_inputs, attrs, n_attrs, &node, &error);
    REQUIRE(r == 0 || (r < 0 && error.message[0] && !node));
    REQUIRE(pl_graph_n_nodes(graph) == n_before + (r == 0));
    n_taken += r == 0;
    n_refused += r < 0;
}

/* ---- runs ---- */

typedef struct situation {
    pl_runtime *runtime;
    pl_session *session;
    pl_feed feeds[NODES_MOST];
    int n_feeds;
} situation;

/* NULL for what is too large to be given. */
static pl_tensor *tensor_for(pl_runtime *runtime, const pl_node *node)
{
    static const uint8_t data[RUN_ELEMENTS * 8] = {1, 0, 1, 0, 0, 0, 0, 0, 1};
    pl_shape shape = *pl_node_shape(node);
    pl_tensor *tensor = NULL;
    int64_t bytes;
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] == PL_UNKNOWN)
            shape.dims[i] = UNKNOWN_IS;
    size_t item_bytes = pl_dtype_info_of(node->dtype)->item_bytes;
    if (item_bytes == 0 || pl_shape_bytes(&shape, item_bytes, &bytes, NULL) < 0 ||
        bytes > (int64_t)sizeof data)
        return NULL;
    if (pl_tensor_new(runtime, node->dtype, &shape, data, "given", &tensor, NULL) < 0)
        return NULL;
    return tensor;
}

static void give_all(situation *s, pl_graph *graph)
{
    for (int i = 0; i < pl_graph_n_nodes(graph); i++) {
        pl_node *node = pl_graph_node(graph, i);
        bool wanted = node->op->id == PL_OP_placeholder || node->op->id == PL_OP_constant ||
                      node->op->id == PL_OP_variable;
        pl_tensor *tensor = wanted ? tensor_for(s->runtime, node) : NULL;
        if (!tensor)
            continue;
        if (node->op->id == PL_OP_placeholder) {
            s->feeds[s->n_feeds++] = (pl_feed){node, tensor};
            continue;
        }
        int r = node->op->id == PL_OP_constant ? pl_constant_set(node, tensor, NULL)
                                               : pl_session_set(s->session, node, tensor, NULL);
        REQUIRE(r == 0);
        pl_tensor_unref(tensor);
    }
}

/* Have all nodes that the fetches need few elements, together? */
static bool is_small(const pl_graph *graph, const situation *s, pl_node *const *fetches, int n)
{
    bool needed[NODES_MOST];
    pl_shape shapes[NODES_MOST];
    pl_feed_shape feeds[NODES_MOST];
    double elements = 0;
    for (int i = 0; i < s->n_feeds; i++)
        feeds[i] = (pl_feed_shape){s->feeds[i].placeholder, *pl_tensor_shape(s->feeds[i].tensor)};
    pl_graph_mark_needed(graph, fetches, n, needed);
    if (pl_graph_infer(graph, feeds, s->n_feeds, needed, shapes, NULL) < 0)
        return false;
    for (int i = 0; i < pl_graph_n_nodes(graph); i++) {
        double own = 1;
        for (int k = 0; needed[i] && k < shapes[i].rank; k++)
            own *= shapes[i].dims[k] < 0 ? RUN_ELEMENTS : (double)shapes[i].dims[k];
        elements += needed[i] ? own : 0;
    }
    return elements <= RUN_ELEMENTS;
}

static bool has_product(const pl_graph *graph)
{
    for (int i = 0; i < pl_graph_n_nodes(graph); i++)
        if (pl_graph_node(graph, i)->op->op_class == PL_CLASS_MATMUL)
            return true;
    return false;
}

static void run(const situation *s, const pl_fetch *fetches, int n, const pl_run_options *options,
                bool with_product)
{
    pl_tensor *results[FETCHES_MOST] = {0};
    pl_run_cost cost;
    pl_error error = {0};
    uint64_t before = pl_runtime_claimed_bytes(s->runtime);
    int r = pl_session_explain(s->session, fetches, n, s->feeds, s->n_feeds, options, false, NULL,
                               &cost, &error);
    REQUIRE(r == 0 || (r < 0 && error.message[0]));
    if (r < 0)
        return;
    REQUIRE(cost.peak_bytes <= options->budget_bytes || options->budget_bytes == 0);
    r = pl_session_run(s->session, fetches, n, s->feeds, s->n_feeds, options, results, &error);
    uint64_t peak = pl_runtime_peak_bytes(s->runtime);
    REQUIRE(r == 0 || (r < 0 && error.message[0] && r != PL_EBUDGET));
    REQUIRE(peak - before <= cost.peak_bytes);
    REQUIRE(r < 0 || with_product || (double)cost.peak_bytes <= 1.25 * (double)peak + SLAB_BYTES);
    n_ran += r == 0;
    for (int i = 0; i < n; i++) {
        REQUIRE((results[i] != NULL) == (r == 0));
        pl_tensor_unref(results[i]);
    }
}

/* In a runtime of its own, whose peak is then that of this run. */
static void try_fetches(reader *in, pl_graph *graph, uint64_t budget_bytes)
{
    situation s = {0};
    pl_node *nodes[FETCHES_MOST];
    pl_fetch fetches[FETCHES_MOST];
    const pl_runtime_options how = {
        .cap_bytes = CAP_BYTES, .spill_directory = "/tmp", .n_threads = 1};
    const pl_run_options options = {.budget_bytes = budget_bytes};
    int n_nodes = pl_graph_n_nodes(graph), n = 1 + (int)(next(in) % FETCHES_MOST);
    REQUIRE(pl_runtime_new(&how, &s.runtime, NULL) == 0);
    REQUIRE(pl_session_new(graph, s.runtime, &s.session, NULL) == 0);
    give_all(&s, graph);
    for (int i = 0; i < n; i++) {
        nodes[i] = pl_graph_node(graph, i == 0 ? n_nodes - 1 : (int)next(in) % n_nodes);
        fetches[i] = (pl_fetch){nodes[i], NULL};
    }
    if (is_small(graph, &s, nodes, n))
        run(&s, fetches, n, &options, has_product(graph));
    else
        (void)!pl_session_explain(s.session, fetches, n, s.feeds, s.n_feeds, &options, false, NULL,
                                  NULL, NULL);
    for (int i = 0; i < s.n_feeds; i++)
        pl_tensor_unref(s.feeds[i].tensor);
    pl_session_free(s.session);
    pl_runtime_unref(s.runtime);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    reader in = {data, n};
    pl_graph *graph;
    REQUIRE(pl_graph_new(&graph, NULL) == 0);
    uint64_t budget_bytes = (uint64_t)(next(&in) + 1) * 4 * PL_KIB;
    while (in.n > 8 && pl_graph_n_nodes(graph) < NODES_MOST)
        add_node(&in, graph);
    if (pl_graph_n_nodes(graph) > 0)
        try_fetches(&in, graph, budget_bytes);
    pl_graph_free(graph);
    return 0;
}

#ifndef PL_LIBFUZZER

static void no_bytes_harm_whoever_builds_plans_and_runs_them(void **state)
{
    (void)state;
    static uint8_t input[400];
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        size_t n = 20 + (size_t)random() % (sizeof input - 20);
        for (size_t k = 0; k < n; k++)
            input[k] = (uint8_t)(random() >> 8);
        try_input(input, n);
    }
    print_message("# %ld nodes, %ld refused, %ld runs\n", n_taken, n_refused, n_ran);
    assert_true(n_tries < 1000 || (n_taken > n_tries && n_refused > n_tries));
    assert_true(n_tries < 1000 || n_ran > n_tries / 10);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 8000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_harm_whoever_builds_plans_and_runs_them),
    };
    return cmocka_run_group_tests_name("fuzz_graph", tests, NULL, NULL);
}

#endif
