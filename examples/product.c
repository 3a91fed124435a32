/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplies two matrices that are in .npy files, of any size, within a budget:
 *
 *     cc product.c $(pkg-config --cflags --libs plimsoll) -o product
 *     ./product a.npy b.npy c.npy 100
 *
 * c.npy is a times b, made with at most 100 MiB of memory. What is to be done is said before it is:
 * the plan goes to standard output. A budget in which it cannot be done is refused, with one that
 * would do. */
#include <plimsoll/plimsoll.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct work {
    pl_runtime *runtime;
    pl_graph *graph;
    pl_session *session;
    pl_tensor *a, *b;
    pl_node *left, *right, *product;
} work;

/* Describes the computation. Shapes are checked here, before anything is read. */
static int describe(work *w, pl_error *error)
{
    int r = pl_graph_placeholder(w->graph, "a", pl_tensor_dtype(w->a), pl_tensor_shape(w->a),
                                 &w->left, error);
    if (r == 0)
        r = pl_graph_placeholder(w->graph, "b", pl_tensor_dtype(w->b), pl_tensor_shape(w->b),
                                 &w->right, error);
    if (r == 0)
        r = pl_graph_matmul(w->graph, "c", w->left, w->right, false, false, &w->product, error);
    return r;
}

static int compute(work *w, const char *path, uint64_t budget_bytes, pl_error *error)
{
    const pl_feed feeds[] = {{w->left, w->a}, {w->right, w->b}};
    const pl_fetch fetch = {w->product, path};
    const pl_run_options options = {.budget_bytes = budget_bytes};
    char *plan = NULL;
    int r =
        pl_session_explain(w->session, &fetch, 1, feeds, 2, &options, false, &plan, NULL, error);
    if (r < 0)
        return r;
    fputs(plan, stdout);
    free(plan);
    return pl_session_run(w->session, &fetch, 1, feeds, 2, &options, NULL, error);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: %s A.npy B.npy C.npy MIB\n", argv[0]);
        return 2;
    }
    work w = {0};
    pl_error error = {0};
    int r = pl_runtime_new(NULL, &w.runtime, &error);
    if (r == 0)
        r = pl_graph_new(&w.graph, &error);
    if (r == 0)
        r = pl_tensor_open_npy(w.runtime, argv[1], &w.a, &error);
    if (r == 0)
        r = pl_tensor_open_npy(w.runtime, argv[2], &w.b, &error);
    if (r == 0)
        r = describe(&w, &error);
    if (r == 0)
        r = pl_session_new(w.graph, w.runtime, &w.session, &error);
    if (r == 0)
        r = compute(&w, argv[3], strtoull(argv[4], NULL, 10) << 20, &error);
    if (r < 0)
        fprintf(stderr, "%s\n", error.message);

    pl_session_free(w.session);
    pl_tensor_unref(w.a);
    pl_tensor_unref(w.b);
    pl_graph_free(w.graph);
    pl_runtime_unref(w.runtime);
    return r < 0 ? 1 : 0;
}
