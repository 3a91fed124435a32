/* SPDX-License-Identifier: Apache-2.0 */
/* Reserves N MiB by malloc() and as many by mmap(), touches `touched` of each, and asks for N more.
 *     untouched N TOUCHED
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    size_t n = strtoul(argv[1], NULL, 10) << 20, touched = strtoul(argv[2], NULL, 10) << 20;
    char *block = malloc(n);
    char *mapping = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!block || mapping == MAP_FAILED)
        return 1;
    memset(block, 1, touched);
    memset(mapping, 1, touched);
    puts(malloc(n) ? "granted" : "refused");
    free(block);
    munmap(mapping, n);
    return 0;
}
