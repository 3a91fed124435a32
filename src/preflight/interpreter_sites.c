/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the folders that a Python searches for packages, in its order: as CPython's site.py builds
 * them, with Debian's changes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "preflight/interpreter.h"
#include "preflight/sysroot.h"

enum { PTH_BYTES = 1 << 16 };

typedef struct site_list {
    const char *root;
    pl_interpreter *interpreter;
    bool no_memory;
} site_list;

/* lib64 is often a link to lib. */
static bool is_same(const char *root, const char *a, const char *b)
{
    char full_a[PATH_MAX], full_b[PATH_MAX];
    struct stat status_a, status_b;
    return pl_sysroot_path(root, a, full_a) && pl_sysroot_path(root, b, full_b) &&
           stat(full_a, &status_a) == 0 && stat(full_b, &status_b) == 0 &&
           status_a.st_ino == status_b.st_ino && status_a.st_dev == status_b.st_dev;
}

static void add_folder(site_list *list, const char *path)
{
    pl_interpreter *interpreter = list->interpreter;
    if (interpreter->n_sites == PL_INTERPRETER_SITES || !pl_sysroot_is_folder(list->root, path))
        return;
    for (size_t i = 0; i < interpreter->n_sites; i++)
        if (is_same(list->root, interpreter->sites[i], path))
            return;
    char *copy = strdup(path);
    if (copy == NULL)
        list->no_memory = true;
    else
        interpreter->sites[interpreter->n_sites++] = copy;
}

bool pl_pth_next(char **cursor, const char *site, char path[PATH_MAX])
{
    for (char *line = *cursor, *next; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        line[strcspn(line, "\r")] = '\0';
        bool absolute = line[0] == '/';
        *cursor = next;
        if (line[0] != '\0' && line[0] != '#' && strncmp(line, "import", 6) != 0 &&
            pl_format(path, PATH_MAX, "%s%s%s", absolute ? "" : site, absolute ? "" : "/", line))
            return true;
    }
    return false;
}

static void add_pth(site_list *list, const char *site, const char *name)
{
    char file[PATH_MAX], path[PATH_MAX], *text = NULL;
    if (!pl_format(file, sizeof file, "%s/%s", site, name) ||
        pl_sysroot_read(list->root, file, PTH_BYTES, &text) < 0)
        return;
    for (char *cursor = text; pl_pth_next(&cursor, site, path);)
        add_folder(list, path);
    free(text);
}

static void add_site(site_list *list, const char *path)
{
    pl_folder_names names = {0};
    size_t n = list->interpreter->n_sites;
    add_folder(list, path);
    if (list->interpreter->n_sites == n || pl_sysroot_list(list->root, path, &names) < 0)
        return;
    for (size_t i = 0; i < names.n; i++) {
        size_t length = strlen(names.items[i]);
        if (length > 4 && strcmp(names.items[i] + length - 4, ".pth") == 0)
            add_pth(list, path, names.items[i]);
    }
    pl_folder_names_done(&names);
}

static void add_format(site_list *list, const char *prefix, const char *before, const char *after)
{
    char path[PATH_MAX];
    const pl_interpreter *interpreter = list->interpreter;
    if (pl_format(path, sizeof path, "%s/%s%s%s/%s", prefix, before, interpreter->version,
                  interpreter->free_threaded ? "t" : "", after))
        add_site(list, path);
}

static void add_python_path(site_list *list)
{
    const char *next = getenv("PYTHONPATH");
    while (next != NULL && *next != '\0') {
        char path[PATH_MAX];
        size_t n = strcspn(next, ":");
        if (next[0] == '/' && pl_format(path, sizeof path, "%.*s", (int)n, next))
            add_folder(list, path);
        next += n + (next[n] == ':');
    }
}

static void add_user_site(site_list *list)
{
    char base[PATH_MAX];
    const char *set = getenv("PYTHONUSERBASE"), *home = getenv("HOME");
    const char *without = getenv("PYTHONNOUSERSITE");
    if (without != NULL && without[0] != '\0')
        return;
    if (set != NULL && set[0] == '/')
        add_format(list, set, "lib/python", "site-packages");
    else if (home != NULL && home[0] == '/' && pl_format(base, sizeof base, "%s/.local", home))
        add_format(list, base, "lib/python", "site-packages");
}

/* Debian's own Python uses dist-packages: for pip's packages and for Debian's. */
static void add_base_sites(site_list *list)
{
    const char *base = list->interpreter->base;
    if (strcmp(base, "/usr") == 0 &&
        pl_sysroot_is_folder(list->root, "/usr/lib/python3/dist-packages")) {
        add_format(list, "/usr/local", "lib/python", "dist-packages");
        add_site(list, "/usr/lib/python3/dist-packages");
        add_format(list, "/usr", "lib/python", "dist-packages");
        return;
    }
    if (strcmp(base, "/usr") == 0) { /* Fedora's pip */
        add_format(list, "/usr/local", "lib64/python", "site-packages");
        add_format(list, "/usr/local", "lib/python", "site-packages");
    }
    add_format(list, base, "lib64/python", "site-packages");
    add_format(list, base, "lib/python", "site-packages");
}

int pl_interpreter_find_sites(const char *root, pl_interpreter *interpreter)
{
    site_list list = {.root = root, .interpreter = interpreter};
    add_python_path(&list);
    if (strcmp(interpreter->kind, "virtualenv") == 0) {
        add_format(&list, interpreter->prefix, "lib/python", "site-packages");
        add_format(&list, interpreter->prefix, "lib64/python", "site-packages");
    }
    if (interpreter->sees_base) {
        add_user_site(&list);
        add_base_sites(&list);
    }
    return list.no_memory ? -ENOMEM : 0;
}
