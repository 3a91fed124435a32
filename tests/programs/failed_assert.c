/* SPDX-License-Identifier: Apache-2.0 */
/* Dies of SIGABRT: an assertion that does not hold. */
#undef NDEBUG
#include <assert.h>

void check_square(int n_rows, int n_columns);

__attribute__((noinline)) void check_square(int n_rows, int n_columns)
{
    assert(n_rows == n_columns);
}

int main(int argc, char **argv)
{
    (void)argv;
    check_square(argc, argc + 1);
    return 0;
}
