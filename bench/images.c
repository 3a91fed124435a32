/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures to batches, as users of the library have it: files, read, decoded, resized to 256 x 256
 * float32, 32 to a batch, some made ahead. For bench/datasets.py.
 *   images OP ANTIALIAS THREADS PATTERN
 * Prints pictures, seconds, CPU seconds, page faults, and the sum of all values. */
#include "program.h"

static pl_dataset *mapped(pl_dataset *files, pl_session *session, pl_graph *graph, const char *op,
                          bool antialias)
{
    static const int64_t size[] = {256, 256};
    pl_node *path, *file, *pixels, *resized;
    pl_dataset *dataset;
    check(pl_graph_placeholder(graph, "path", PL_STRING, &(pl_shape){0}, &path, &error));
    check(pl_graph_add(graph, "read_file", NULL, &path, 1, NULL, 0, &file, &error));
    const pl_attr channels = pl_attr_int("channels", 3);
    check(pl_graph_add(graph, op, NULL, &file, 1, &channels, 1, &pixels, &error));
    const pl_attr attrs[] = {pl_attr_ints("size", size, 2), pl_attr_bool("antialias", antialias)};
    check(pl_graph_add(graph, "resize", NULL, &pixels, 1, attrs, 2, &resized, &error));
    const pl_function function = {
        .session = session, .inputs = &path, .outputs = &resized, .n_inputs = 1, .n_outputs = 1};
    check(pl_dataset_map(files, &function, PL_AUTO, &dataset, &error));
    return dataset;
}

static double sum_of(pl_tensor *tensor)
{
    const void *data;
    int64_t strides[PL_RANK_MAX];
    check(pl_tensor_pin(tensor, &data, strides, &error));
    const float *values = data;
    double sum = 0;
    for (uint64_t i = 0; i < pl_tensor_bytes(tensor) / sizeof *values; i += 997)
        sum += (double)values[i];
    pl_tensor_unpin(tensor);
    return sum;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    const pl_runtime_options options = {.n_threads = atoi(argv[3])};
    const char *pattern = argv[4];
    pl_runtime *runtime;
    pl_graph *graph;
    pl_session *session;
    pl_dataset *files, *batched, *dataset;
    pl_iterator *iterator;
    check(pl_runtime_new(&options, &runtime, &error));
    check(pl_graph_new(&graph, &error));
    check(pl_session_new(graph, runtime, &session, &error));
    check(pl_dataset_files(runtime, &pattern, 1, NULL, &files, &error));
    check(pl_dataset_batch(mapped(files, session, graph, argv[1], atoi(argv[2])), 32, false,
                           &batched, &error));
    check(pl_dataset_prefetch(batched, PL_AUTO, &dataset, &error));
    const start from = start_now();
    double sum = 0;
    int64_t n = 0;
    check(pl_iterator_new(dataset, &iterator, &error));
    for (pl_value value; pl_iterator_next(iterator, &value, &error) > 0;) {
        n += pl_tensor_shape(value.tensor)->dims[0];
        sum += sum_of(value.tensor);
        pl_tensor_unref(value.tensor);
    }
    print_since(&from, n, sum);
    pl_iterator_free(iterator);
    return 0;
}
