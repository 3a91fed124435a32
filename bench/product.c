/* SPDX-License-Identifier: Apache-2.0 */
/* A product of matrices in .npy files, as users of the library have it: through a session. For
 * bench/matmul.py.
 *   product memory|files CAP TRANSPOSE_B RUNS A B C
 * In memory: operands are read before, and the result is a tensor. Else all three stay files, and
 * memory is what the runtime may have, or CAP bytes if that is not 0. Prints the seconds of each
 * run of the session; the first is also what the process pays once (BLAS's own memory). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plimsoll/session.h"

static pl_error error;

static void check(int code)
{
    if (code >= 0)
        return;
    fprintf(stderr, "product: %s\n", error.message);
    exit(1);
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static pl_tensor *open_operand(pl_runtime *runtime, const char *path, bool in_memory)
{
    pl_tensor *tensor;
    const void *data;
    int64_t strides[PL_RANK_MAX];
    check(pl_tensor_open_npy(runtime, path, &tensor, &error));
    if (in_memory) /* pinned for good: it stays there */
        check(pl_tensor_pin(tensor, &data, strides, &error));
    return tensor;
}

int main(int argc, char **argv)
{
    if (argc != 8)
        return 2;
    bool in_memory = strcmp(argv[1], "memory") == 0, one = strcmp(argv[5], argv[6]) == 0;
    const pl_runtime_options options = {.cap_bytes = strtoull(argv[2], NULL, 10), .n_threads = 2};
    pl_runtime *runtime;
    pl_graph *graph;
    pl_session *session;
    pl_node *a, *b, *c;
    check(pl_runtime_new(&options, &runtime, &error));
    pl_tensor *ta = open_operand(runtime, argv[5], in_memory);
    pl_tensor *tb = one ? pl_tensor_ref(ta) : open_operand(runtime, argv[6], in_memory);
    check(pl_graph_new(&graph, &error));
    check(pl_graph_placeholder(graph, "a", PL_F32, pl_tensor_shape(ta), &a, &error));
    b = a;
    if (!one)
        check(pl_graph_placeholder(graph, "b", PL_F32, pl_tensor_shape(tb), &b, &error));
    check(pl_graph_matmul(graph, "c", a, b, false, atoi(argv[3]), &c, &error));
    check(pl_session_new(graph, runtime, &session, &error));
    const pl_feed feeds[] = {{a, ta}, {b, tb}};
    const pl_fetch fetch = {c, in_memory ? NULL : argv[7]};
    for (int i = atoi(argv[4]); i > 0; i--) {
        pl_tensor *result = NULL;
        double begin = now();
        check(pl_session_run(session, &fetch, 1, feeds, one ? 1 : 2, NULL, &result, &error));
        printf("%.6f\n", now() - begin);
        if (result && i == 1)
            check(pl_tensor_save_npy(result, argv[7], &error));
        pl_tensor_unref(result);
    }
    pl_session_free(session);
    pl_graph_free(graph);
    return 0;
}
