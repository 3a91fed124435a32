/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures through a session, one run for each, as a dataset's map does: decoded, resized, cast,
 * scaled. For bench/pictures.py.
 *   pictures PIPELINE N FILE...
 *     resized  decode, resize to 64 x 64 float32, x / 127.5 - 1: the plan's input has one size
 *     cast     decode, cast to float32, x / 127.5 - 1: the plan is for a picture of this size
 *     between  decode, cast, resize, x / 127.5 - 1: the cast has a plan of its own
 *     small    decode, mean of each channel, 20 small ops on these
 * The files are taken in turns, N times in all, from memory. Prints pictures, seconds, CPU seconds,
 * page faults, and the sum of what each run made of a first element. */
#include "program.h"

#include <string.h>

enum { N_SMALL = 20 };

static pl_graph *graph;

static pl_node *added(const char *op, pl_node **inputs, int n_inputs, const pl_attr *attrs,
                      int n_attrs)
{
    pl_node *node;
    check(pl_graph_add(graph, op, NULL, inputs, n_inputs, attrs, n_attrs, &node, &error));
    return node;
}

static pl_node *unary(const char *op, pl_node *x, const pl_attr *attrs, int n_attrs)
{
    return added(op, &x, 1, attrs, n_attrs);
}

static pl_node *with_number(const char *op, pl_node *x, double number)
{
    pl_node *inputs[2] = {x, NULL};
    check(pl_graph_fill(graph, NULL, PL_F32, &(pl_shape){0}, number, &inputs[1], &error));
    return added(op, inputs, 2, NULL, 0);
}

static pl_node *as_float(pl_node *x)
{
    const pl_attr dtype = pl_attr_dtype("dtype", PL_F32);
    return unary("cast", x, &dtype, 1);
}

static pl_node *resized(pl_node *x)
{
    static const int64_t size[] = {64, 64};
    const pl_attr attrs[] = {pl_attr_ints("size", size, 2)};
    return unary("resize", x, attrs, 1);
}

static pl_node *scaled(pl_node *x)
{
    return with_number("sub", with_number("div", x, 127.5), 1);
}

static pl_node *small_ops(pl_node *x)
{
    static const int64_t axes[] = {0, 1};
    const pl_attr attrs[] = {pl_attr_ints("axes", axes, 2)};
    x = unary("mean", as_float(x), attrs, 1);
    for (int i = 0; i < N_SMALL; i++)
        x = with_number(i % 2 ? "mul" : "add", x, 1.0 / (i + 1));
    return x;
}

static pl_node *pipeline_of(const char *name, pl_node *pixels)
{
    if (strcmp(name, "resized") == 0)
        return scaled(resized(pixels));
    if (strcmp(name, "cast") == 0)
        return scaled(as_float(pixels));
    if (strcmp(name, "between") == 0)
        return scaled(resized(as_float(pixels)));
    return strcmp(name, "small") == 0 ? small_ops(pixels) : NULL;
}

static pl_tensor *file_at(pl_runtime *runtime, const char *path)
{
    pl_tensor *tensor;
    FILE *file = fopen(path, "rb");
    if (!file)
        exit(1);
    fseek(file, 0, SEEK_END);
    size_t n = (size_t)ftell(file);
    char *bytes = malloc(n);
    rewind(file);
    if (!bytes || fread(bytes, 1, n, file) != n)
        exit(1);
    fclose(file);
    const pl_string string = {bytes, n};
    check(pl_tensor_new_strings(runtime, &(pl_shape){0}, &string, "file", &tensor, &error));
    free(bytes);
    return tensor;
}

static double run(pl_session *session, pl_node *fetched, pl_node *file, pl_tensor *tensor)
{
    pl_tensor *result;
    const void *data;
    int64_t strides[PL_RANK_MAX];
    const pl_feed feed = {file, tensor};
    const pl_fetch fetch = {fetched, NULL};
    check(pl_session_run(session, &fetch, 1, &feed, 1, NULL, &result, &error));
    check(pl_tensor_pin(result, &data, strides, &error));
    double first = (double)*(const float *)data;
    pl_tensor_unpin(result);
    pl_tensor_unref(result);
    return first;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const pl_runtime_options options = {.n_threads = 1};
    const pl_attr channels = pl_attr_int("channels", 3);
    pl_runtime *runtime;
    pl_session *session;
    pl_node *file;
    int n = atoi(argv[2]), n_files = argc - 3;
    check(pl_runtime_new(&options, &runtime, &error));
    check(pl_graph_new(&graph, &error));
    check(pl_session_new(graph, runtime, &session, &error));
    check(pl_graph_placeholder(graph, "file", PL_STRING, &(pl_shape){0}, &file, &error));
    pl_node *fetched = pipeline_of(argv[1], unary("decode_image", file, &channels, 1));
    pl_tensor **files = calloc((size_t)n_files, sizeof(pl_tensor *));
    if (!fetched || !files)
        return 2;
    for (int i = 0; i < n_files; i++)
        files[i] = file_at(runtime, argv[3 + i]);
    double sum = 0;
    const start from = start_now();
    for (int i = 0; i < n; i++)
        sum += run(session, fetched, file, files[i % n_files]);
    print_since(&from, n, sum);
    for (int i = 0; i < n_files; i++)
        pl_tensor_unref(files[i]);
    free(files);
    pl_session_free(session);
    pl_graph_free(graph);
    pl_runtime_unref(runtime);
    return 0;
}
