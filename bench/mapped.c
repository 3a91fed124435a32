/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that a Python program's is compared with: a range, in batches, through a graph of two
 * ops. For bench/tf.py.
 *   mapped N BATCH MAP
 * BATCH 0: one by one. MAP 0: no graph. Prints elements, seconds and CPU seconds. */
#include "program.h"

/* x * 2 + 1, of elements of this shape. */
static pl_dataset *map_over(pl_dataset *input, pl_runtime *runtime)
{
    const pl_spec *spec = pl_dataset_spec(input, 0);
    pl_graph *graph;
    pl_session *session;
    pl_node *x, *two, *one, *product, *sum;
    pl_dataset *mapped;
    check(pl_graph_new(&graph, &error));
    check(pl_session_new(graph, runtime, &session, &error));
    check(pl_graph_placeholder(graph, "x", PL_I64, &spec->shape, &x, &error));
    check(pl_graph_fill(graph, "two", PL_I64, &(pl_shape){0}, 2, &two, &error));
    check(pl_graph_fill(graph, "one", PL_I64, &(pl_shape){0}, 1, &one, &error));
    check(pl_graph_binary(graph, "mul", "product", x, two, &product, &error));
    check(pl_graph_binary(graph, "add", "sum", product, one, &sum, &error));
    const pl_function function = {
        .session = session, .inputs = &x, .outputs = &sum, .n_inputs = 1, .n_outputs = 1};
    check(pl_dataset_map(input, &function, 1, &mapped, &error));
    return mapped;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int64_t n_batch = atoll(argv[2]), n = 0;
    pl_runtime *runtime;
    pl_dataset *dataset;
    pl_iterator *iterator;
    check(pl_runtime_new(NULL, &runtime, &error));
    check(pl_dataset_range(runtime, 0, atoll(argv[1]), 1, &dataset, &error));
    if (n_batch > 0)
        check(pl_dataset_batch(dataset, n_batch, false, &dataset, &error));
    if (atoi(argv[3]))
        dataset = map_over(dataset, runtime);
    double begin = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    check(pl_iterator_new(dataset, &iterator, &error));
    for (pl_value value; pl_iterator_next(iterator, &value, &error) > 0;) {
        n += n_batch > 0 ? pl_tensor_shape(value.tensor)->dims[0] : 1;
        pl_tensor_unref(value.tensor);
    }
    printf("%" PRId64 " %.6f %.6f\n", n, now(CLOCK_MONOTONIC) - begin,
           now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    pl_iterator_free(iterator);
    return 0;
}
