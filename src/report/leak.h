/* SPDX-License-Identifier: Apache-2.0 */
/* Did memory rise steadily to the line? Pure: points in, a slope out. Steady means that a straight
 * line explains the rise: one large allocation is not a leak, and neither is a saw-tooth that frees
 * its memory again. */
#ifndef PL_REPORT_LEAK_H
#define PL_REPORT_LEAK_H

#include "base/base.h"

typedef struct pl_leak_point {
    double time_s;
    uint64_t bytes;
} pl_leak_point;

typedef struct pl_leak {
    bool found;
    double bytes_per_s;
    uint64_t from_bytes;
    uint64_t to_bytes;
    double over_s;
} pl_leak;

/* Points in order of time. `limit_bytes` is the line that the rise has to reach. */
pl_leak pl_leak_find(const pl_leak_point *points, size_t n, uint64_t limit_bytes);

#endif
