/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what takes long is to stop half way. Whoever computes asks now and then, from any thread,
 * and then leaves all as it is. */
#ifndef PL_BASE_STOP_H
#define PL_BASE_STOP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct pl_stop {
    bool (*asked)(const void *context); /* NULL: never */
    const void *context;
} pl_stop;

static inline bool pl_must_stop(pl_stop stop)
{
    return stop.asked && stop.asked(stop.context);
}

#endif
