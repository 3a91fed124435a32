/* SPDX-License-Identifier: Apache-2.0 */
/* The guard's worst case: a program that does little but allocate. Two threads each keep a set of
 * live blocks of 16 to 512 bytes and replace one at random, touching its first bytes.
 *
 * Usage: malloc_loop [SCALE]. Prints a checksum of the sizes, the same for every allocator. */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "region.h"

enum {
    N_THREADS = 2,
    N_LIVE = 1000,
    MIN_BYTES = 16,
    MAX_BYTES = 512,
    TOUCHED_BYTES = 16,
};

/* About 3 s of CPU time in all on the machine of docs/benchmarks.md. */
static const double FULL_REPLACEMENTS = 60e6;

/* Each on cache lines of its own (pairs are fetched together): two threads that write to one line
 * cost each other more than any allocator does, and differently in every run. */
struct worker {
    _Alignas(128) pthread_t thread;
    uint64_t n_replacements;
    uint64_t random_state;
    uint64_t checksum;
    int failed;
};

/* xorshift64 (Marsaglia 2003): a few instructions, so that the allocator stays the work. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static void replace_blocks(struct worker *worker)
{
    void *live[N_LIVE] = {NULL};

    for (uint64_t i = 0; i < worker->n_replacements && !worker->failed; i++) {
        uint64_t random = next_random(&worker->random_state);
        size_t slot = (size_t)(random % N_LIVE);
        size_t bytes = MIN_BYTES + (size_t)((random >> 32) % (MAX_BYTES - MIN_BYTES + 1));

        free(live[slot]);
        live[slot] = malloc(bytes);
        if (live[slot])
            memset(live[slot], (int)i, TOUCHED_BYTES);
        else
            worker->failed = 1;
        worker->checksum += bytes;
    }

    for (size_t slot = 0; slot < N_LIVE; slot++)
        free(live[slot]);
}

static void *run_worker(void *arg)
{
    replace_blocks(arg);
    return NULL;
}

static int run_workers(struct worker workers[N_THREADS])
{
    int n_started = 0;
    while (n_started < N_THREADS &&
           pthread_create(&workers[n_started].thread, NULL, run_worker, &workers[n_started]) == 0)
        n_started++;

    int failed = n_started < N_THREADS;
    for (int i = 0; i < n_started; i++) {
        pthread_join(workers[i].thread, NULL);
        failed |= workers[i].failed;
    }
    return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    double scale = argc > 1 ? strtod(argv[1], NULL) : 1.0;
    struct worker workers[N_THREADS] = {0};
    for (int i = 0; i < N_THREADS; i++) {
        workers[i].n_replacements = (uint64_t)(scale * FULL_REPLACEMENTS);
        workers[i].random_state = UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)i;
    }

    region_begin();
    int r = run_workers(workers);
    region_end();
    if (r < 0) {
        fputs("malloc_loop: a thread or an allocation failed\n", stderr);
        return 1;
    }
    printf("%" PRIu64 "\n", workers[0].checksum + workers[1].checksum);
    return 0;
}
