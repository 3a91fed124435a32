/* SPDX-License-Identifier: Apache-2.0 */
/* See sysroot.h. */
#include "preflight/sysroot.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/file.h"
#include "sys/proc.h"

enum { MOST_LINKS = 16, MOST_NAMES = 100000 };

bool pl_format(char *out, size_t n, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(out, n, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < n)
        return true;
    out[0] = '\0';
    return false;
}

bool pl_sysroot_path(const char *root, const char *path, char out[PATH_MAX])
{
    return pl_format(out, PATH_MAX, "%s%s", root, path);
}

static mode_t mode_of(const char *root, const char *path)
{
    char full[PATH_MAX];
    struct stat status;
    bool there = pl_sysroot_path(root, path, full) && stat(full, &status) == 0;
    return there ? status.st_mode : 0;
}

bool pl_sysroot_is_folder(const char *root, const char *path)
{
    return S_ISDIR(mode_of(root, path));
}

bool pl_sysroot_is_file(const char *root, const char *path)
{
    return S_ISREG(mode_of(root, path));
}

int pl_sysroot_open(const char *root, const char *path)
{
    char full[PATH_MAX];
    uint64_t n;
    return pl_sysroot_path(root, path, full) ? pl_file_open_regular(full, &n) : -ENAMETOOLONG;
}

int pl_sysroot_read(const char *root, const char *path, uint64_t most_bytes, char **ret_text)
{
    char full[PATH_MAX];
    uint64_t n;
    if (!pl_sysroot_path(root, path, full))
        return -ENAMETOOLONG;
    int fd = pl_file_open_regular(full, &n);
    if (fd < 0)
        return fd;
    n = pl_min_u64(n, most_bytes);
    char *text = malloc(n + 1);
    int r = text == NULL ? -ENOMEM : pl_file_read(fd, text, n, 0);
    close(fd);
    if (r < 0) {
        free(text);
        return r;
    }
    text[n] = '\0';
    *ret_text = text;
    return 0;
}

int pl_sysroot_read_proc(const char *root, const char *path, char *buffer, size_t n)
{
    char full[PATH_MAX];
    return pl_sysroot_path(root, path, full) ? pl_proc_read_file(full, buffer, n) : -ENAMETOOLONG;
}

/* Replaces the link's last component with its target, or the whole path if the target is absolute.
 */
static bool follow(char path[PATH_MAX], const char *target)
{
    char next[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int n = target[0] == '/' || slash == NULL ? 0 : (int)(slash - path) + 1;
    if (!pl_format(next, sizeof next, "%.*s%s", n, path, target))
        return false;
    memcpy(path, next, sizeof next);
    return true;
}

int pl_sysroot_resolve(const char *root, const char *path, char out[PATH_MAX])
{
    char at[PATH_MAX];
    if (!pl_format(at, sizeof at, "%s", path))
        return -ENAMETOOLONG;
    for (int i = 0; i < MOST_LINKS; i++) {
        char full[PATH_MAX], target[PATH_MAX];
        if (!pl_sysroot_path(root, at, full))
            return -ENAMETOOLONG;
        ssize_t n = readlink(full, target, sizeof target - 1);
        if (n < 0 && errno != EINVAL)
            return -errno;
        if (n < 0) {
            memcpy(out, at, sizeof at);
            return 0;
        }
        target[n] = '\0';
        if (!follow(at, target))
            return -ENAMETOOLONG;
    }
    return -ELOOP;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void pl_folder_names_done(pl_folder_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->items[i]);
    free(names->items);
    *names = (pl_folder_names){0};
}

static int add_name(pl_folder_names *names, const char *name)
{
    size_t n = names->n;
    if ((n & (n - 1)) == 0) {
        char **items = realloc(names->items, (n == 0 ? 1 : 2 * n) * sizeof *items);
        if (items == NULL)
            return -ENOMEM;
        names->items = items;
    }
    names->items[n] = strdup(name);
    if (names->items[n] == NULL)
        return -ENOMEM;
    names->n++;
    return 0;
}

int pl_sysroot_list(const char *root, const char *path, pl_folder_names *ret_names)
{
    char full[PATH_MAX];
    if (!pl_sysroot_path(root, path, full))
        return -ENAMETOOLONG;
    DIR *folder = opendir(full);
    if (folder == NULL)
        return -errno;
    pl_folder_names names = {0};
    int r = 0;
    for (struct dirent *entry; r == 0 && (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.')
            r = names.n < MOST_NAMES ? add_name(&names, entry->d_name) : -E2BIG;
    closedir(folder);
    if (r < 0) {
        pl_folder_names_done(&names);
        return r;
    }
    if (names.n > 0)
        qsort(names.items, names.n, sizeof *names.items, compare_names);
    *ret_names = names;
    return 0;
}
