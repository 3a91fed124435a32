/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves a program: a path, an environment's folder, or a name on PATH, through pyenv's shims. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preflight/interpreter.h"
#include "preflight/sysroot.h"

enum { VERSION_FILE_BYTES = 4096 };

/* A virtualenv's program is an absolute link, which leads elsewhere below another root. */
static bool runs(const char *root, const char *path)
{
    char real[PATH_MAX], full[PATH_MAX];
    return pl_sysroot_resolve(root, path, real) == 0 && pl_sysroot_is_file(root, real) &&
           pl_sysroot_path(root, real, full) && access(full, X_OK) == 0;
}

/* A version names a folder of pyenv's. One that leads out of there is refused, as pyenv does. */
static bool is_version(const char *version)
{
    return version[0] != '\0' && strchr(version, '/') == NULL && strcmp(version, ".") != 0 &&
           strcmp(version, "..") != 0;
}

bool pl_pyenv_version(const char *text, char version[PL_PYENV_VERSION_BYTES])
{
    const char *start = text + strspn(text, " \t\r\n");
    return pl_format(version, PL_PYENV_VERSION_BYTES, "%.*s", (int)strcspn(start, " \t\r\n:"),
                     start) &&
           is_version(version);
}

static bool read_version_file(const char *root, const char *path,
                              char version[PL_PYENV_VERSION_BYTES])
{
    char *text = NULL;
    if (pl_sysroot_read(root, path, VERSION_FILE_BYTES, &text) < 0)
        return false;
    bool found = pl_pyenv_version(text, version);
    free(text);
    return found;
}

/* Looks for .python-version here and in the folders above. */
static bool read_local_version(const char *root, char version[PL_PYENV_VERSION_BYTES])
{
    char folder[PATH_MAX], file[PATH_MAX];
    if (root[0] != '\0' || getcwd(folder, sizeof folder) == NULL)
        return false;
    for (;;) {
        if (pl_format(file, sizeof file, "%s/.python-version", folder) &&
            read_version_file(root, file, version))
            return true;
        char *slash = strrchr(folder, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
    }
}

/* In pyenv's order: its variable, the local file, the global one. */
static bool pyenv_version(const char *root, const char *pyenv, char version[PL_PYENV_VERSION_BYTES],
                          bool *ret_by_folder)
{
    char file[PATH_MAX];
    const char *set = getenv("PYENV_VERSION");
    if (set != NULL && set[0] != '\0')
        return pl_format(version, PL_PYENV_VERSION_BYTES, "%.*s", (int)strcspn(set, ":"), set) &&
               is_version(version);
    *ret_by_folder = read_local_version(root, version);
    return *ret_by_folder || (pl_format(file, sizeof file, "%s/version", pyenv) &&
                              read_version_file(root, file, version));
}

/* Returns 1 if `path` was a pyenv shim and now holds its target, 0 if it is not a shim, -ENOENT if
 * its target cannot be determined. */
static int resolve_shim(const char *root, const char *name, char path[PATH_MAX],
                        bool *ret_by_folder)
{
    char pyenv[PATH_MAX], versions[PATH_MAX], version[PL_PYENV_VERSION_BYTES];
    static const char shims[] = "/shims";
    size_t n = strlen(path) - strlen(name) - 1, n_shims = strlen(shims); /* up to the last slash */
    if (n < n_shims || memcmp(path + n - n_shims, shims, n_shims) != 0 ||
        !pl_format(pyenv, sizeof pyenv, "%.*s", (int)(n - n_shims), path) ||
        !pl_format(versions, sizeof versions, "%s/versions", pyenv) ||
        !pl_sysroot_is_folder(root, versions))
        return 0;
    if (!pyenv_version(root, pyenv, version, ret_by_folder) ||
        !pl_format(path, PATH_MAX, "%s/%s/bin/%s", versions, version, name) || !runs(root, path))
        return -ENOENT;
    return 1;
}

static int find_on_path(const char *root, const char *name, char path[PATH_MAX],
                        bool *ret_by_folder)
{
    const char *next = getenv("PATH");
    if (next == NULL)
        return -ENOENT;
    for (;;) {
        size_t n = strcspn(next, ":");
        *ret_by_folder = false;
        if (n > 0 && next[0] == '/' && pl_format(path, PATH_MAX, "%.*s/%s", (int)n, next, name) &&
            runs(root, path) && resolve_shim(root, name, path, ret_by_folder) >= 0)
            return 0;
        if (next[n] == '\0')
            return -ENOENT;
        next += n + 1;
    }
}

static bool make_absolute(const char *root, const char *word, char path[PATH_MAX])
{
    char here[PATH_MAX];
    if (word[0] == '/')
        return pl_format(path, PATH_MAX, "%s", word);
    return root[0] == '\0' && getcwd(here, sizeof here) != NULL &&
           pl_format(path, PATH_MAX, "%s/%s", here, word);
}

/* A bare word that is not on PATH can name an environment's folder here, but not a program here: a
 * shell would not run that either. */
static int find_at(const char *root, const char *word, char path[PATH_MAX], bool *ret_by_folder)
{
    static const char *const names[] = {"bin/python3", "bin/python"};
    char folder[PATH_MAX];
    if (!make_absolute(root, word, folder))
        return -ENOENT;
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        folder[--n] = '\0';
    if (!pl_sysroot_is_folder(root, folder)) {
        const char *name = strrchr(folder, '/') + 1;
        memcpy(path, folder, n + 1);
        bool found = strchr(word, '/') != NULL && runs(root, path) &&
                     resolve_shim(root, name, path, ret_by_folder) >= 0;
        return found ? 0 : -ENOENT;
    }
    for (size_t i = 0; i < PL_COUNT_OF(names); i++)
        if (pl_format(path, PATH_MAX, "%s/%s", folder, names[i]) && runs(root, path))
            return 0;
    return -ENOENT;
}

int pl_interpreter_program(const char *root, const char *word, char path[PATH_MAX],
                           bool *ret_by_folder)
{
    *ret_by_folder = false;
    if (word != NULL && strchr(word, '/') != NULL)
        return find_at(root, word, path, ret_by_folder);
    if (find_on_path(root, word != NULL ? word : "python3", path, ret_by_folder) == 0)
        return 0;
    *ret_by_folder = false;
    return word == NULL ? find_on_path(root, "python", path, ret_by_folder)
                        : find_at(root, word, path, ret_by_folder);
}
