/* SPDX-License-Identifier: Apache-2.0 */
/* The .npy files that a tool was given for placeholders, constants and variables:
 *   give NAME window|memory|transposed PATH     where it is, copied to memory, or its axes the
 *                                               other way */
#ifndef TESTS_PROGRAMS_GIVEN_FILES_H
#define TESTS_PROGRAMS_GIVEN_FILES_H

#include "graph_words.h"
#include "plimsoll/session.h"

enum { GIVEN = 256 };

typedef struct given {
    pl_node *node;
    char how[16], path[512];
} given;

static given givens[GIVEN];
static int n_givens;

static given *read_given(void)
{
    given *g = &givens[n_givens++];
    g->node = pl_graph_find(graph, words[1]);
    snprintf(g->how, sizeof g->how, "%s", words[2]);
    snprintf(g->path, sizeof g->path, "%s", words[3]);
    return g;
}

static void replace(pl_tensor **tensor, pl_tensor *by)
{
    pl_tensor_unref(*tensor);
    *tensor = by;
}

static int copy_to_memory(pl_runtime *runtime, pl_tensor **tensor)
{
    pl_tensor *copy;
    int64_t begin[PL_RANK_MAX] = {0};
    const pl_shape *shape = pl_tensor_shape(*tensor);
    void *data = malloc(pl_tensor_bytes(*tensor) + 1);
    int r = pl_tensor_read(*tensor, begin, shape->dims, data, &error);
    if (r == 0)
        r = pl_tensor_new(runtime, pl_tensor_dtype(*tensor), shape, data, "given", &copy, &error);
    free(data);
    if (r == 0)
        replace(tensor, copy);
    return r;
}

static int turn(pl_tensor **tensor)
{
    pl_tensor *view;
    int axes[PL_RANK_MAX], rank = pl_tensor_shape(*tensor)->rank;
    for (int i = 0; i < rank; i++)
        axes[i] = rank - 1 - i;
    int r = pl_tensor_transpose(*tensor, axes, &view, &error);
    if (r == 0)
        replace(tensor, view);
    return r;
}

/* *ret_tensor is NULL only if the file cannot be opened. */
static int open_given(pl_runtime *runtime, const given *g, pl_tensor **ret_tensor)
{
    *ret_tensor = NULL;
    int r = pl_tensor_open_npy(runtime, g->path, ret_tensor, &error);
    if (r == 0 && strcmp(g->how, "memory") == 0)
        r = copy_to_memory(runtime, ret_tensor);
    if (r == 0 && strcmp(g->how, "transposed") == 0)
        r = turn(ret_tensor);
    return r;
}

#endif
