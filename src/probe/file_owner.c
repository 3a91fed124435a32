/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whose code is in a file: the user's, an installed package's, or Python's own. The file's
 * name alone decides, because the guard, the supervisor and a later reader of a record have nothing
 * else. */
#include <stdlib.h>
#include <string.h>

#include "probe/own_files.h"
#include "probe/python.h"

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static int compare_names(const void *name, const void *own)
{
    return strcmp(name, *(const char *const *)own);
}

/* Plimsoll's own package lies in places that no other package does: in a source tree, below
 * lib/plimsoll, behind a link, in an archive. It is always a folder of this name, so what follows
 * the name is compared with the files that there are in it. */
static bool is_own(const char *file)
{
    static const char folder[] = "plimsoll/";
    for (const char *at = strstr(file, folder); at; at = strstr(at + 1, folder)) {
        const char *name = at + strlen(folder);
        if ((at == file || at[-1] == '/') &&
            bsearch(name, pl_own_files, pl_n_own_files, sizeof pl_own_files[0], compare_names))
            return true;
    }
    return false;
}

/* Installed, or made by NumPy as it is imported. */
static bool is_packages(const char *file)
{
    return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") ||
           begins_with(file, "<__array_function__") || is_own(file);
}

/* Some of it Python carries inside itself. */
bool pl_python_is_library(const char *file)
{
    return begins_with(file, "<frozen") || (strstr(file, "/lib/python3") && !is_packages(file));
}

bool pl_python_is_import(const char *file)
{
    return begins_with(file, "<frozen importlib") || begins_with(file, "<frozen zipimport");
}

bool pl_python_is_users(const char *file)
{
    return !is_packages(file) && !pl_python_is_library(file);
}
