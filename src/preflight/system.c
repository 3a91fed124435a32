/* SPDX-License-Identifier: Apache-2.0 */
/* See system.h. */
#include "preflight/system.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "preflight/sysroot.h"
#include "sys/fixed_text.h"

enum { LIMITS_BYTES = 4096, MEMINFO_BYTES = 8192 };

/* ---- memory ---- */

static uint64_t kib_of(const char *meminfo, const char *key)
{
    uint64_t kib;
    return pl_fixed_text_find_u64(meminfo, key, &kib) && kib < UINT64_MAX / PL_KIB ? kib * PL_KIB
                                                                                   : 0;
}

static void read_meminfo(const char *root, pl_memory_facts *memory)
{
    char text[MEMINFO_BYTES];
    if (pl_sysroot_read_proc(root, "/proc/meminfo", text, sizeof text) < 0)
        return;
    memory->total_bytes = kib_of(text, "MemTotal:");
    memory->available_bytes = kib_of(text, "MemAvailable:");
    memory->swap_total_bytes = kib_of(text, "SwapTotal:");
    memory->swap_free_bytes = kib_of(text, "SwapFree:");
    memory->commit_limit_bytes = kib_of(text, "CommitLimit:");
    memory->committed_bytes = kib_of(text, "Committed_AS:");
    memory->huge_page_bytes = kib_of(text, "Hugepagesize:");
    if (!pl_fixed_text_find_u64(text, "HugePages_Total:", &memory->n_huge_pages))
        memory->n_huge_pages = 0;
    if (!pl_fixed_text_find_u64(text, "HugePages_Free:", &memory->n_huge_free))
        memory->n_huge_free = 0;
}

void pl_system_chosen_word(const char *text, char word[16])
{
    const char *from = strchr(text, '['), *to = from != NULL ? strchr(from, ']') : NULL;
    word[0] = '\0';
    if (to != NULL)
        pl_format(word, 16, "%.*s", (int)(to - from - 1), from + 1);
}

static void read_switches(const char *root, pl_memory_facts *memory)
{
    static const char folder[] = "/sys/kernel/mm/transparent_hugepage";
    char text[256], path[PATH_MAX];
    if (pl_sysroot_read_proc(root, "/proc/sys/vm/overcommit_memory", text, sizeof text) > 0)
        memory->overcommit = text[0] - '0';
    pl_format(path, sizeof path, "%s/enabled", folder);
    if (pl_sysroot_read_proc(root, path, text, sizeof text) > 0)
        pl_system_chosen_word(text, memory->huge);
    pl_format(path, sizeof path, "%s/defrag", folder);
    if (pl_sysroot_read_proc(root, path, text, sizeof text) > 0)
        pl_system_chosen_word(text, memory->defrag);
    if (pl_sysroot_read_proc(root, "/proc/version", text, sizeof text) > 0)
        memory->wsl = strcasestr(text, "microsoft") != NULL;
}

/* Finds the outermost cgroup, from ours up, with oom.group set: an OOM kill in it ends all of it.
 */
static void read_oom_group(const char *root, pl_memory_facts *memory)
{
    pl_cgroup cgroup;
    char file[PATH_MAX], text[16], path[PL_CGROUP_PATH_BYTES];
    if (pl_cgroup_init(&cgroup, root, 0) < 0 || cgroup.version != 2)
        cgroup.path[0] = '\0';
    memcpy(path, cgroup.path, sizeof path);
    pl_cgroup_done(&cgroup);
    for (char *slash; (slash = strrchr(path, '/')) != NULL && strlen(path) > strlen(root);
         *slash = '\0') {
        if (!pl_format(file, sizeof file, "%s/memory.oom.group", path) ||
            pl_sysroot_read_proc("", file, text, sizeof text) <= 0)
            continue;
        if (text[0] == '1')
            pl_format(memory->oom_group, sizeof memory->oom_group, "%s", path + strlen(root));
    }
}

static void read_memory(const char *root, pl_memory_facts *memory)
{
    const pl_budget_options options = {.root = root};
    memory->overcommit = -1;
    memory->budget_code = pl_budget_discover(&options, &memory->budget, &memory->budget_error);
    read_meminfo(root, memory);
    read_switches(root, memory);
    read_oom_group(root, memory);
}

/* ---- files and disk ---- */

static void read_shm(const char *root, pl_shm_facts *shm)
{
    char path[PATH_MAX];
    struct statvfs space;
    if (!pl_sysroot_path(root, "/dev/shm", path) || statvfs(path, &space) < 0)
        return;
    shm->there = true;
    shm->writable = access(path, W_OK | X_OK) == 0;
    shm->total_bytes = (uint64_t)space.f_blocks * space.f_frsize;
    shm->free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
}

static bool look_at_folder(const char *root, const char *folder, pl_disk_facts *ret_disk)
{
    char path[PATH_MAX];
    pl_disk_facts disk = {0};
    if (folder == NULL || folder[0] == '\0' || !pl_sysroot_path(root, folder, path) ||
        !pl_format(disk.folder, sizeof disk.folder, "%s", folder))
        return false;
    disk.writable = access(path, W_OK | X_OK) == 0;
    if (pl_file_space_at(path, &disk.space) < 0)
        disk.writable = false;
    *ret_disk = disk;
    return true;
}

/* Chooses as tensor/spill.c does: $PLIMSOLL_SPILL, else the first writable folder that is not in
 * memory. */
static void read_disk(const char *root, pl_disk_facts *disk)
{
    const char *const candidates[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    pl_disk_facts found;
    if (look_at_folder(root, getenv("PLIMSOLL_SPILL"), disk)) {
        disk->named = true;
        return;
    }
    for (size_t i = 0; i < PL_COUNT_OF(candidates); i++) {
        if (!look_at_folder(root, candidates[i], &found) || !found.writable)
            continue;
        if (disk->folder[0] == '\0' || !found.space.in_memory)
            *disk = found;
        if (!found.space.in_memory)
            return;
    }
}

static bool take_limit(const char **cursor, uint64_t *ret_value)
{
    static const char unlimited[] = "unlimited";
    *cursor += strspn(*cursor, " ");
    if (strncmp(*cursor, unlimited, sizeof unlimited - 1) != 0)
        return pl_fixed_text_take_u64(cursor, ret_value);
    *cursor += sizeof unlimited - 1;
    *ret_value = UINT64_MAX;
    return true;
}

bool pl_system_parse_limit(const char *limits, const char *name, uint64_t *ret_soft,
                           uint64_t *ret_hard)
{
    uint64_t soft, hard;
    const char *cursor = strstr(limits, name);
    if (cursor == NULL)
        return false;
    cursor += strlen(name);
    if (!take_limit(&cursor, &soft) || !take_limit(&cursor, &hard))
        return false;
    *ret_soft = soft;
    *ret_hard = hard;
    return true;
}

static void read_limits(const char *root, pl_system *system)
{
    char text[LIMITS_BYTES];
    uint64_t hard;
    if (pl_sysroot_read_proc(root, "/proc/self/limits", text, sizeof text) <= 0)
        return;
    if (!pl_system_parse_limit(text, "Max open files", &system->open_files,
                               &system->open_files_hard))
        system->open_files = 0;
    if (!pl_system_parse_limit(text, "Max file size", &system->file_bytes, &hard))
        system->file_bytes = 0;
}

static void read_preload(const char *root, pl_system *system)
{
    const char *preload = getenv("LD_PRELOAD");
    pl_format(system->preload, sizeof system->preload, "%s", preload != NULL ? preload : "");
    if (pl_sysroot_read_proc(root, "/etc/ld.so.preload", system->preload_file,
                             sizeof system->preload_file) < 0)
        system->preload_file[0] = '\0';
}

void pl_system_read(const char *root, unsigned n_workers, pl_system *ret_system)
{
    *ret_system = (pl_system){0};
    read_memory(root, &ret_system->memory);
    read_shm(root, &ret_system->shm);
    read_disk(root, &ret_system->disk);
    if (pl_cpu_read(root, &ret_system->cpu) < 0)
        ret_system->cpu = (pl_cpu){.n_allowed = 1, .n_usable = 1};
    ret_system->n_workers = n_workers > 0 ? n_workers : ret_system->cpu.n_usable;
    read_limits(root, ret_system);
    read_preload(root, ret_system);
}
