/* SPDX-License-Identifier: Apache-2.0 */
/* short_threads N: N threads, eight at a time, each with allocations of its own that it gives back,
 * and one block that the main thread frees. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 8, BLOCKS = 32 };

static void *work(void *argument)
{
    void *blocks[BLOCKS];
    (void)argument;
    for (int i = 0; i < BLOCKS; i++) {
        size_t n = (size_t)16 << (i % 12);
        blocks[i] = malloc(n);
        if (blocks[i] == NULL)
            return NULL;
        memset(blocks[i], i, n);
    }
    for (int i = 1; i < BLOCKS; i++)
        free(blocks[i]);
    return blocks[0];
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : AT_ONCE, n_done = 0;
    for (int i = 0; i < n; i += AT_ONCE) {
        pthread_t threads[AT_ONCE];
        for (int j = 0; j < AT_ONCE; j++)
            if (pthread_create(&threads[j], NULL, work, NULL) != 0)
                return 2;
        for (int j = 0; j < AT_ONCE; j++) {
            void *block = NULL;
            pthread_join(threads[j], &block);
            n_done += block != NULL;
            free(block);
        }
    }
    printf("%d threads\n", n_done);
    return 0;
}
