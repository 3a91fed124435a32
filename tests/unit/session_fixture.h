/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime and a session on the graph of each test, in a folder of its own. */
#ifndef TESTS_UNIT_SESSION_FIXTURE_H
#define TESTS_UNIT_SESSION_FIXTURE_H

#include "graph_fixture.h"

#include <stdio.h>
#include <unistd.h>

#include "plimsoll/session.h"

static pl_runtime *runtime;
static pl_session *session;
static char folder[64];

static inline int begin_with(void **state, uint64_t cap_bytes, int n_threads)
{
    strcpy(folder, "/tmp/plimsoll-session-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    const pl_runtime_options options = {
        .cap_bytes = cap_bytes, .spill_directory = folder, .n_threads = n_threads};
    if (setup(state) < 0 || pl_runtime_new(&options, &runtime, &error) < 0)
        return -1;
    return pl_session_new(graph, runtime, &session, &error);
}

/* What the test has freed itself is NULL. */
static inline int finish(void **state)
{
    pl_session_free(PL_TAKE(session));
    teardown(state);
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    pl_runtime_unref(PL_TAKE(runtime));
    return rmdir(folder); /* nothing is left in it */
}

/* first, first + 1, ... */
static inline pl_tensor *tensor_named(const char *name, double first, int64_t n)
{
    pl_tensor *tensor;
    const pl_shape shape = PL_SHAPE(n);
    double *data = malloc((size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++)
        data[i] = first + (double)i;
    if (pl_tensor_new(runtime, PL_F64, &shape, data, name, &tensor, &error) < 0)
        fail_msg("%s", error.message);
    free(data);
    return tensor;
}

static inline double element_of(pl_tensor *tensor, int64_t number)
{
    double value;
    const int64_t at[PL_RANK_MAX] = {number}, one[PL_RANK_MAX] = {1};
    if (pl_tensor_read(tensor, at, one, &value, &error) < 0)
        fail_msg("%s", error.message);
    return value;
}

static inline pl_node *constant_of(const char *name, double first, int64_t n)
{
    pl_node *node;
    const pl_shape shape = PL_SHAPE(n);
    assert_int_equal(pl_graph_constant(graph, name, PL_F64, &shape, &node, &error), 0);
    pl_tensor *tensor = tensor_named("given", first, n);
    assert_int_equal(pl_constant_set(node, tensor, &error), 0);
    pl_tensor_unref(tensor);
    return node;
}

static inline pl_node *variable_of(const char *name, double first, int64_t n)
{
    pl_node *node;
    const pl_shape shape = PL_SHAPE(n);
    assert_int_equal(pl_graph_variable(graph, name, PL_F64, &shape, &node, &error), 0);
    pl_tensor *tensor = tensor_named("given", first, n);
    assert_int_equal(pl_session_set(session, node, tensor, &error), 0);
    pl_tensor_unref(tensor);
    return node;
}

/* The result is the caller's; NULL and `error` if it failed. */
static inline pl_tensor *run_for(pl_node *fetch, const pl_run_options *options, int *ret_code)
{
    pl_tensor *result = NULL;
    const pl_fetch fetches = {fetch, NULL};
    *ret_code = pl_session_run(session, &fetches, 1, NULL, 0, options, &result, &error);
    return result;
}

static inline pl_tensor *must_run(pl_node *fetch)
{
    int r;
    pl_tensor *result = run_for(fetch, NULL, &r);
    if (r < 0)
        fail_msg("%s", error.message);
    return result;
}

#endif
