/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the whole machine. `root` is prepended to every path: "" for the real system, a folder
 * with a fake tree in tests. Never allocates. */
#ifndef PL_SYS_MACHINE_H
#define PL_SYS_MACHINE_H

#include "base/base.h"

typedef struct pl_machine_memory {
    uint64_t total_bytes;
    uint64_t available_bytes; /* the kernel's estimate of the memory available without swapping */
} pl_machine_memory;

/* PL_EFORMAT when /proc/meminfo lacks one of the two. */
PL_MUST_CHECK int pl_machine_memory_read(const char *root, pl_machine_memory *ret_memory);

/* Counts the tasks that the OOM killer has ended since boot, in every cgroup and outside of any. */
PL_MUST_CHECK int pl_machine_oom_kills(const char *root, uint64_t *ret_n_kills);

#endif
