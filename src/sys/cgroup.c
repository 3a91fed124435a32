/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one memory cgroup and its ancestors. Where it is in the file system is cgroup_find.c's. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "sys/cgroup.h"
#include "sys/cgroup_find.h"
#include "sys/proc.h"
#include "sys/text.h"

/* Both versions print "no limit" as a number that differs by page size (v1, near 2^63) or as "max"
 * (v2). No machine has 2^62 bytes. */
static const uint64_t unlimited_bytes = UINT64_C(1) << 62;

/* v1 prints 45 lines, about 1 KiB (6.18); v2 has more, but the file cache is among the first 25. */
enum { STAT_BYTES = 4096 };

typedef struct file_names {
    const char *usage;
    const char *limits[2];
    const char *stat_inactive; /* keys of memory.stat, with descendants */
    const char *stat_active;
    const char *kills; /* has a line "oom_kill N" */
} file_names;

static const file_names names_of_version[] = {
    [1] = {.usage = "memory.usage_in_bytes",
           .limits = {"memory.limit_in_bytes"},
           .stat_inactive = "total_inactive_file",
           .stat_active = "total_active_file",
           .kills = "memory.oom_control"},
    [2] = {.usage = "memory.current",
           .limits = {"memory.max", "memory.high"},
           .stat_inactive = "inactive_file",
           .stat_active = "active_file",
           .kills = "memory.events"},
};

/* `name` in the folder that is the first `length` bytes of `path`. */
static int group_file(char storage[PATH_MAX], const char *path, size_t length, const char *name)
{
    pl_text text = pl_text_begin(storage, PATH_MAX);
    pl_text_add_n(&text, path, length);
    pl_text_add(&text, "/");
    pl_text_add(&text, name);
    return text.overflow ? -ENAMETOOLONG : 0;
}

static int open_group_file(const char *path, size_t length, const char *name)
{
    char file[PATH_MAX];
    int r = group_file(file, path, length, name);
    if (r < 0)
        return r;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* The whole of a counter's file, from its start: the kernel makes the text anew each time. */
static int read_again(int fd, char *buffer, size_t n)
{
    if (fd < 0)
        return -ENOENT;
    ssize_t got;
    do
        got = pread(fd, buffer, n - 1, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    buffer[got] = '\0';
    return (int)got;
}

/* "max", and what cannot be understood, is no limit. A limit of 0 is kept as 1, since 0 says
 * "none". */
static uint64_t read_limit(const char *path, size_t length, const char *name)
{
    char file[PATH_MAX], text[64];
    uint64_t limit;
    if (group_file(file, path, length, name) < 0 || pl_proc_read_file(file, text, sizeof text) < 0)
        return 0;
    const char *cursor = text;
    if (!pl_text_take_u64(&cursor, &limit) || limit >= unlimited_bytes)
        return 0;
    return pl_max_u64(limit, 1);
}

static void find_limit(const pl_cgroup *cgroup, pl_cgroup_level *level)
{
    const file_names *names = &names_of_version[cgroup->version];
    for (size_t i = 0; i < PL_COUNT_OF(names->limits) && names->limits[i]; i++) {
        uint64_t limit = read_limit(cgroup->path, level->path_length, names->limits[i]);
        if (limit > 0 && (level->limit_bytes == 0 || limit < level->limit_bytes)) {
            level->limit_bytes = limit;
            level->limit_file = names->limits[i];
        }
    }
}

/* Adds the group in the first `path_length` bytes of the path, if it is one of ours to watch. */
static void add_level(pl_cgroup *cgroup, size_t path_length)
{
    const file_names *names = &names_of_version[cgroup->version];
    pl_cgroup_level level = {.path_length = path_length};
    find_limit(cgroup, &level);
    bool is_own = cgroup->n_levels == 0;
    if (cgroup->n_levels == PL_CGROUP_LEVELS || (level.limit_bytes == 0 && !is_own))
        return;
    level.usage_fd = open_group_file(cgroup->path, path_length, names->usage);
    if (level.usage_fd < 0)
        return; /* the controller is not enabled here */
    level.stat_fd = open_group_file(cgroup->path, path_length, "memory.stat");
    cgroup->levels[cgroup->n_levels++] = level;
}

/* From the process's group up to the mount point, both included. */
static void add_levels(pl_cgroup *cgroup, size_t mount_length)
{
    size_t length = strlen(cgroup->path);
    for (;;) {
        add_level(cgroup, length);
        const char *slash = memrchr(cgroup->path, '/', length);
        if (!slash || (size_t)(slash - cgroup->path) < mount_length)
            return;
        length = (size_t)(slash - cgroup->path);
    }
}

static int find_tightest(const pl_cgroup *cgroup)
{
    int tightest = -1;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < cgroup->n_levels; i++) {
        uint64_t usage = 0, limit = cgroup->levels[i].limit_bytes;
        if (limit == 0 || pl_cgroup_level_usage_bytes(cgroup, i, &usage) < 0)
            continue;
        uint64_t left = pl_sub_sat_u64(limit, usage);
        if (left < least) {
            least = left;
            tightest = i;
        }
    }
    return tightest;
}

static int open_pressure(const pl_cgroup *cgroup, const char *root)
{
    int fd = -ENOENT;
    if (cgroup->n_levels > 0)
        fd = open_group_file(cgroup->path, strlen(cgroup->path), "memory.pressure");
    if (fd < 0)
        fd = open_group_file(root, strlen(root), "proc/pressure/memory");
    return fd;
}

int pl_cgroup_init(pl_cgroup *cgroup, const char *root, pid_t pid)
{
    *cgroup = (pl_cgroup){.tightest = -1, .kills_fd = -1, .pressure_fd = -1};
    pl_cgroup_place place;
    int r = pl_cgroup_find(root, pid, "memory", &place);
    if (r == 0) {
        cgroup->version = place.version;
        memcpy(cgroup->path, place.path, sizeof cgroup->path);
        add_levels(cgroup, place.mount_length);
    }
    if (cgroup->n_levels > 0) {
        cgroup->path[cgroup->levels[0].path_length] = '\0';
        cgroup->tightest = find_tightest(cgroup);
        cgroup->kills_fd = open_group_file(cgroup->path, cgroup->levels[0].path_length,
                                           names_of_version[cgroup->version].kills);
    } else {
        cgroup->version = 0;
        cgroup->path[0] = '\0';
        r = r < 0 ? r : -ENOENT;
    }
    cgroup->pressure_fd = open_pressure(cgroup, root);
    return r;
}

void pl_cgroup_done(pl_cgroup *cgroup)
{
    for (int i = 0; i < cgroup->n_levels; i++) {
        close_fd(&cgroup->levels[i].usage_fd);
        close_fd(&cgroup->levels[i].stat_fd);
    }
    close_fd(&cgroup->kills_fd);
    close_fd(&cgroup->pressure_fd);
    cgroup->n_levels = 0;
}

uint64_t pl_cgroup_limit_bytes(const pl_cgroup *cgroup)
{
    uint64_t smallest = 0;
    for (int i = 0; i < cgroup->n_levels; i++) {
        uint64_t limit = cgroup->levels[i].limit_bytes;
        if (limit > 0 && (smallest == 0 || limit < smallest))
            smallest = limit;
    }
    return smallest;
}

/* Bytes of file cache; 0 when the kernel does not say: the usage is then too high, never too low.
 */
static uint64_t read_file_cache(const pl_cgroup *cgroup, const pl_cgroup_level *level)
{
    const file_names *names = &names_of_version[cgroup->version];
    char text[STAT_BYTES];
    uint64_t inactive = 0, active = 0;
    if (read_again(level->stat_fd, text, sizeof text) < 0)
        return 0;
    if (!pl_text_find_u64(text, names->stat_inactive, &inactive) ||
        !pl_text_find_u64(text, names->stat_active, &active))
        return 0;
    return pl_add_sat_u64(inactive, active);
}

int pl_cgroup_level_usage_bytes(const pl_cgroup *cgroup, int level, uint64_t *ret_bytes)
{
    if (level < 0 || level >= cgroup->n_levels)
        return -ENOENT;
    char text[64];
    int r = read_again(cgroup->levels[level].usage_fd, text, sizeof text);
    if (r < 0)
        return r;
    const char *cursor = text;
    uint64_t charged;
    if (!pl_text_take_u64(&cursor, &charged))
        return PL_EFORMAT;
    *ret_bytes = pl_sub_sat_u64(charged, read_file_cache(cgroup, &cgroup->levels[level]));
    return 0;
}

int pl_cgroup_usage_bytes(const pl_cgroup *cgroup, uint64_t *ret_bytes)
{
    return pl_cgroup_level_usage_bytes(cgroup, cgroup->tightest < 0 ? 0 : cgroup->tightest,
                                       ret_bytes);
}

static int read_kills(int fd, uint64_t *ret_n_kills)
{
    char text[512];
    int r = read_again(fd, text, sizeof text);
    if (r < 0)
        return r;
    return pl_text_find_u64(text, "oom_kill", ret_n_kills) ? 0 : PL_EFORMAT;
}

int pl_cgroup_oom_kills(const pl_cgroup *cgroup, uint64_t *ret_n_kills)
{
    return read_kills(cgroup->kills_fd, ret_n_kills);
}

int pl_cgroup_oom_kills_at(const char *path, uint64_t *ret_n_kills)
{
    int fd = open_group_file(path, strlen(path), names_of_version[2].kills);
    if (fd == -ENOENT)
        fd = open_group_file(path, strlen(path), names_of_version[1].kills);
    if (fd < 0)
        return fd;
    int r = read_kills(fd, ret_n_kills);
    close(fd);
    return r;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" */
static bool find_total(const char *text, const char *kind, uint64_t *ret_us)
{
    const char *line = strstr(text, kind);
    const char *total = line ? strstr(line, "total=") : NULL;
    if (!total)
        return false;
    total += strlen("total=");
    return pl_text_take_u64(&total, ret_us);
}

int pl_cgroup_pressure_read(const pl_cgroup *cgroup, pl_cgroup_pressure *ret_pressure)
{
    char text[256];
    pl_cgroup_pressure pressure;
    int r = read_again(cgroup->pressure_fd, text, sizeof text);
    if (r < 0)
        return r;
    if (!find_total(text, "some ", &pressure.some_us) ||
        !find_total(text, "full ", &pressure.full_us))
        return PL_EFORMAT;
    *ret_pressure = pressure;
    return 0;
}
