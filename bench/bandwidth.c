/* SPDX-License-Identifier: Apache-2.0 */
/* What the memory gives: the lines that bench/moves.py holds the runtime against. Each function
 * works with two threads and returns the seconds that it took, from when the first thread began to
 * when the last had ended, and *ret_cpu the CPU time of both, which others on the machine change
 * less.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { N_THREADS = 2, ALIGN = 64, PIECE = 65536 };

typedef struct part {
    const char *from;
    char *to; /* NULL: only read */
    size_t bytes, to_bytes;
    int n_times;
    uint64_t sum;
    pthread_barrier_t *ready;
    double begin, end, cpu;
} part;

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
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

/* Reads all of `from`, piece by piece, and writes all of `to`: what is longer there is copied from
 * what was read just now, and what is shorter is read and goes nowhere. */
static uint64_t move_all(const part *p)
{
    uint64_t sum = 0;
    for (size_t at = 0; at < p->to_bytes; at += PIECE) {
        size_t n = p->to_bytes - at < PIECE ? p->to_bytes - at : PIECE;
        double share = (double)p->bytes / (double)p->to_bytes;
        size_t begin = (size_t)((double)at * share), end = (size_t)((double)(at + n) * share);
        memcpy(p->to + at, p->from + begin / ALIGN * ALIGN, n);
        if (end > begin + n)
            sum += read_all(p->from + (begin + n) / ALIGN * ALIGN, end - begin - n);
    }
    return sum;
}

static void *work(void *context)
{
    part *p = context;
    pthread_barrier_wait(p->ready);
    p->begin = seconds(CLOCK_MONOTONIC);
    p->cpu = -seconds(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < p->n_times; i++) {
        p->sum += p->to ? move_all(p) : read_all(p->from, p->bytes);
        __asm__ volatile("" ::: "memory");
    }
    p->cpu += seconds(CLOCK_THREAD_CPUTIME_ID);
    p->end = seconds(CLOCK_MONOTONIC);
    return NULL;
}

static double run(const char *from, size_t bytes, char *to, size_t to_bytes, int n_times,
                  double *ret_cpu)
{
    pthread_t threads[N_THREADS];
    part parts[N_THREADS];
    pthread_barrier_t ready;
    size_t each = bytes / N_THREADS / ALIGN * ALIGN;
    size_t to_each = to_bytes / N_THREADS / ALIGN * ALIGN;
    pthread_barrier_init(&ready, NULL, N_THREADS);
    for (int i = 0; i < N_THREADS; i++) {
        parts[i] = (part){.from = from + (size_t)i * each,
                          .to = to ? to + (size_t)i * to_each : NULL,
                          .bytes = each,
                          .to_bytes = to_each,
                          .n_times = n_times,
                          .ready = &ready};
        pthread_create(&threads[i], NULL, work, &parts[i]);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&ready);
    double begin = parts[0].begin, end = parts[0].end;
    *ret_cpu = 0;
    for (int i = 0; i < N_THREADS; i++) {
        begin = parts[i].begin < begin ? parts[i].begin : begin;
        end = parts[i].end > end ? parts[i].end : end;
        *ret_cpu += parts[i].cpu;
    }
    return end - begin;
}

/* Reads `bytes` and writes `to_bytes`, `n_times`: to new memory if that is large (which is what a
 * result is), else to the same. From `from` on there must be as much as is written, too. */
double bandwidth_copy(const char *from, size_t bytes, size_t to_bytes, int n_times, double *ret_cpu)
{
    char *to = mmap(NULL, to_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED)
        return 0;
    madvise(to, to_bytes, MADV_HUGEPAGE);
    if (n_times > 1)
        memset(to, 1, to_bytes);
    double taken = run(from, bytes, to, to_bytes, n_times, ret_cpu);
    munmap(to, to_bytes);
    return taken;
}

double bandwidth_read(const char *from, size_t bytes, int n_times, double *ret_cpu)
{
    return run(from, bytes, NULL, 0, n_times, ret_cpu);
}
