/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/allowance.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/proc.h"

static bool is_ours(const pl_process_tree *tree, pid_t pid)
{
    if (pid == getpid())
        return true;
    for (int i = 0; tree && i < tree->n; i++)
        if (tree->processes[i].pid == pid)
            return true;
    return false;
}

static pl_neighbour *find_neighbour(pl_allowance *allowance, pid_t pid)
{
    for (int i = 0; i < allowance->n_neighbours; i++)
        if (allowance->neighbours[i].pid == pid)
            return &allowance->neighbours[i];
    if (allowance->n_neighbours == PL_ALLOWANCE_NEIGHBOURS)
        return NULL;
    pl_neighbour *neighbour = &allowance->neighbours[allowance->n_neighbours++];
    *neighbour = (pl_neighbour){.pid = pid};
    return neighbour;
}

static void drop_gone(pl_allowance *allowance)
{
    int kept = 0;
    for (int i = 0; i < allowance->n_neighbours; i++)
        if (allowance->neighbours[i].seen)
            allowance->neighbours[kept++] = allowance->neighbours[i];
    allowance->n_neighbours = kept;
}

/* Reads the private memory of the other processes in our group. A child of ours that was started
 * since the tree was read counts as another until the next reading; it is still small. */
static uint64_t read_neighbours(pl_allowance *allowance, const pl_process_tree *tree, bool first)
{
    pid_t pids[PL_ALLOWANCE_NEIGHBOURS];
    int n = pl_cgroup_pids(&allowance->cgroup, pids, PL_ALLOWANCE_NEIGHBOURS);
    uint64_t sum = 0;
    for (int i = 0; i < allowance->n_neighbours; i++)
        allowance->neighbours[i].seen = false;
    for (int i = 0; i < n; i++) {
        pl_proc_memory memory;
        if (is_ours(tree, pids[i]) || pl_proc_memory_read(pids[i], &memory) < 0)
            continue;
        sum = pl_add_sat_u64(sum, memory.private_bytes);
        pl_neighbour *neighbour = find_neighbour(allowance, pids[i]);
        if (!neighbour)
            continue;
        neighbour->seen = true;
        neighbour->bytes = memory.private_bytes;
        if (first)
            neighbour->first_bytes = memory.private_bytes;
    }
    drop_gone(allowance);
    return sum;
}

static uint64_t usage_of(const pl_cgroup *cgroup, int level)
{
    uint64_t usage;
    return pl_cgroup_level_usage_bytes(cgroup, level, &usage) < 0 ? 0 : usage;
}

static void read_level(pl_allowance *allowance, int index, uint64_t usage, bool first)
{
    uint64_t limit = allowance->cgroup.levels[index].limit_bytes;
    uint64_t others = pl_sub_sat_u64(usage, allowance->gained_bytes);
    if (first)
        allowance->others_baseline_bytes[index] = others;
    if (limit == 0)
        return;
    uint64_t gives = pl_sub_sat_u64(limit, others);
    uint64_t baseline = allowance->others_baseline_bytes[index];
    allowance->left_bytes = pl_min_u64(allowance->left_bytes, pl_sub_sat_u64(limit, usage));
    allowance->alone_bytes = pl_min_u64(allowance->alone_bytes, pl_sub_sat_u64(limit, baseline));
    if (gives < allowance->gives_bytes) {
        allowance->gives_bytes = gives;
        allowance->tightest = index;
        allowance->others_bytes = others;
        allowance->others_gained_bytes = pl_sub_sat_u64(others, baseline);
    }
}

/* Reads the group before its processes: a neighbour that grows in between then counts for more
 * than its part of the usage, and the run for less. The other order would blame the run for its
 * growth. */
static void look(pl_allowance *allowance, const pl_process_tree *tree, bool first)
{
    allowance->gained_bytes = allowance->others_bytes = allowance->others_gained_bytes = 0;
    allowance->left_bytes = allowance->gives_bytes = allowance->alone_bytes = UINT64_MAX;
    allowance->tightest = -1;
    if (allowance->cgroup.n_levels == 0 || (!first && allowance->cgroup.tightest < 0))
        return;
    uint64_t usage = usage_of(&allowance->cgroup, 0);
    uint64_t own = pl_sub_sat_u64(usage, read_neighbours(allowance, tree, first));
    if (first)
        allowance->own_baseline_bytes = own;
    allowance->gained_bytes = pl_sub_sat_u64(own, allowance->own_baseline_bytes);
    if (tree) /* neighbours that share pages by fork count them each: what we surely use is ours */
        allowance->gained_bytes =
            pl_max_u64(allowance->gained_bytes, pl_min_u64(tree->used_bytes, usage));
    for (int i = 0; i < allowance->cgroup.n_levels; i++)
        if (first || allowance->cgroup.levels[i].limit_bytes > 0)
            read_level(allowance, i, i == 0 ? usage : usage_of(&allowance->cgroup, i), first);
}

int pl_allowance_init(pl_allowance *allowance, const char *root)
{
    memset(allowance, 0, sizeof *allowance);
    int r = pl_cgroup_init(&allowance->cgroup, root, 0);
    look(allowance, NULL, true);
    return r;
}

void pl_allowance_done(pl_allowance *allowance)
{
    pl_cgroup_done(&allowance->cgroup);
}

void pl_allowance_read(pl_allowance *allowance, const pl_process_tree *tree)
{
    allowance->limits_changed = pl_cgroup_refresh(&allowance->cgroup, &allowance->change);
    look(allowance, tree, false);
}

pl_neighbour pl_allowance_who_grew(const pl_allowance *allowance)
{
    pl_neighbour who = {0};
    uint64_t most = 0;
    for (int i = 0; i < allowance->n_neighbours; i++) {
        const pl_neighbour *neighbour = &allowance->neighbours[i];
        uint64_t grown = pl_sub_sat_u64(neighbour->bytes, neighbour->first_bytes);
        if (grown > most) {
            most = grown;
            who = *neighbour;
        }
    }
    return who;
}
