/* SPDX-License-Identifier: Apache-2.0 */
/* Asks whether a long computation should stop half way. The code that computes asks now and then,
 * from any thread, and on a yes returns without changing anything more. */
#ifndef PL_BASE_STOP_H
#define PL_BASE_STOP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct pl_stop {
    bool (*asked)(const void *context); /* NULL: never stop */
    const void *context;
} pl_stop;

static inline bool pl_must_stop(pl_stop stop)
{
    return stop.asked && stop.asked(stop.context);
}

#endif
