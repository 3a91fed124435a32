/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one memory cgroup and its ancestors. cgroup_find.c finds its folder. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/cgroup.h"
#include "sys/cgroup_find.h"
#include "sys/fixed_text.h"

/* Both versions print "no limit" as a number that differs by page size (v1, near 2^63) or as "max"
 * (v2). No machine has 2^62 bytes. */
static const uint64_t unlimited_bytes = UINT64_C(1) << 62;

/* v1 prints 45 lines, about 1 KiB (6.18); v2 has more, but the file cache is among the first 25. */
enum { STAT_BYTES = 4096 };

typedef struct file_names {
    const char *usage;
    const char *limits[PL_CGROUP_LIMIT_FILES];
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

/* Names the file `name` in the folder that is the first `length` bytes of `path`. */
static int group_file(char storage[PATH_MAX], const char *path, size_t length, const char *name)
{
    pl_fixed_text text = pl_fixed_text_begin(storage, PATH_MAX);
    pl_fixed_text_add_n(&text, path, length);
    pl_fixed_text_add(&text, "/");
    pl_fixed_text_add(&text, name);
    return text.overflow ? -ENAMETOOLONG : 0;
}

static int open_group_file(const char *path, size_t length, const char *name)
{
    char file[PATH_MAX];
    int r = group_file(file, path, length, name);
    if (r < 0)
        return r;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Reads a counter's file whole, from its start: the kernel writes the text anew each time. */
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

/* "max", or text that cannot be parsed, is not a limit. A limit of 0 is kept as 1, since 0 says
 * "none". */
static int read_limit(int fd, uint64_t *ret_limit)
{
    char text[64];
    uint64_t limit;
    int r = read_again(fd, text, sizeof text);
    if (r < 0)
        return r;
    const char *cursor = text;
    bool limited = pl_fixed_text_take_u64(&cursor, &limit) && limit < unlimited_bytes;
    *ret_limit = limited ? pl_max_u64(limit, 1) : 0;
    return 0;
}

/* True when the limit of the level changed; *ret_changed is then the file that changed. If both
 * files changed, it is the one that limits now. */
static bool find_limit(const pl_cgroup *cgroup, pl_cgroup_level *level, int *ret_changed)
{
    const file_names *names = &names_of_version[cgroup->version];
    uint64_t now[PL_CGROUP_LIMIT_FILES] = {0};
    int smallest = -1, changed = -1;
    for (int i = 0; i < PL_CGROUP_LIMIT_FILES; i++) {
        int r = level->limit_fds[i] < 0 ? -ENOENT : read_limit(level->limit_fds[i], &now[i]);
        if (r == -ENODEV)
            return false; /* the group is gone */
        if (r == 0 && now[i] > 0 && (smallest < 0 || now[i] < now[smallest]))
            smallest = i;
    }
    for (int i = 0; i < PL_CGROUP_LIMIT_FILES; i++)
        if (now[i] != level->file_limits_bytes[i] && (changed < 0 || i == smallest))
            changed = i;
    memcpy(level->file_limits_bytes, now, sizeof now);
    uint64_t before = level->limit_bytes;
    level->limit_bytes = smallest < 0 ? 0 : now[smallest];
    level->limit_file = smallest < 0 ? NULL : names->limits[smallest];
    if (level->limit_bytes == before)
        return false;
    *ret_changed = changed;
    return true;
}

static void close_level(pl_cgroup_level *level)
{
    for (int i = 0; i < PL_CGROUP_LIMIT_FILES; i++)
        close_fd(&level->limit_fds[i]);
    close_fd(&level->usage_fd);
    close_fd(&level->stat_fd);
    close_fd(&level->events_fd);
}

/* Adds the group in the first `path_length` bytes of the path if the controller is enabled
 * there. */
static void add_level(pl_cgroup *cgroup, size_t path_length)
{
    const file_names *names = &names_of_version[cgroup->version];
    if (cgroup->n_levels == PL_CGROUP_LEVELS)
        return;
    pl_cgroup_level level = {.path_length = path_length, .stat_fd = -1, .events_fd = -1};
    level.usage_fd = open_group_file(cgroup->path, path_length, names->usage);
    for (int i = 0; i < PL_CGROUP_LIMIT_FILES; i++)
        level.limit_fds[i] = names->limits[i] && level.usage_fd >= 0
                                 ? open_group_file(cgroup->path, path_length, names->limits[i])
                                 : -1;
    if (level.usage_fd < 0)
        return;
    int changed;
    (void)find_limit(cgroup, &level, &changed);
    level.stat_fd = open_group_file(cgroup->path, path_length, "memory.stat");
    if (cgroup->version == 2)
        level.events_fd = open_group_file(cgroup->path, path_length, "memory.events");
    cgroup->levels[cgroup->n_levels++] = level;
}

/* Adds the groups from the process's own up to the mount point, both included. */
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

static int open_pressure(pl_cgroup *cgroup, const char *root)
{
    int fd = -ENOENT;
    if (cgroup->n_levels > 0)
        fd = open_group_file(cgroup->path, strlen(cgroup->path), "memory.pressure");
    cgroup->pressure_is_own = fd >= 0;
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
    for (int i = 0; i < cgroup->n_levels; i++)
        close_level(&cgroup->levels[i]);
    close_fd(&cgroup->kills_fd);
    close_fd(&cgroup->pressure_fd);
    cgroup->n_levels = 0;
}

bool pl_cgroup_refresh(pl_cgroup *cgroup, pl_cgroup_change *ret_change)
{
    int files[PL_CGROUP_LEVELS], level = -1;
    for (int i = cgroup->n_levels - 1; i >= 0; i--) {
        files[i] = -1;
        if (find_limit(cgroup, &cgroup->levels[i], &files[i]))
            level = i;
    }
    if (level < 0)
        return false;
    cgroup->tightest = find_tightest(cgroup);
    if (cgroup->tightest >= 0 && files[cgroup->tightest] >= 0)
        level = cgroup->tightest;
    *ret_change = (pl_cgroup_change){
        .level = level,
        .file = names_of_version[cgroup->version].limits[files[level]],
        .limit_bytes = cgroup->levels[level].file_limits_bytes[files[level]],
    };
    return true;
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

/* Returns the bytes of file cache; 0 if the kernel does not report them: the usage is then too
 * high, never too low. */
static uint64_t read_file_cache(const pl_cgroup *cgroup, const pl_cgroup_level *level)
{
    const file_names *names = &names_of_version[cgroup->version];
    char text[STAT_BYTES];
    uint64_t inactive = 0, active = 0;
    if (read_again(level->stat_fd, text, sizeof text) < 0)
        return 0;
    if (!pl_fixed_text_find_u64(text, names->stat_inactive, &inactive) ||
        !pl_fixed_text_find_u64(text, names->stat_active, &active))
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
    if (!pl_fixed_text_take_u64(&cursor, &charged))
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
    return pl_fixed_text_find_u64(text, "oom_kill", ret_n_kills) ? 0 : PL_EFORMAT;
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

int pl_cgroup_id_at(const char *path, uint64_t *ret_id)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return -errno;
    *ret_id = info.st_ino;
    return 0;
}

/* An ancestor counts what happens below it, but a descendant does not count its waits at an
 * ancestor, so each level is read. The largest count contains the others, except for siblings' own
 * limits. */
uint64_t pl_cgroup_throttles(const pl_cgroup *cgroup)
{
    uint64_t most = 0;
    for (int i = 0; i < cgroup->n_levels; i++) {
        const pl_cgroup_level *level = &cgroup->levels[i];
        uint64_t n = 0;
        char text[512];
        if (level->limit_bytes == 0 || level->limit_file != names_of_version[2].limits[1])
            continue;
        if (read_again(level->events_fd, text, sizeof text) >= 0 &&
            pl_fixed_text_find_u64(text, "high", &n))
            most = pl_max_u64(most, n);
    }
    return most;
}

/* Reads "123\n456\n" page by page: a group of many processes has more text than fits at once. The
 * file is opened each time, because v1 shows an open file the same content until it has not been
 * read for a second. */
int pl_cgroup_pids(const pl_cgroup *cgroup, pid_t *ret_pids, int max)
{
    int fd = open_group_file(cgroup->path, strlen(cgroup->path), "cgroup.procs");
    char text[4096];
    uint64_t pid = 0;
    bool digits = false;
    int n = 0;
    off_t at = 0;
    ssize_t got;
    while (n < max && (got = pread(fd, text, sizeof text, at)) > 0) {
        at += got;
        for (ssize_t i = 0; i < got && n < max; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (uint64_t)(text[i] - '0');
                digits = true;
                continue;
            }
            if (digits && pid > 0 && pid <= INT_MAX)
                ret_pids[n++] = (pid_t)pid;
            pid = 0;
            digits = false;
        }
    }
    close_fd(&fd);
    return n;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" */
static bool find_total(const char *text, const char *kind, uint64_t *ret_us)
{
    const char *line = strstr(text, kind);
    const char *total = line ? strstr(line, "total=") : NULL;
    if (!total)
        return false;
    total += strlen("total=");
    return pl_fixed_text_take_u64(&total, ret_us);
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
