/* SPDX-License-Identifier: Apache-2.0 */
/* See walk.h. */
#include "verify/walk.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum { FOLDERS_DEEP = 256 }; /* far more than anybody has; each takes some stack */

typedef struct walk {
    pl_paths *paths;
    pl_verify_folder skip;
    int depth;
    size_t n; /* bytes of path */
    char path[PATH_MAX];
} walk;

static int walk_folder(walk *w, pl_error *reterr);

static bool is_skipped(const walk *w, const struct stat *status)
{
    return w->skip.inode == status->st_ino && w->skip.device == status->st_dev &&
           w->skip.inode != 0;
}

/* What an entry is, where the folder does not tell, and what a link leads to. */
static int walk_other(walk *w, bool is_link, pl_paths *folders, pl_error *reterr)
{
    struct stat status;
    if (stat(w->path, &status) < 0)
        return is_link && errno == ENOENT ? pl_paths_add(w->paths, w->path, reterr) : 0;
    if (S_ISREG(status.st_mode))
        return pl_paths_add(w->paths, w->path, reterr);
    return S_ISDIR(status.st_mode) && !is_link ? pl_paths_add(folders, w->path, reterr) : 0;
}

static int walk_entry(walk *w, const struct dirent *entry, pl_paths *folders, pl_error *reterr)
{
    size_t before = w->n, n = strlen(entry->d_name);
    bool slash = w->n > 0 && w->path[w->n - 1] != '/';
    if (entry->d_name[0] == '.')
        return 0;
    if (w->n + slash + n >= sizeof w->path)
        return pl_error_set(reterr, -ENAMETOOLONG, "'%s/%s' is too long for a path", w->path,
                            entry->d_name);
    memcpy(w->path + w->n, "/", slash);
    memcpy(w->path + w->n + slash, entry->d_name, n + 1);
    w->n += slash + n;
    int r = entry->d_type == DT_REG   ? pl_paths_add(w->paths, w->path, reterr)
            : entry->d_type == DT_DIR ? pl_paths_add(folders, w->path, reterr)
            : entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN
                ? walk_other(w, entry->d_type == DT_LNK, folders, reterr)
                : 0;
    w->n = before;
    w->path[before] = '\0';
    return r;
}

static void set_path(walk *w, const char *path)
{
    w->n = strlen(path);
    memcpy(w->path, path, w->n + 1); /* from a path that fitted */
}

/* Its files, sorted; its folders go to `folders`. */
static int list_folder(walk *w, DIR *folder, pl_paths *folders, pl_error *reterr)
{
    size_t first = w->paths->n;
    int r = 0;
    for (struct dirent *entry; r == 0 && (entry = readdir(folder)) != NULL;)
        r = walk_entry(w, entry, folders, reterr);
    pl_paths_sort(w->paths, first);
    return r;
}

static int walk_folders(walk *w, pl_paths *folders, pl_error *reterr)
{
    int r = 0;
    pl_paths_sort(folders, 0);
    w->depth++;
    for (size_t i = 0; r == 0 && i < folders->n; i++) {
        set_path(w, pl_paths_at(folders, i));
        r = walk_folder(w, reterr);
    }
    w->depth--;
    return r;
}

static int walk_folder(walk *w, pl_error *reterr)
{
    struct stat status;
    pl_paths folders;
    DIR *folder = w->depth < FOLDERS_DEEP ? opendir(w->path) : NULL;
    if (!folder)
        return pl_paths_add(w->paths, w->path, reterr); /* found out about when it is opened */
    pl_paths_init(&folders, w->paths->memory);
    bool skipped = fstat(dirfd(folder), &status) == 0 && is_skipped(w, &status);
    int r = skipped ? 0 : list_folder(w, folder, &folders, reterr);
    closedir(folder);
    if (r == 0)
        r = walk_folders(w, &folders, reterr);
    pl_paths_done(&folders);
    return r;
}

static int walk_root(walk *w, const char *root, pl_error *reterr)
{
    struct stat status;
    w->n = strlen(root);
    if (w->n >= sizeof w->path)
        return pl_error_set(reterr, -ENAMETOOLONG, "'%s' is too long for a path", root);
    memcpy(w->path, root, w->n + 1);
    while (w->n > 1 && w->path[w->n - 1] == '/')
        w->path[--w->n] = '\0';
    if (stat(w->path, &status) < 0)
        return pl_error_set(reterr, -errno, "cannot look at '%s': %s", root, strerror(errno));
    if (S_ISDIR(status.st_mode))
        return walk_folder(w, reterr);
    if (!S_ISREG(status.st_mode))
        return pl_error_set(reterr, -EINVAL,
                            "cannot look at '%s': it is neither a file nor a folder", root);
    return pl_paths_add(w->paths, w->path, reterr);
}

int pl_verify_walk(const char *const *roots, size_t n_roots, pl_verify_folder skip, pl_paths *paths,
                   pl_error *reterr)
{
    walk w = {.paths = paths, .skip = skip};
    for (size_t i = 0; i < n_roots; i++) {
        int r = walk_root(&w, roots[i], reterr);
        if (r < 0)
            return r;
    }
    pl_paths_close(paths);
    return 0;
}
