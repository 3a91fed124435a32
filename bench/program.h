/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of bench/ on datasets have in common: they end at the first error, and tell
 * times. */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

#endif
