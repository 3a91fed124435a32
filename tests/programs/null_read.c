/* SPDX-License-Identifier: Apache-2.0 */
/* Dies of SIGSEGV: reads through a null pointer, three named functions deep. */
#include <stddef.h>
#include <stdio.h>

int read_row(const int *row);
int sum_rows(const int *row, int n);

__attribute__((noinline)) int read_row(const int *row)
{
    return *(volatile const int *)row;
}

__attribute__((noinline)) int sum_rows(const int *row, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += read_row(row);
    return sum + 1; /* keeps the call above from becoming a jump */
}

int main(int argc, char **argv)
{
    (void)argv;
    printf("about to read\n");
    fflush(stdout);
    return sum_rows(NULL, argc);
}
