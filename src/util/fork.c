/* SPDX-License-Identifier: Apache-2.0 */
/* See fork.h. */
#include "util/fork.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic uint32_t generation;
static int watch_result;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
    atomic_fetch_add(&generation, 1);
}

static void watch(void)
{
    watch_result = -pthread_atfork(NULL, NULL, count_fork);
}

int pl_fork_watch(void)
{
    pthread_once(&watch_once, watch);
    return watch_result;
}

uint32_t pl_fork_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}
