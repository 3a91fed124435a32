/* SPDX-License-Identifier: Apache-2.0 */
/* See installed.h. Paths are relative to /proc/self/exe, so that a moved prefix keeps working. */
#include "cli/installed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int pl_installed_program(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n <= 0)
        return n < 0 ? -errno : -ENOENT;
    path[n] = '\0';
    return 0;
}

/* Sets `folder` to the program's folder, with a slash at its end. */
static int own_folder(char folder[PATH_MAX])
{
    int r = pl_installed_program(folder);
    if (r == 0)
        *(strrchr(folder, '/') + 1) = '\0';
    return r;
}

static bool file_at(char path[PATH_MAX], const char *folder, const char *place, const char *name)
{
    int n = snprintf(path, PATH_MAX, "%s%s%s", folder, place, name);
    return n < PATH_MAX && access(path, R_OK) == 0;
}

int pl_installed_guard(char path[PATH_MAX], pl_error *reterr)
{
    static const char *const places[] = {"", "../guard/", "../" PL_LIBDIR "/plimsoll/"};
    char folder[PATH_MAX] = "plimsoll";
    if (own_folder(folder) == 0)
        for (size_t i = 0; i < PL_COUNT_OF(places); i++)
            if (file_at(path, folder, places[i], "libplimsoll-guard.so"))
                return 0;
    return pl_error_set(reterr, -ENOENT,
                        "cannot find libplimsoll-guard.so beside '%s' or in '" PL_LIBDIR
                        "/plimsoll' next to it",
                        folder);
}

int pl_installed_rules(char path[PATH_MAX], pl_error *reterr)
{
    static const char *const places[] = {"", "../../data/", "../" PL_DATADIR "/plimsoll/",
                                         "../share/plimsoll/"};
    char folder[PATH_MAX] = "plimsoll";
    if (own_folder(folder) == 0)
        for (size_t i = 0; i < PL_COUNT_OF(places); i++)
            if (file_at(path, folder, places[i], "doctor.csv"))
                return 0;
    return pl_error_set(reterr, -ENOENT,
                        "cannot find doctor.csv beside '%s' or in '" PL_DATADIR
                        "/plimsoll' next to it': name it with --facts FILE",
                        folder);
}

int pl_installed_python(char path[PATH_MAX])
{
    static const char *const places[] = {"python", "../../../python", "../lib/plimsoll/python",
                                         "../" PL_LIBDIR "/plimsoll/python"};
    char folder[PATH_MAX], found[PATH_MAX];
    int r = own_folder(folder);
    for (size_t i = 0; r == 0 && i < PL_COUNT_OF(places); i++) {
        if (!file_at(found, folder, places[i], "/plimsoll/__init__.py"))
            continue;
        if (snprintf(found, sizeof found, "%s%s", folder, places[i]) < PATH_MAX &&
            realpath(found, path))
            return 0;
    }
    return r < 0 ? r : -ENOENT;
}
