/* SPDX-License-Identifier: Apache-2.0 */
#include "data/source/glob.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum { FOLDERS_DEEP = 64 }; /* as many folders are open at a time: a limit of files is 1024 */

typedef struct walk {
    pl_glob_visit *visit;
    void *context;
    int depth;
    size_t n; /* bytes of path */
    char path[PATH_MAX];
} walk;

static int go_on(walk *w, const char *pattern, pl_error *reterr);

static bool is_pattern(const char *text)
{
    return strpbrk(text, "*?[") != NULL;
}

/* Appends a part; returns how long the path was before. */
static int append(walk *w, const char *part, size_t n, size_t *ret_before, pl_error *reterr)
{
    bool slash = w->n > 0 && w->path[w->n - 1] != '/';
    if (w->n + slash + n >= sizeof w->path)
        return pl_error_set(reterr, -ENAMETOOLONG, "'%s/%.*s' is too long for a path", w->path,
                            (int)n, part);
    *ret_before = w->n;
    if (slash)
        w->path[w->n++] = '/';
    memcpy(w->path + w->n, part, n);
    w->n += n;
    w->path[w->n] = 0;
    return 0;
}

static void cut(walk *w, size_t before)
{
    w->n = before;
    w->path[before] = 0;
}

static bool is_folder(const char *path, bool follow)
{
    struct stat status;
    int r = follow ? stat(path, &status) : lstat(path, &status);
    return r == 0 && S_ISDIR(status.st_mode);
}

/* The whole pattern matches: gives the path, unless it is a folder. */
static int visit_file(walk *w, pl_error *reterr)
{
    struct stat status;
    if (stat(w->path, &status) < 0 || S_ISDIR(status.st_mode))
        return 0;
    return w->visit(w->context, w->path, reterr);
}

/* One name of a folder against the part of the pattern that is `part`, with `rest` behind it. */
static int try_name(walk *w, const char *name, const char *part, const char *rest, pl_error *reterr)
{
    bool any_depth = strcmp(part, "**") == 0;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    if (any_depth ? name[0] == '.' : fnmatch(part, name, FNM_PERIOD) != 0)
        return 0;
    size_t before = w->n;
    int r = append(w, name, strlen(name), &before, reterr);
    if (r < 0)
        return r;
    if (any_depth)
        r = is_folder(w->path, false) ? go_on(w, rest - strlen("**/"), reterr) : 0;
    else
        r = *rest ? go_on(w, rest, reterr) : visit_file(w, reterr);
    cut(w, before);
    return r;
}

static int read_folder(walk *w, const char *part, const char *rest, pl_error *reterr)
{
    if (w->depth == FOLDERS_DEEP)
        return pl_error_set(reterr, -ELOOP, "'%s' is more than %d folders deep", w->path,
                            FOLDERS_DEEP);
    DIR *folder = opendir(w->n > 0 ? w->path : ".");
    if (!folder)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM
                   ? pl_error_set(reterr, -errno, "cannot read '%s': %s", w->path, strerror(errno))
                   : 0;
    int r = 0;
    w->depth++;
    for (struct dirent *entry; r >= 0 && (entry = readdir(folder));)
        r = try_name(w, entry->d_name, part, rest, reterr);
    w->depth--;
    closedir(folder);
    return r;
}

/* The next part of the pattern, in the folder that w->path is. */
static int go_on(walk *w, const char *pattern, pl_error *reterr)
{
    size_t n = strcspn(pattern, "/"), before = w->n;
    const char *rest = pattern + n + strspn(pattern + n, "/");
    char part[NAME_MAX + 1];
    if (n > NAME_MAX)
        return 0; /* no name is that long */
    memcpy(part, pattern, n);
    part[n] = 0;
    if (strcmp(part, "**") == 0 && pattern[n] == '/') {
        int r = go_on(w, rest, reterr); /* no folder at all */
        return r < 0 ? r : read_folder(w, part, pattern + strlen("**/"), reterr);
    }
    if (is_pattern(part))
        return read_folder(w, strcmp(part, "**") == 0 ? "*" : part, rest, reterr);
    int r = append(w, part, n, &before, reterr);
    if (r < 0)
        return r;
    if (!*rest)
        r = visit_file(w, reterr);
    else if (is_folder(w->path, true))
        r = go_on(w, rest, reterr);
    cut(w, before);
    return r;
}

int pl_glob(const char *pattern, pl_glob_visit *visit, void *context, pl_error *reterr)
{
    walk w = {.visit = visit, .context = context};
    size_t n_slashes = strspn(pattern, "/");
    if (n_slashes > 0)
        w.path[w.n++] = '/';
    int r = go_on(&w, pattern + n_slashes, reterr);
    return r < 0 ? r : 0;
}

int pl_glob_below(const char *folder, const char *pattern, pl_glob_visit *visit, void *context,
                  pl_error *reterr)
{
    walk w = {.visit = visit, .context = context};
    size_t before;
    int r = append(&w, folder, strlen(folder), &before, reterr);
    if (r == 0)
        r = go_on(&w, pattern, reterr);
    return r < 0 ? r : 0;
}
