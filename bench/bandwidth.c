/* SPDX-License-Identifier: Apache-2.0 */
/* What the memory gives: the lines that bench/moves.py holds the runtime against. Each function
 * works with two threads and returns the seconds that it took, less the start of the threads. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { N_THREADS = 2, ALIGN = 64 };

typedef struct part {
    const char *from;
    char *to; /* NULL: only read */
    size_t bytes;
    int n_times;
    uint64_t sum;
    pthread_barrier_t *ready;
} part;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t read_all(const char *data, size_t bytes)
{
    const uint64_t *words = (const uint64_t *)(const void *)data;
    uint64_t sums[16] = {0};
    size_t n = bytes / sizeof(uint64_t);
    for (size_t i = 0; i + 16 <= n; i += 16)
        for (size_t lane = 0; lane < 16; lane++)
            sums[lane] += words[i + lane];
    for (size_t lane = 1; lane < 16; lane++)
        sums[0] += sums[lane];
    return sums[0];
}

static void *work(void *context)
{
    part *p = context;
    pthread_barrier_wait(p->ready);
    for (int i = 0; i < p->n_times; i++) {
        if (p->to)
            memcpy(p->to, p->from, p->bytes);
        else
            p->sum += read_all(p->from, p->bytes);
        __asm__ volatile("" ::: "memory");
    }
    return NULL;
}

static double run(const char *from, char *to, size_t bytes, int n_times)
{
    pthread_t threads[N_THREADS];
    part parts[N_THREADS];
    pthread_barrier_t ready;
    size_t each = bytes / N_THREADS / ALIGN * ALIGN;
    pthread_barrier_init(&ready, NULL, N_THREADS + 1);
    for (int i = 0; i < N_THREADS; i++) {
        parts[i] = (part){
            from + (size_t)i * each, to ? to + (size_t)i * each : NULL, each, n_times, 0, &ready};
        pthread_create(&threads[i], NULL, work, &parts[i]);
    }
    pthread_barrier_wait(&ready);
    double begin = seconds();
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    double taken = seconds() - begin;
    pthread_barrier_destroy(&ready);
    return taken;
}

/* `n_times` copies, into new memory if it is large (which is what a result is), else into the same.
 */
double bandwidth_copy(const char *from, size_t bytes, int n_times)
{
    char *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED)
        return 0;
    madvise(to, bytes, MADV_HUGEPAGE);
    if (n_times > 1)
        memset(to, 1, bytes);
    double taken = run(from, to, bytes, n_times);
    munmap(to, bytes);
    return taken;
}

double bandwidth_read(const char *from, size_t bytes, int n_times)
{
    return run(from, NULL, bytes, n_times);
}
