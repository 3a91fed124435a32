/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of numbers on the runtime of each test. */
#ifndef TESTS_UNIT_DATASET_FIXTURE_H
#define TESTS_UNIT_DATASET_FIXTURE_H

#include "session_fixture.h"

#include "plimsoll/dataset.h"

static inline pl_dataset *must(int r, pl_dataset *dataset)
{
    if (r < 0)
        fail_msg("%s", error.message);
    return dataset;
}

static inline pl_dataset *range(int64_t n)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_range(runtime, 0, n, 1, &dataset, &error);
    return must(r, dataset);
}

/* Over an input that the caller gives away. */
static inline pl_dataset *batched(pl_dataset *input, int64_t n, bool drop_remainder)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_batch(input, n, drop_remainder, &dataset, &error);
    pl_dataset_unref(input);
    return must(r, dataset);
}

static inline pl_dataset *prefetched(pl_dataset *input, int64_t n)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_prefetch(input, n, &dataset, &error);
    pl_dataset_unref(input);
    return must(r, dataset);
}

static inline pl_dataset *mapped(pl_dataset *input, pl_dataset_call *call, int n_parallel)
{
    static const pl_spec spec = {.dtype = PL_I64};
    const pl_function function = {
        .call = call, .output_specs = &spec, .n_inputs = 1, .n_outputs = 1};
    pl_dataset *dataset = NULL;
    int r = pl_dataset_map(input, &function, n_parallel, &dataset, &error);
    pl_dataset_unref(input);
    return must(r, dataset);
}

static inline pl_dataset *with(pl_dataset *input, pl_dataset_options options)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_with_options(input, &options, &dataset, &error);
    pl_dataset_unref(input);
    return must(r, dataset);
}

static inline pl_iterator *pass_over(pl_dataset *dataset)
{
    pl_iterator *iterator = NULL;
    int r = pl_iterator_new(dataset, &iterator, &error);
    pl_dataset_unref(dataset);
    if (r < 0)
        fail_msg("%s", error.message);
    return iterator;
}

static inline int64_t number_in(pl_tensor *tensor, int64_t at)
{
    int64_t value;
    const int64_t from[PL_RANK_MAX] = {at}, one[PL_RANK_MAX] = {1};
    if (pl_tensor_read(tensor, from, one, &value, &error) < 0)
        fail_msg("%s", error.message);
    return value;
}

/* The next element, a number; INT64_MIN at the end. */
static inline int64_t next_number(pl_iterator *iterator)
{
    pl_value value;
    int r = pl_iterator_next(iterator, &value, &error);
    if (r < 0)
        fail_msg("%s", error.message);
    if (r == 0)
        return INT64_MIN;
    int64_t number = number_in(value.tensor, 0);
    pl_tensor_unref(value.tensor);
    return number;
}

#endif
