/* SPDX-License-Identifier: Apache-2.0 */
/* How many processors a process can really use.
 *   allowed  the processors of its affinity mask: what libraries count to choose their threads
 *   quota    processor time per time, of a cgroup: v1 cpu.cfs_quota_us over cpu.cfs_period_us, v2
 *            cpu.max; each ancestor's holds. $CPU_LIMIT, which JupyterHub sets, is one more
 *   usable   the smallest of these, rounded up, at least 1
 *
 * A quota stops all threads for the rest of a period once it is used up, so more threads than
 * usable processors finish later than as many. Never allocates. Safe from any thread. */
#ifndef PL_SYS_CPU_H
#define PL_SYS_CPU_H

#include "base/base.h"

typedef struct pl_cpu {
    unsigned n_allowed;
    unsigned n_usable; /* 1 <= n_usable <= n_allowed */
} pl_cpu;

/* Reads those of the caller. `root` stands before every path: "" is the real system, tests give a
 * folder with a tree of their own. A cgroup that cannot be read sets no quota. */
PL_MUST_CHECK int pl_cpu_read(const char *root, pl_cpu *ret_cpu);

#endif
