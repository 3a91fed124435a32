/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of bench/ on datasets have in common: they end at the first error, and tell
 * times. */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "plimsoll/dataset.h"

static pl_error error;

static void check(int code)
{
    if (code >= 0)
        return;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, error.message);
    exit(1);
}

static double now(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

typedef struct start {
    double seconds, cpu_seconds;
    long n_faults;
} start;

__attribute__((unused)) static start start_now(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (start){now(CLOCK_MONOTONIC), now(CLOCK_PROCESS_CPUTIME_ID), usage.ru_minflt};
}

/* What was done, seconds, CPU seconds, page faults, and a sum of values. */
__attribute__((unused)) static void print_since(const start *from, int64_t n, double sum)
{
    start to = start_now();
    printf("%" PRId64 " %.6f %.6f %ld %.6g\n", n, to.seconds - from->seconds,
           to.cpu_seconds - from->cpu_seconds, to.n_faults - from->n_faults, sum);
}

#endif
