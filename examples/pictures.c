/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pictures in folders by class into batches for training, within a budget: corrupt files are
 * skipped and reported, and nothing is prefetched that does not fit.
 *   pictures FOLDER MEBIBYTES */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <plimsoll/plimsoll.h>

static pl_error error;

static void check(int code)
{
    if (code >= 0)
        return;
    fprintf(stderr, "pictures: %s\n", error.message);
    exit(1);
}

/* The function for each element: (path, label) becomes (224 x 224 float32, label). */
static pl_function picture(pl_runtime *runtime, pl_graph *graph)
{
    static pl_node *inputs[2], *outputs[2];
    static const int64_t size[] = {224, 224};
    pl_session *session;
    pl_node *file, *pixels;
    const pl_shape scalar = {0};
    check(pl_graph_placeholder(graph, "path", PL_STRING, &scalar, &inputs[0], &error));
    check(pl_graph_placeholder(graph, "label", PL_I64, &scalar, &inputs[1], &error));
    check(pl_graph_add(graph, "read_file", "file", &inputs[0], 1, NULL, 0, &file, &error));
    const pl_attr channels = pl_attr_int("channels", 3);
    check(pl_graph_add(graph, "decode_image", "pixels", &file, 1, &channels, 1, &pixels, &error));
    const pl_attr to = pl_attr_ints("size", size, 2);
    check(pl_graph_add(graph, "resize", "picture", &pixels, 1, &to, 1, &outputs[0], &error));
    outputs[1] = inputs[1];
    check(pl_session_new(graph, runtime, &session, &error));
    return (pl_function){
        .session = session, .inputs = inputs, .outputs = outputs, .n_inputs = 2, .n_outputs = 2};
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    pl_runtime *runtime;
    pl_graph *graph;
    pl_dataset *files, *decoded, *tolerant, *batches, *dataset;
    pl_iterator *iterator;
    const pl_runtime_options options = {.cap_bytes = strtoull(argv[2], NULL, 10) << 20};
    check(pl_runtime_new(&options, &runtime, &error));

    const pl_files_options order = {.shuffle = true, .seed = 1};
    check(pl_graph_new(&graph, &error));
    const pl_function function = picture(runtime, graph);
    const pl_dataset_options skip = {.on_error = PL_ON_ERROR_SKIP, .max_bad_fraction = 0.5};
    check(pl_dataset_image_folder(runtime, argv[1], &order, &files, &error));
    check(pl_dataset_map(files, &function, PL_AUTO, &decoded, &error));
    check(pl_dataset_with_options(decoded, &skip, &tolerant, &error));
    check(pl_dataset_batch(tolerant, 32, false, &batches, &error));
    check(pl_dataset_prefetch(batches, PL_AUTO, &dataset, &error));

    int64_t n = 0;
    int r;
    pl_value values[2];
    check(pl_iterator_new(dataset, &iterator, &error));
    while ((r = pl_iterator_next(iterator, values, &error)) > 0) {
        n += pl_tensor_shape(values[0].tensor)->dims[0]; /* here is where a model would learn */
        pl_tensor_unref(values[0].tensor);
        pl_tensor_unref(values[1].tensor);
    }
    check(r);

    pl_bad_element bad[8];
    int n_bad = pl_iterator_bads(iterator, bad, 8);
    printf("%" PRId64 " pictures, %d bad; at most %" PRIu64 " MiB\n", n, n_bad,
           pl_runtime_peak_bytes(runtime) >> 20);
    for (int i = 0; i < n_bad && i < 8; i++)
        printf("  %s\n", bad[i].message);
    char *text;
    check(pl_iterator_explain(iterator, false, &text, &error));
    fputs(text, stdout);
    free(text);
    pl_iterator_free(iterator);
    pl_dataset *const made[] = {files, decoded, tolerant, batches, dataset};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        pl_dataset_unref(made[i]);
    pl_session_free(function.session);
    pl_graph_free(graph);
    pl_runtime_unref(runtime);
    return 0;
}
