/* SPDX-License-Identifier: Apache-2.0 */
/* Dies of SIGFPE: an integer division by zero. */
#include <stdio.h>

int rows_per_batch(int n_rows, int n_batches);

__attribute__((noinline)) int rows_per_batch(int n_rows, int n_batches)
{
    return n_rows / n_batches;
}

int main(int argc, char **argv)
{
    (void)argv;
    printf("%d\n", rows_per_batch(1000, argc - 1));
    return 0;
}
