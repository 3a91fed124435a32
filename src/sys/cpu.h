/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the processors that a process can really use.
 *   allowed  the processors of its affinity mask: libraries count these to choose their threads
 *   quota    processor time per time, of a cgroup: v1 cpu.cfs_quota_us over cpu.cfs_period_us, v2
 *            cpu.max; each ancestor's holds. $CPU_LIMIT, which JupyterHub sets, is one more
 *   usable   the smallest of these, rounded up, at least 1
 *
 * A used-up quota stops all threads for the rest of the period, so more threads than usable
 * processors finish later than as many as there are. Never allocates. Safe from any thread. */
#ifndef PL_SYS_CPU_H
#define PL_SYS_CPU_H

#include "base/base.h"

typedef struct pl_cpu {
    unsigned n_allowed;
    unsigned n_usable; /* 1 <= n_usable <= n_allowed */
} pl_cpu;

/* Reads the processors of the caller. `root` is prepended to every path: "" for the real system, a
 * folder with a fake tree in tests. A cgroup that cannot be read sets no quota. */
PL_MUST_CHECK int pl_cpu_read(const char *root, pl_cpu *ret_cpu);

#endif
