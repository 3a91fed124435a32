/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of an .npy file to batches, in order or shuffled. For bench/datasets.py.
 *   rows FILE BATCH_BYTES SHUFFLE CAP_BYTES
 * CAP_BYTES is the most that values may take; 0: what there is. Goes through it twice, and prints
 * bytes, seconds and CPU seconds of the second time: in the first the batches' memory is touched,
 * and the threads that libraries start for themselves (OpenBLAS) look out for work for a tenth of a
 * second before they sleep. */
#include "program.h"

static uint64_t go_through(pl_dataset *dataset)
{
    pl_iterator *iterator;
    uint64_t bytes = 0;
    check(pl_iterator_new(dataset, &iterator, &error));
    for (pl_value value; pl_iterator_next(iterator, &value, &error) > 0;) {
        bytes += pl_tensor_bytes(value.tensor);
        pl_tensor_unref(value.tensor);
    }
    pl_iterator_free(iterator);
    return bytes;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    pl_runtime *runtime;
    pl_tensor *tensor;
    pl_dataset *rows, *dataset;
    const pl_runtime_options options = {.cap_bytes = strtoull(argv[4], NULL, 10)};
    check(pl_runtime_new(&options, &runtime, &error));
    check(pl_tensor_open_npy(runtime, argv[1], &tensor, &error));
    int64_t n = pl_tensor_shape(tensor)->dims[0];
    uint64_t row_bytes = pl_tensor_bytes(tensor) / (uint64_t)n;
    check(pl_dataset_from_slices(runtime, &tensor, 1, &rows, &error));
    if (atoi(argv[3]))
        check(pl_dataset_shuffle(rows, n, 1, true, &rows, &error));
    check(pl_dataset_batch(rows, (int64_t)(strtoull(argv[2], NULL, 10) / row_bytes), false,
                           &dataset, &error));
    go_through(dataset);
    double begin = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t bytes = go_through(dataset);
    printf("%" PRIu64 " %.6f %.6f\n", bytes, now(CLOCK_MONOTONIC) - begin,
           now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    return 0;
}
