/* SPDX-License-Identifier: Apache-2.0 */
/* See paths.h. The order is that of jupyter_path() in jupyter_core and of KernelSpecManager in
 * jupyter_client. One path is unknown here: the `sys.prefix` of the Python that Jupyter will run
 * in. We list every environment that it can reasonably be. */
#include "jupyter/paths.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jupyter/folder.h"
#include "jupyter/program.h"

static const char *const system_prefixes[] = {"/usr/local", "/usr"};

/* A variable that is set but empty counts as unset, as in jupyter_core. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* jupyter_core resolves links in the home folder, so users see the result in its messages. */
static int home_folder(char path[PATH_MAX])
{
    const char *home = variable("HOME");
    if (home == NULL) {
        const struct passwd *user = getpwuid(getuid());
        home = user != NULL ? user->pw_dir : NULL;
    }
    if (home == NULL)
        return -ENOENT;
    if (realpath(home, path) != NULL)
        return 0;
    return pl_path_absolute(home, path);
}

static int below_home(const char *name, char path[PATH_MAX])
{
    char home[PATH_MAX];
    int r = home_folder(home);
    return r < 0 ? r : pl_path_join(home, name, path);
}

/* Expands "~" and "~/..." as Python's expanduser() does; does not look up other users' homes. */
static int expand_user(const char *text, char path[PATH_MAX])
{
    if (text[0] == '~' && (text[1] == '/' || text[1] == '\0'))
        return below_home(text + 1 + (text[1] == '/'), path);
    return pl_path_absolute(text, path);
}

static int user_data_folder(char path[PATH_MAX])
{
    const char *own = variable("JUPYTER_DATA_DIR"), *xdg = variable("XDG_DATA_HOME");
    if (own != NULL)
        return pl_path_absolute(own, path);
    char data[PATH_MAX];
    int r = xdg != NULL ? pl_path_absolute(xdg, data) : below_home(".local/share", data);
    return r < 0 ? r : pl_path_join(data, "jupyter", path);
}

int pl_jupyter_user_folder(char path[PATH_MAX], pl_error *reterr)
{
    char data[PATH_MAX];
    int r = user_data_folder(data);
    if (r == 0)
        r = pl_path_join(data, "kernels", path);
    if (r == -ENOENT)
        return pl_error_set(reterr, r,
                            "no folder for the user's kernels: HOME is not set; set it or "
                            "JUPYTER_DATA_DIR, or give --prefix DIR");
    if (r < 0)
        return pl_error_set(reterr, r, "cannot name the user's kernels folder: %s",
                            pl_error_text(r));
    return 0;
}

int pl_jupyter_prefix_folder(const char *prefix, char path[PATH_MAX], pl_error *reterr)
{
    char whole[PATH_MAX];
    int r = prefix[0] == '\0' ? -ENOENT : pl_path_absolute(prefix, whole);
    if (r == 0)
        r = pl_path_join(whole, "share/jupyter/kernels", path);
    if (r < 0)
        return pl_error_set(reterr, r, "'%s' cannot be a prefix: %s", prefix, pl_error_text(r));
    return 0;
}

/* Adds a kernels folder to the list, once. */
static int add_kernels(pl_jupyter_paths *paths, const char *folder)
{
    for (size_t i = 0; i < paths->n_folders; i++)
        if (strcmp(paths->folders[i], folder) == 0)
            return 0;
    char **larger = reallocarray(paths->folders, paths->n_folders + 1, sizeof(*larger));
    if (larger == NULL)
        return -ENOMEM;
    paths->folders = larger;
    char *copy = strdup(folder);
    if (copy == NULL)
        return -ENOMEM;
    paths->folders[paths->n_folders++] = copy;
    return 0;
}

/* A path that is too long cannot hold kernels: it is left out, and the others stay. */
static int add_below(pl_jupyter_paths *paths, const char *folder, const char *name)
{
    char absolute[PATH_MAX], kernels[PATH_MAX];
    if (pl_path_absolute(folder, absolute) < 0 || pl_path_join(absolute, name, kernels) < 0)
        return 0;
    return add_kernels(paths, kernels);
}

static int add_listed(pl_jupyter_paths *paths, const char *list)
{
    int r = 0;
    for (const char *next = list; r == 0 && next != NULL;) {
        size_t n = strcspn(next, ":");
        char one[PATH_MAX];
        if (n > 0 && n < sizeof(one)) {
            memcpy(one, next, n);
            one[n] = '\0';
            r = add_below(paths, one, "kernels");
        }
        next = next[n] == ':' ? next + n + 1 : NULL;
    }
    return r;
}

/* Python's user base is a separate folder only if Jupyter's data folder was moved. */
static int add_user(pl_jupyter_paths *paths)
{
    char data[PATH_MAX], base[PATH_MAX];
    int r = user_data_folder(data);
    if (r == 0)
        r = add_below(paths, data, "kernels");
    if (r == -ENOMEM || variable("PYTHONNOUSERSITE") != NULL)
        return r == -ENOMEM ? r : 0;
    const char *own = variable("PYTHONUSERBASE");
    r = own != NULL ? expand_user(own, base) : below_home(".local", base);
    return r == 0 ? add_below(paths, base, "share/jupyter/kernels") : 0;
}

/* The system's own prefixes come last, in every environment. */
static int add_prefix(pl_jupyter_paths *paths, const char *prefix)
{
    for (size_t i = 0; i < PL_COUNT_OF(system_prefixes); i++)
        if (strcmp(prefix, system_prefixes[i]) == 0)
            return 0;
    return add_below(paths, prefix, "share/jupyter/kernels");
}

static int add_environments(pl_jupyter_paths *paths)
{
    static const char *const variables[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    static const char *const programs[] = {"jupyter", "python3"};
    int r = 0;
    for (size_t i = 0; r == 0 && i < PL_COUNT_OF(variables); i++)
        if (variable(variables[i]) != NULL)
            r = add_prefix(paths, variable(variables[i]));
    for (size_t i = 0; r == 0 && i < PL_COUNT_OF(programs); i++) {
        char prefix[PATH_MAX];
        if (pl_program_prefix(programs[i], prefix) == 0)
            r = add_prefix(paths, prefix);
    }
    return r;
}

static bool is_mine(const char *folder)
{
    struct stat st;
    return folder != NULL && stat(folder, &st) == 0 && st.st_uid == getuid();
}

/* Unless the variable is set, jupyter_core 5 puts an environment first that belongs to the user.
 * Version 4 never does, but a new environment gets version 5. */
static bool prefers_environment(void)
{
    static const char *const no[] = {"no", "n", "false", "off", "0", "0.0"};
    const char *set = getenv("JUPYTER_PREFER_ENV_PATH");
    for (size_t i = 0; set != NULL && i < PL_COUNT_OF(no); i++)
        if (strcasecmp(set, no[i]) == 0)
            return false;
    if (set != NULL)
        return true;
    const char *conda = variable("CONDA_DEFAULT_ENV");
    return is_mine(variable("VIRTUAL_ENV")) ||
           (conda != NULL && strcmp(conda, "base") != 0 && is_mine(variable("CONDA_PREFIX")));
}

/* IPython's own folder is older than Jupyter, which still searches it, last. */
static int add_ipython(pl_jupyter_paths *paths)
{
    char folder[PATH_MAX];
    const char *own = variable("IPYTHONDIR");
    int r = own != NULL ? expand_user(own, folder) : below_home(".ipython", folder);
    return r == 0 ? add_below(paths, folder, "kernels") : 0;
}

static int add_all(pl_jupyter_paths *paths)
{
    bool environment_first = prefers_environment();
    int r = add_listed(paths, variable("JUPYTER_PATH"));
    if (r == 0)
        r = environment_first ? add_environments(paths) : add_user(paths);
    if (r == 0)
        r = environment_first ? add_user(paths) : add_environments(paths);
    for (size_t i = 0; r == 0 && i < PL_COUNT_OF(system_prefixes); i++)
        r = add_below(paths, system_prefixes[i], "share/jupyter/kernels");
    return r == 0 ? add_ipython(paths) : r;
}

int pl_jupyter_paths_init(pl_jupyter_paths *ret_paths, pl_error *reterr)
{
    pl_jupyter_paths paths = {0};
    int r = add_all(&paths);
    if (r < 0) {
        pl_jupyter_paths_done(&paths);
        return pl_error_set(reterr, r, "cannot list Jupyter's folders: %s", pl_error_text(r));
    }
    *ret_paths = paths;
    return 0;
}

void pl_jupyter_paths_done(pl_jupyter_paths *paths)
{
    for (size_t i = 0; i < paths->n_folders; i++)
        free(paths->folders[i]);
    free(paths->folders);
    *paths = (pl_jupyter_paths){0};
}

bool pl_jupyter_paths_contain(const pl_jupyter_paths *paths, const char *folder)
{
    struct stat wanted, st;
    bool there = stat(folder, &wanted) == 0;
    for (size_t i = 0; i < paths->n_folders; i++) {
        if (strcmp(paths->folders[i], folder) == 0)
            return true;
        if (there && stat(paths->folders[i], &st) == 0 && st.st_dev == wanted.st_dev &&
            st.st_ino == wanted.st_ino)
            return true;
    }
    return false;
}
