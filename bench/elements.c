/* SPDX-License-Identifier: Apache-2.0 */
/* What an element costs beside its own work: a range, mapped by a function that hands it on. For
 * bench/datasets.py.
 *   elements N BATCH
 * BATCH 0: one by one. Prints elements, seconds and CPU seconds. */
#include "program.h"

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int64_t n_batch = atoll(argv[2]), n = 0;
    pl_runtime *runtime;
    pl_graph *graph;
    pl_session *session;
    pl_node *x;
    pl_dataset *range, *mapped, *dataset;
    pl_iterator *iterator;
    check(pl_runtime_new(NULL, &runtime, &error));
    check(pl_graph_new(&graph, &error));
    check(pl_session_new(graph, runtime, &session, &error));
    check(pl_graph_placeholder(graph, "x", PL_I64, &(pl_shape){0}, &x, &error));
    const pl_function function = {
        .session = session, .inputs = &x, .outputs = &x, .n_inputs = 1, .n_outputs = 1};
    check(pl_dataset_range(runtime, 0, atoll(argv[1]), 1, &range, &error));
    check(pl_dataset_map(range, &function, PL_AUTO, &mapped, &error));
    dataset = mapped;
    if (n_batch > 0)
        check(pl_dataset_batch(mapped, n_batch, false, &dataset, &error));
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
