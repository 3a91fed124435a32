/* SPDX-License-Identifier: Apache-2.0 */
/* Dies of SIGSEGV: recursion without end, in the main thread ("main") or in another ("thread"). */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

int descend(int depth);
static volatile int deepest = 1 << 30;

__attribute__((noinline)) int descend(int depth)
{
    volatile char page[4096];
    page[depth % 4096] = (char)depth;
    if (depth == deepest)
        return page[0];
    return descend(depth + 1) + page[1];
}

static void *run(void *argument)
{
    (void)argument;
    printf("%d\n", descend(1));
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "thread") != 0) {
        run(NULL);
        return 0;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0)
        return 2;
    pthread_join(thread, NULL);
    return 0;
}
