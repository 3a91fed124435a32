/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the folder of a process's cgroup in the file system. For cgroup.c and cpu.c only. */
#ifndef PL_SYS_CGROUP_FIND_H
#define PL_SYS_CGROUP_FIND_H

#include "sys/cgroup.h"

typedef struct pl_cgroup_place {
    int version;
    size_t mount_length;             /* the length of the mount point in `path` */
    char path[PL_CGROUP_PATH_BYTES]; /* the group's folder; it exists */
} pl_cgroup_place;

/* `controller` is "memory" or "cpu". -ENOENT when the process has no cgroup of it, or no mount
 * shows it. */
PL_MUST_CHECK int pl_cgroup_find(const char *root, pid_t pid, const char *controller,
                                 pl_cgroup_place *ret_place);

#endif
