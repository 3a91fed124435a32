/* SPDX-License-Identifier: Apache-2.0 */
/* Dies of SIGABRT by glibc's own checks: "overrun" writes over the size of the heap's top chunk
 * ("malloc(): corrupted top size"), "double-free" frees a block twice. */
#include <stdlib.h>
#include <string.h>

void write_past_the_end(char *block, size_t n);
void free_twice(void *block);

/* volatile: the compiler may neither see the mistakes nor drop what leads to them. */
static void *volatile kept;

__attribute__((noinline)) void write_past_the_end(char *block, size_t n)
{
    for (size_t i = 0; i < n + 16; i++)
        ((volatile char *)block)[i] = (char)0xff;
}

__attribute__((noinline)) void free_twice(void *block)
{
    kept = block;
    free(block);
    free(kept);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "double-free") == 0) {
        free_twice(malloc(24));
        return 0;
    }
    /* 100,000: more than any bin holds, so the block is cut from the top and ends where it begins.
     */
    enum { BLOCK_BYTES = 100000 };
    char *block = malloc(BLOCK_BYTES);
    if (block == NULL)
        return 2;
    write_past_the_end(block, BLOCK_BYTES);
    kept = malloc(BLOCK_BYTES);
    return 0;
}
