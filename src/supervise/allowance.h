/* SPDX-License-Identifier: Apache-2.0 */
/* Computes how much the memory cgroups above a run leave it now: limits change while it runs, and
 * others in the same groups grow.
 *   own        usage of the own group, less the private memory of its other processes
 *   gained     own, since the start: ours, with memory that is resident in no process (page tables,
 *              shared memory, kernel memory); never less than the tree's processes use
 *   others     of a limited level: its usage less gained. The siblings of the own group and the
 *              other processes in it use this
 *   gives      the least, over the limited levels, of limit less others
 *   alone      the same with the others as they were at the start: only a limit can change it
 *
 * Read by the supervisor alone. Allocates nothing. */
#ifndef PL_SUPERVISE_ALLOWANCE_H
#define PL_SUPERVISE_ALLOWANCE_H

#include "base/base.h"
#include "supervise/process_tree.h"
#include "sys/cgroup.h"

enum { PL_ALLOWANCE_NEIGHBOURS = 512 };

/* Another process of the own group. */
typedef struct pl_neighbour {
    pid_t pid;
    uint64_t first_bytes; /* private, when first seen: 0 for one that came after the start */
    uint64_t bytes;
    bool seen;
} pl_neighbour;

typedef struct pl_allowance {
    pl_cgroup cgroup;
    uint64_t own_baseline_bytes;
    uint64_t others_baseline_bytes[PL_CGROUP_LEVELS];

    /* From the last reading. UINT64_MAX in the last three: no level is limited. */
    bool limits_changed;
    pl_cgroup_change change; /* if so: the change */
    uint64_t gained_bytes;
    uint64_t others_bytes;        /* in the level that decides `gives` */
    uint64_t others_gained_bytes; /* since the start, there */
    int tightest;                 /* that level; -1: none */
    uint64_t left_bytes;          /* the least of limit less usage */
    uint64_t gives_bytes;
    uint64_t alone_bytes;

    int n_neighbours;
    pl_neighbour neighbours[PL_ALLOWANCE_NEIGHBOURS];
} pl_allowance;

/* -ENOENT where no memory cgroup can be seen: nothing is limited then. Reads the baselines, so call
 * it before the command starts. */
PL_MUST_CHECK int pl_allowance_init(pl_allowance *allowance, const char *root);
void pl_allowance_done(pl_allowance *allowance);

/* `tree` is ours, read just before; NULL: so far there is only the caller. */
void pl_allowance_read(pl_allowance *allowance, const pl_process_tree *tree);

/* Returns the other process of the own group that grew most; pid 0: none that can be seen did. */
pl_neighbour pl_allowance_who_grew(const pl_allowance *allowance);

#endif
