/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/cgroup names a group by its path in the hierarchy; /proc/self/mountinfo says which part
 * of the hierarchy is mounted where. In a container the two often disagree:
 *
 *   group             mount root        mount point             the folder is
 *   /user/a           /                 /sys/fs/cgroup          /sys/fs/cgroup/user/a
 *   /docker/ID        /docker/ID        /sys/fs/cgroup/memory   /sys/fs/cgroup/memory
 *   /docker/ID/job    /docker/ID        /sys/fs/cgroup/memory   /sys/fs/cgroup/memory/job
 *   /../other         /                 /sys/fs/cgroup          /sys/fs/cgroup (all we can see)
 *   /gone (deleted)   /                 /sys/fs/cgroup          /sys/fs/cgroup
 *
 * The mounts are always those of the caller, for any `pid`: the caller opens the files. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "sys/cgroup_find.h"
#include "sys/fixed_text.h"
#include "sys/line_reader.h"

typedef struct mount {
    bool found;
    bool covers; /* its root is the group or an ancestor of it */
    char root[PL_CGROUP_PATH_BYTES];
    char point[PL_CGROUP_PATH_BYTES];
} mount;

static bool list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *item = list; item; item = strchr(item, ',')) {
        item += *item == ',';
        if (strncmp(item, word, n) == 0 && (item[n] == ',' || item[n] == '\0'))
            return true;
    }
    return false;
}

static int open_proc_lines(pl_line_reader *lines, const char *root, pid_t pid, const char *name)
{
    char storage[PATH_MAX];
    pl_fixed_text path = pl_fixed_text_begin(storage, sizeof storage);
    pl_fixed_text_add(&path, root);
    pl_fixed_text_add(&path, "/proc/");
    if (pid > 0)
        pl_fixed_text_add_u64(&path, (uint64_t)pid);
    else
        pl_fixed_text_add(&path, "self");
    pl_fixed_text_add(&path, name);
    lines->fd = -1;
    return path.overflow ? -ENAMETOOLONG : pl_line_reader_init(lines, storage);
}

static bool copy_path(char to[PL_CGROUP_PATH_BYTES], const char *from)
{
    pl_fixed_text text = pl_fixed_text_begin(to, PL_CGROUP_PATH_BYTES);
    pl_fixed_text_add(&text, from);
    return !text.overflow;
}

/* One line is "4:cpu,memory:/path" (v1) or "0::/path" (v2). A v1 line that lists the controller
 * decides: it is in one hierarchy only. Returns the version, 0 for none. */
static int parse_group_line(char *line, const char *controller, char group[PL_CGROUP_PATH_BYTES])
{
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path || path[1] != '/')
        return 0;
    *path++ = '\0';
    int version = list_has(controllers + 1, controller) ? 1 : strcmp(line, "0:") == 0 ? 2 : 0;
    return version > 0 && copy_path(group, path) ? version : 0;
}

static int find_group(const char *root, pid_t pid, const char *controller,
                      char group[PL_CGROUP_PATH_BYTES])
{
    PL_CLEANUP(pl_line_reader_done) pl_line_reader lines;
    int r = open_proc_lines(&lines, root, pid, "/cgroup");
    if (r < 0)
        return r;
    int version = 0;
    char *line, path[PL_CGROUP_PATH_BYTES];
    while (version != 1 && (r = pl_line_reader_next(&lines, &line)) > 0) {
        int found = parse_group_line(line, controller, path);
        if (found > 0) {
            version = found;
            memcpy(group, path, sizeof path);
        }
    }
    return r < 0 ? r : version;
}

/* mountinfo writes space, tab, newline, backslash and '#' as \ooo. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        bool octal = from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
                     from[2] <= '7' && from[3] >= '0' && from[3] <= '7';
        if (octal) {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* Finds paths that climb out: the kernel's form for groups outside of our cgroup namespace. */
static bool climbs(const char *path)
{
    for (const char *p = path; (p = strstr(p, "/..")); p += 3)
        if (p[3] == '/' || p[3] == '\0')
            return true;
    return false;
}

/* Returns the length of `ancestor` if `path` is it or lies below it, else -1. */
static int prefix_length(const char *path, const char *ancestor)
{
    size_t n = strcmp(ancestor, "/") == 0 ? 0 : strlen(ancestor);
    if (climbs(path) || climbs(ancestor) || strncmp(path, ancestor, n) != 0)
        return -1;
    return path[n] == '/' || path[n] == '\0' ? (int)n : -1;
}

/* "36 35 98:0 ROOT POINT OPTIONS [TAG...] - TYPE SOURCE SUPER_OPTIONS". False unless it is a mount
 * of the controller in that version. */
static bool parse_mount_line(char *line, int version, const char *controller, mount *ret_mount)
{
    char *tail = strstr(line, " - ");
    if (!tail)
        return false;
    *tail = '\0';
    tail += 3;
    const char *type = strsep(&tail, " ");
    if (!tail || strcmp(type, version == 1 ? "cgroup" : "cgroup2") != 0)
        return false;
    strsep(&tail, " "); /* the source: any word */
    if (version == 1 && (!tail || !list_has(tail, controller)))
        return false;

    for (int i = 0; i < 3; i++)
        strsep(&line, " ");
    char *root = strsep(&line, " ");
    char *point = strsep(&line, " ");
    if (!root || !point || root[0] != '/' || point[0] != '/')
        return false;
    unescape(root);
    unescape(point);
    return copy_path(ret_mount->root, root) && copy_path(ret_mount->point, point);
}

/* Prefers a mount that shows our group, and else the one that shows most of its ancestors. */
static bool is_better(const mount *candidate, const mount *best)
{
    if (!best->found)
        return true;
    if (candidate->covers != best->covers)
        return candidate->covers;
    return candidate->covers && strlen(candidate->root) < strlen(best->root);
}

static int find_mount(const char *root, int version, const char *controller, const char *group,
                      mount *ret_mount)
{
    PL_CLEANUP(pl_line_reader_done) pl_line_reader lines;
    int r = open_proc_lines(&lines, root, 0, "/mountinfo");
    if (r < 0)
        return r;
    char *line;
    mount candidate;
    ret_mount->found = false;
    while ((r = pl_line_reader_next(&lines, &line)) > 0) {
        if (!parse_mount_line(line, version, controller, &candidate))
            continue;
        candidate.found = true;
        candidate.covers = prefix_length(group, candidate.root) >= 0;
        if (is_better(&candidate, ret_mount))
            *ret_mount = candidate;
    }
    if (r < 0)
        return r;
    return ret_mount->found ? 0 : -ENOENT;
}

/* The group may be gone, or lie outside of the part that a container shows: takes the nearest
 * folder that exists, no further out than the mount point. */
static int shorten_to_existing(pl_cgroup_place *place)
{
    while (access(place->path, F_OK) != 0) {
        char *slash = strrchr(place->path, '/');
        if (!slash || (size_t)(slash - place->path) < place->mount_length)
            return -ENOENT;
        *slash = '\0';
    }
    return 0;
}

int pl_cgroup_find(const char *root, pid_t pid, const char *controller, pl_cgroup_place *ret_place)
{
    char group[PL_CGROUP_PATH_BYTES];
    int version = find_group(root, pid, controller, group);
    if (version <= 0)
        return version < 0 ? version : -ENOENT;

    mount mounted;
    int r = find_mount(root, version, controller, group, &mounted);
    if (r < 0)
        return r;

    pl_fixed_text path = pl_fixed_text_begin(ret_place->path, sizeof ret_place->path);
    pl_fixed_text_add(&path, root);
    pl_fixed_text_add(&path, mounted.point);
    ret_place->version = version;
    ret_place->mount_length = path.length;
    if (mounted.covers && strcmp(group, "/") != 0)
        pl_fixed_text_add(&path, group + prefix_length(group, mounted.root));
    return path.overflow ? -ENAMETOOLONG : shorten_to_existing(ret_place);
}
