/* SPDX-License-Identifier: Apache-2.0 */
/* See walk.h. */
#include "verify/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

typedef struct walk {
    pl_verify_found *found;
    void *context;
    pl_memory *memory;
    pl_verify_folder skip;
    pl_paths files; /* of one folder, sorted by name */
    int depth;
    size_t n; /* bytes of path */
    char path[PATH_MAX];
} walk;

static int walk_folder(walk *w, pl_error *reterr);

static bool is_skipped(const walk *w, DIR *folder)
{
    struct stat status;
    return w->skip.inode != 0 && fstat(dirfd(folder), &status) == 0 &&
           w->skip.inode == status.st_ino && w->skip.device == status.st_dev;
}

static int tell(walk *w, const char *folder, pl_error *reterr)
{
    return w->files.n > 0 ? w->found(w->context, folder, &w->files, reterr) : 0;
}

static int tell_one(walk *w, const char *folder, const char *name, pl_error *reterr)
{
    pl_paths_clear(&w->files);
    int r = pl_paths_add(&w->files, name, reterr);
    return r == 0 ? tell(w, folder, reterr) : r;
}

/* Finds the type of an entry if the folder does not give it, and of a link's target. */
static int list_other(walk *w, int folder, const struct dirent *entry, pl_paths *folders,
                      pl_error *reterr)
{
    struct stat status;
    bool is_link = entry->d_type == DT_LNK;
    if (fstatat(folder, entry->d_name, &status, 0) < 0)
        return is_link ? pl_paths_add(&w->files, entry->d_name, reterr) : 0; /* a broken link */
    if (S_ISREG(status.st_mode))
        return pl_paths_add(&w->files, entry->d_name, reterr);
    return S_ISDIR(status.st_mode) && !is_link ? pl_paths_add(folders, entry->d_name, reterr) : 0;
}

static int list_entry(walk *w, int folder, const struct dirent *entry, pl_paths *folders,
                      pl_error *reterr)
{
    if (entry->d_name[0] == '.')
        return 0;
    switch (entry->d_type) {
    case DT_REG:
        return pl_paths_add(&w->files, entry->d_name, reterr);
    case DT_DIR:
        return pl_paths_add(folders, entry->d_name, reterr);
    case DT_LNK:
    case DT_UNKNOWN:
        return list_other(w, folder, entry, folders, reterr);
    default:
        return 0;
    }
}

/* Lists its files and folders, sorted. */
static int list_folder(walk *w, DIR *folder, pl_paths *folders, pl_error *reterr)
{
    int r = 0;
    pl_paths_clear(&w->files);
    for (struct dirent *entry; r == 0 && (entry = readdir(folder)) != NULL;)
        r = list_entry(w, dirfd(folder), entry, folders, reterr);
    pl_paths_sort(&w->files, false);
    pl_paths_sort(folders, false);
    return r;
}

/* Reports a folder whose path is too long like one that cannot be read. */
static int walk_below(walk *w, const char *name, pl_error *reterr)
{
    size_t before = w->n, n = strlen(name);
    bool slash = w->n > 0 && w->path[w->n - 1] != '/';
    if (w->n + slash + n >= sizeof w->path)
        return tell_one(w, w->path, name, reterr);
    memcpy(w->path + w->n, "/", slash);
    memcpy(w->path + w->n + slash, name, n + 1);
    w->n += slash + n;
    int r = walk_folder(w, reterr);
    w->n = before;
    w->path[before] = '\0';
    return r;
}

static int walk_folders(walk *w, const pl_paths *folders, pl_error *reterr)
{
    int r = 0;
    w->depth++;
    for (size_t i = 0; r == 0 && i < folders->n; i++)
        r = walk_below(w, pl_paths_at(folders, i), reterr);
    w->depth--;
    return r;
}

static int walk_folder(walk *w, pl_error *reterr)
{
    pl_paths folders;
    DIR *folder = w->depth < PL_VERIFY_FOLDERS_DEEP ? opendir(w->path) : NULL;
    if (!folder)
        return tell_one(w, "", w->path, reterr); /* opening it will show the reason */
    pl_paths_init(&folders, w->memory);
    bool skipped = is_skipped(w, folder);
    int r = skipped ? 0 : list_folder(w, folder, &folders, reterr);
    closedir(folder);
    if (r == 0 && !skipped)
        r = tell(w, w->path, reterr);
    if (r == 0)
        r = walk_folders(w, &folders, reterr);
    pl_paths_done(&folders);
    return r;
}

static int check_root(const char *root, bool *ret_is_folder, pl_error *reterr)
{
    struct stat status;
    if (strlen(root) >= PATH_MAX)
        return pl_error_set(reterr, -ENAMETOOLONG, "'%s' is too long for a path", root);
    if (stat(root, &status) < 0)
        return pl_error_set(reterr, -errno, "cannot look at '%s': %s", root, strerror(errno));
    *ret_is_folder = S_ISDIR(status.st_mode);
    if (!*ret_is_folder && !S_ISREG(status.st_mode))
        return pl_error_set(reterr, -EINVAL,
                            "cannot look at '%s': it is neither a file nor a folder", root);
    return 0;
}

int pl_verify_check_roots(const char *const *roots, size_t n_roots, pl_error *reterr)
{
    bool is_folder;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n_roots; i++)
        r = check_root(roots[i], &is_folder, reterr);
    return r;
}

static int walk_root(walk *w, const char *root, pl_error *reterr)
{
    bool is_folder;
    int r = check_root(root, &is_folder, reterr);
    if (r < 0)
        return r;
    w->n = strlen(root);
    memcpy(w->path, root, w->n + 1);
    while (w->n > 1 && w->path[w->n - 1] == '/')
        w->path[--w->n] = '\0';
    return is_folder ? walk_folder(w, reterr) : tell_one(w, "", w->path, reterr);
}

int pl_verify_walk(const char *const *roots, size_t n_roots, pl_verify_folder skip,
                   pl_memory *memory, pl_verify_found *found, void *context, pl_error *reterr)
{
    walk w = {.found = found, .context = context, .memory = memory, .skip = skip};
    int r = 0;
    pl_paths_init(&w.files, memory);
    for (size_t i = 0; r == 0 && i < n_roots; i++)
        r = walk_root(&w, roots[i], reterr);
    pl_paths_done(&w.files);
    return r;
}
