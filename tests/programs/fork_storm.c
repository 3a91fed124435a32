/* SPDX-License-Identifier: Apache-2.0 */
/* fork_storm N: forks N times from a process whose other threads allocate all the while. Each child
 * allocates, frees what its parent left it, and ends in one of three ways: exit, _exit, SIGKILL. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_THREADS = 3, LARGE_BYTES = 2 << 20 };
static atomic_bool stop;

static void *churn(void *argument)
{
    while (!atomic_load(&stop)) {
        void *small = malloc(200), *large = malloc(LARGE_BYTES);
        if (small == NULL || large == NULL)
            abort();
        free(large);
        free(small);
    }
    return argument;
}

static void live_and_die(char *inherited, int how)
{
    char *own = malloc(LARGE_BYTES);
    if (own == NULL)
        _exit(2);
    memset(own, 1, LARGE_BYTES);
    free(inherited);
    if (how == 0)
        exit(0);
    if (how == 1)
        _exit(0);
    raise(SIGKILL);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1, n_bad = 0;
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        if (pthread_create(&threads[i], NULL, churn, NULL) != 0)
            return 2;
    for (int i = 0; i < n; i++) {
        char *inherited = malloc(LARGE_BYTES);
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            live_and_die(inherited, i % 3);
        if (child < 0 || waitpid(child, &status, 0) != child)
            return 2;
        free(inherited);
        n_bad += i % 3 == 2 ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL : status != 0;
    }
    atomic_store(&stop, true);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d forks, %d bad\n", n, n_bad);
    return n_bad != 0;
}
