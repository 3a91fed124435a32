/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/process_tree.h"

#include <string.h>

#include "base/clock.h"
#include "sys/proc.h"

/* Reading shares may take this part of one core: 1/400 = 0.25 % in calm, 1/10 under pressure. */
enum { CALM_COST_SHARE = 400, PRESSED_COST_SHARE = 10 };

static uint32_t first_entry(pid_t pid)
{
    return (uint32_t)pid * 2654435769u >> 15; /* its highest 17 bits */
}

static_assert(PL_TREE_INDEX == 1 << 17, "first_entry() has as many values");

static void index_add(pl_tree_index *index, pid_t pid, int place)
{
    uint32_t i = first_entry(pid);
    while (index->places[i])
        i = (i + 1) % PL_TREE_INDEX;
    index->places[i] = place + 1;
    index->used[index->n_used++] = (int32_t)i;
}

static void index_empty(pl_tree_index *index)
{
    for (int i = 0; i < index->n_used; i++)
        index->places[index->used[i]] = 0;
    index->n_used = 0;
}

static pl_tree_process *find(pl_process_tree *tree, pid_t pid)
{
    for (uint32_t i = first_entry(pid);; i = (i + 1) % PL_TREE_INDEX) {
        int place = tree->by_pid.places[i] - 1;
        if (place < 0)
            return NULL;
        if (tree->processes[place].pid == pid)
            return &tree->processes[place];
    }
}

static void index_processes(pl_process_tree *tree)
{
    index_empty(&tree->by_pid);
    for (int i = 0; i < tree->n; i++)
        index_add(&tree->by_pid, tree->processes[i].pid, i);
}

static void index_slots(pl_process_tree *tree, const pl_ledger *ledger)
{
    int n = pl_ledger_n_slots(ledger);
    index_empty(&tree->slots);
    for (int i = 0; i < n; i++) {
        uint32_t pid = atomic_load(&ledger->slots[i].pid);
        if (pid && atomic_load(&ledger->slots[i].flags) & PL_SLOT_GUARDED)
            index_add(&tree->slots, (pid_t)pid, i);
    }
}

static void find_slot(pl_process_tree *tree, pl_tree_process *process, const pl_ledger *ledger)
{
    if (process->slot >= 0) {
        const pl_ledger_slot *slot = &ledger->slots[process->slot];
        if (atomic_load(&slot->pid) == (uint32_t)process->pid) {
            process->slot_flags = atomic_load(&slot->flags);
            return;
        }
    }
    process->slot = -1;
    process->slot_flags = 0;
    for (uint32_t i = first_entry(process->pid); tree->slots.places[i];
         i = (i + 1) % PL_TREE_INDEX) {
        int place = tree->slots.places[i] - 1;
        const pl_ledger_slot *slot = &ledger->slots[place];
        if (atomic_load(&slot->pid) != (uint32_t)process->pid)
            continue;
        process->slot = place;
        process->slot_flags = atomic_load(&slot->flags);
        return;
    }
}

static void read_process(pl_process_tree *tree, const pl_ledger *ledger, pid_t pid)
{
    pl_proc_stat stat;
    pl_proc_memory memory;
    if (pl_proc_stat_read(pid, &stat) < 0 || (stat.state == 'Z' && stat.n_threads <= 1))
        return; /* gone, or dead and waiting to be reaped */
    pl_tree_process *process = find(tree, pid);
    if (process && process->start_ticks != stat.start_ticks)
        memset(process, 0, sizeof *process); /* the pid was given to a new process */
    if (!process) {
        if (tree->n == PL_TREE_PROCESSES)
            return;
        process = &tree->processes[tree->n++];
        memset(process, 0, sizeof *process);
        index_add(&tree->by_pid, pid, tree->n - 1);
    }
    if (process->pid == 0)
        process->slot = -1;
    process->pid = pid;
    process->parent_pid = stat.parent_pid;
    process->start_ticks = stat.start_ticks;
    process->state = stat.state;
    process->cpu_ticks = stat.cpu_ticks;
    process->forked = stat.forked;
    process->seen = true;
    memcpy(process->name, stat.name, sizeof process->name);
    process->private_bytes = process->resident_bytes = 0;
    if (pl_proc_memory_read(pid, &memory) == 0) {
        process->private_bytes = memory.private_bytes;
        process->resident_bytes = memory.resident_bytes;
    }
    find_slot(tree, process, ledger);
}

/* Breadth first; `pids` is the queue. */
static void read_processes(pl_process_tree *tree, const pl_ledger *ledger, pid_t root)
{
    static pid_t pids[PL_TREE_PROCESSES];
    int n = pl_proc_children(root, pids, PL_TREE_PROCESSES);
    n = n < 0 ? 0 : n > PL_TREE_PROCESSES ? PL_TREE_PROCESSES : n;
    for (int i = 0; i < n; i++) {
        read_process(tree, ledger, pids[i]);
        int more = pl_proc_children(pids[i], pids + n, PL_TREE_PROCESSES - n);
        if (more > 0)
            n += more > PL_TREE_PROCESSES - n ? PL_TREE_PROCESSES - n : more;
    }
}

static void drop_ended(pl_process_tree *tree)
{
    int kept = 0;
    tree->n_ended = 0;
    for (int i = 0; i < tree->n; i++) {
        if (tree->processes[i].seen) {
            tree->processes[kept++] = tree->processes[i];
            continue;
        }
        tree->ended_cpu_ticks += tree->processes[i].cpu_ticks;
        if (tree->n_ended < PL_TREE_ENDED)
            tree->ended[tree->n_ended++] = tree->processes[i];
    }
    tree->n = kept;
    index_processes(tree);
}

/* Processes that share one address space have each page mapped once, so each one's proportional
 * share is all of it. A child of vfork() shares its parent's from its birth to its exec, so it is
 * asked once, and again after the parent died and left it the memory. */
static void find_in_parents(pl_process_tree *tree)
{
    for (int i = 0; i < tree->n; i++) {
        pl_tree_process *process = &tree->processes[i];
        if (process->forked && process->asked_pid == process->parent_pid)
            continue;
        process->asked_pid = process->forked ? process->parent_pid : 0;
        process->in_parents = process->forked && find(tree, process->parent_pid) &&
                              pl_proc_same_memory(process->parent_pid, process->pid);
    }
}

static void find_parents(pl_process_tree *tree)
{
    for (int i = 0; i < tree->n; i++)
        tree->processes[i].has_forked = false;
    for (int i = 0; i < tree->n; i++) {
        const pl_tree_process *process = &tree->processes[i];
        pl_tree_process *parent =
            process->forked && !process->in_parents ? find(tree, process->parent_pid) : NULL;
        if (parent)
            parent->has_forked = true;
    }
}

static void find_sharers(pl_process_tree *tree)
{
    find_parents(tree);
    for (int i = 0; i < tree->n; i++) {
        pl_tree_process *process = &tree->processes[i];
        process->shares_pages = !process->in_parents && (process->forked || process->has_forked);
    }
}

/* Reads all shares at one time, else they do not add up: the parent's from before a fork and the
 * child's from after it are more than exists. Until then a child counts with its growth since it
 * was first seen; the rest is still in its parent's share. */
static void start_share(pl_tree_process *process, uint64_t now_ns)
{
    process->pss_bytes = 0;
    process->pss_private_bytes = process->private_bytes;
    process->pss_read_ns = now_ns;
}

static void read_shares(pl_process_tree *tree, uint64_t now_ns, bool pressed)
{
    uint64_t wait = tree->pss_cost_ns * (pressed ? PRESSED_COST_SHARE : CALM_COST_SHARE);
    bool due = now_ns - tree->pss_read_ns >= wait;
    uint64_t begun = pl_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    bool any = false;
    for (int i = 0; i < tree->n; i++) {
        pl_tree_process *process = &tree->processes[i];
        if (process->forked && !process->in_parents && !process->pss_read_ns)
            start_share(process, now_ns);
        if (!due || !process->shares_pages)
            continue;
        if (pl_proc_pss_read(process->pid, &process->pss_bytes) < 0)
            continue;
        process->pss_read_ns = now_ns;
        process->pss_private_bytes = process->private_bytes;
        any = true;
    }
    tree->shares_ns = pl_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
    if (any && due) {
        tree->pss_cost_ns = tree->shares_ns;
        tree->pss_read_ns = now_ns;
    }
}

static uint64_t used_bytes(const pl_tree_process *process)
{
    if (process->in_parents)
        return 0;
    if (!process->pss_read_ns || !process->shares_pages)
        return process->private_bytes;
    uint64_t grown = pl_sub_sat_u64(process->private_bytes, process->pss_private_bytes);
    uint64_t shrunk = pl_sub_sat_u64(process->pss_private_bytes, process->private_bytes);
    return pl_sub_sat_u64(process->pss_bytes + grown, shrunk);
}

void pl_process_tree_read(pl_process_tree *tree, const pl_ledger *ledger, pid_t root,
                          uint64_t now_ns, bool pressed)
{
    for (int i = 0; i < tree->n; i++)
        tree->processes[i].seen = false;
    index_slots(tree, ledger);
    read_processes(tree, ledger, root);
    drop_ended(tree);
    find_in_parents(tree);
    find_sharers(tree);
    read_shares(tree, now_ns, pressed);

    tree->used_bytes = tree->unguarded_bytes = tree->resident_bytes = 0;
    tree->cpu_ticks = tree->ended_cpu_ticks;
    bool shared = false;
    for (int i = 0; i < tree->n; i++) {
        pl_tree_process *process = &tree->processes[i];
        process->used_bytes = used_bytes(process);
        tree->used_bytes += process->used_bytes;
        tree->resident_bytes += process->in_parents ? 0 : process->resident_bytes;
        if (process->slot < 0)
            tree->unguarded_bytes += process->used_bytes;
        tree->cpu_ticks += process->cpu_ticks;
        shared |= process->shares_pages;
    }
    if (shared) /* resident sizes count shared pages once for each process that shares them */
        tree->resident_bytes = tree->used_bytes;
}

void pl_process_tree_calm(pl_process_tree *tree)
{
    for (int i = 0; i < tree->n; i++)
        tree->processes[i].calm_bytes = tree->processes[i].used_bytes;
}

pid_t pl_process_tree_main(const pl_process_tree *tree, pid_t command, uint64_t enough_bytes)
{
    for (int depth = 0; depth < tree->n; depth++) {
        const pl_tree_process *child = NULL;
        int n_children = 0;
        for (int i = 0; i < tree->n; i++) {
            const pl_tree_process *process = &tree->processes[i];
            if (process->pid == command && process->used_bytes >= enough_bytes)
                return command;
            if (process->parent_pid == command) {
                child = process;
                n_children++;
            }
        }
        if (n_children != 1 || child->slot < 0 || child->forked)
            return command;
        command = child->pid;
    }
    return command;
}

const pl_tree_process *pl_process_tree_victim(const pl_process_tree *tree, pid_t command,
                                              uint64_t enough_bytes)
{
    const pl_tree_process *chosen = NULL;
    uint64_t most = 0;
    for (int i = 0; i < tree->n; i++) {
        const pl_tree_process *process = &tree->processes[i];
        if (process->pid == command || process->used_bytes < enough_bytes)
            continue;
        uint64_t grown = pl_sub_sat_u64(process->used_bytes, process->calm_bytes);
        if (!chosen || grown > most) {
            chosen = process;
            most = grown;
        }
    }
    if (chosen)
        return chosen;
    for (int i = 0; i < tree->n; i++)
        if (tree->processes[i].pid == command)
            return &tree->processes[i];
    return NULL;
}
