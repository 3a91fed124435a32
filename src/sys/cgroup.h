/* SPDX-License-Identifier: Apache-2.0 */
/* The memory cgroup of a process, version 1 or 2, and what its ancestors allow.
 *   group    a folder of the memory controller's hierarchy
 *   own      the group that holds the process or, where the controller is not enabled that deep or
 *            a container does not show it, the nearest ancestor that can be seen
 *   level    the own group (level 0), then each ancestor, inner to outer: a limit may be set later
 *   limit    v1 memory.limit_in_bytes; v2 the smaller of memory.max and memory.high: above `high`
 *            nothing is killed, but every allocation is made to wait. Swap is not counted:
 *            memory.memsw never limits memory below memory.limit_in_bytes
 *   usage    what is charged to a group and its descendants, less the file cache, which the kernel
 *            gives up before it kills
 *
 * Descriptors of the counters stay open between init and done, because the supervisor reads them
 * many times a second. Never allocates. One thread at a time may init or done; any may read. */
#ifndef PL_SYS_CGROUP_H
#define PL_SYS_CGROUP_H

#include <sys/types.h>

#include "base/base.h"

enum {
    PL_CGROUP_PATH_BYTES = 1024,
    PL_CGROUP_LEVELS = 32, /* what lies further out is ignored */
    PL_CGROUP_LIMIT_FILES = 2,
};

typedef struct pl_cgroup_level {
    uint64_t limit_bytes;                              /* as read last; 0 = none */
    const char *limit_file;                            /* "memory.max" ...; NULL without a limit */
    uint64_t file_limits_bytes[PL_CGROUP_LIMIT_FILES]; /* each as read last; 0 = none */
    size_t path_length; /* its folder is that much of pl_cgroup's path */
    int limit_fds[PL_CGROUP_LIMIT_FILES];
    int usage_fd;
    int stat_fd;
    int events_fd; /* memory.events, of v2; -1 otherwise */
} pl_cgroup_level;

typedef struct pl_cgroup {
    int version;                     /* 1 or 2; 0: none can be seen */
    char path[PL_CGROUP_PATH_BYTES]; /* folder of the own group; "" = none */
    int n_levels;
    int tightest; /* the level that had least left at the last look; -1: nothing is limited */
    int kills_fd;
    int pressure_fd;      /* of the own group, or of the machine */
    bool pressure_is_own; /* which of them */
    pl_cgroup_level levels[PL_CGROUP_LEVELS];
} pl_cgroup;

/* Finds the memory cgroup of `pid` (0: the caller). `root` is prepended to every path: "" for the
 * real system, a folder with a fake tree in tests. -ENOENT when no memory cgroup can be seen:
 * `cgroup` is then empty but valid for all functions here. */
PL_MUST_CHECK int pl_cgroup_init(pl_cgroup *cgroup, const char *root, pid_t pid);
void pl_cgroup_done(pl_cgroup *cgroup);

/* A change of a limit. */
typedef struct pl_cgroup_change {
    int level;
    const char *file;     /* "memory.max" ... */
    uint64_t limit_bytes; /* as it is now; 0 = lifted */
} pl_cgroup_change;

/* Reads the limits again: Kubernetes and systemd change them while programs run. True when the
 * limit of a level has changed: *ret_change then describes the change at the level that has least
 * left now, or else at the innermost that changed. A limit that cannot be read (its group is gone)
 * keeps its value. */
bool pl_cgroup_refresh(pl_cgroup *cgroup, pl_cgroup_change *ret_change);

/* The smallest limit over all levels; 0 = none. */
uint64_t pl_cgroup_limit_bytes(const pl_cgroup *cgroup);

/* Returns the usage of the tightest level or, without any limit, of the own group. About 10 us. */
PL_MUST_CHECK int pl_cgroup_usage_bytes(const pl_cgroup *cgroup, uint64_t *ret_bytes);
PL_MUST_CHECK int pl_cgroup_level_usage_bytes(const pl_cgroup *cgroup, int level,
                                              uint64_t *ret_bytes);

/* Returns how many tasks of the own group the OOM killer has ended, whichever limit it enforced; on
 * v2 those of its descendants too. Ancestors are not asked: on v1 they do not count a descendant's
 * kills, and on v2 they count our siblings'. Compare with a baseline: it counts from the group's
 * birth. */
PL_MUST_CHECK int pl_cgroup_oom_kills(const pl_cgroup *cgroup, uint64_t *ret_n_kills);

/* Reads the same count for the group in folder `path`, for a reader that has only the cgroup_path
 * of a record. The group may be gone and another have its name: compare pl_cgroup_id_at() with the
 * record's. */
PL_MUST_CHECK int pl_cgroup_oom_kills_at(const char *path, uint64_t *ret_n_kills);

/* Returns the inode of the folder `path`, which identifies the group: it is unique since the
 * machine was started. */
PL_MUST_CHECK int pl_cgroup_id_at(const char *path, uint64_t *ret_id);

/* Returns how often a task was made to wait because a group was above its memory.high, over all
 * levels that have this limit. 0 on v1. */
uint64_t pl_cgroup_throttles(const pl_cgroup *cgroup);

/* Lists the processes of the own group, not of its descendants; at most `max`. Leaves out those of
 * another pid namespace. Returns how many there are. */
PL_MUST_CHECK int pl_cgroup_pids(const pl_cgroup *cgroup, pid_t *ret_pids, int max);

/* Time that tasks have stalled for memory (PSI), in the own group on v2, else on the machine. The
 * share of an interval is the difference of two readings over its length. */
typedef struct pl_cgroup_pressure {
    uint64_t some_us; /* at least one task waited */
    uint64_t full_us; /* all of them waited */
} pl_cgroup_pressure;

/* -ENOENT on a kernel without PSI. */
PL_MUST_CHECK int pl_cgroup_pressure_read(const pl_cgroup *cgroup,
                                          pl_cgroup_pressure *ret_pressure);

#endif
