/* SPDX-License-Identifier: Apache-2.0 */
/* See program.h. */
#include "jupyter/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jupyter/folder.h"

bool pl_program_runs(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Searches absolute folders only: with a `.` on PATH, the working folder would choose the program
 * that a kernel's file starts from then on. */
int pl_program_find(const char *name, char path[PATH_MAX])
{
    const char *list = getenv("PATH");
    for (const char *next = list; next != NULL && name[0] != '\0';) {
        size_t n = strcspn(next, ":");
        char folder[PATH_MAX];
        if (n > 0 && n < sizeof(folder) && next[0] == '/') {
            memcpy(folder, next, n);
            folder[n] = '\0';
            if (pl_path_join(folder, name, path) == 0 && pl_program_runs(path))
                return 0;
        }
        next = next[n] == ':' ? next + n + 1 : NULL;
    }
    return -ENOENT;
}

/* Cuts off the last part of a path. False if there is none. */
static bool cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return false;
    *slash = '\0';
    return true;
}

int pl_program_prefix(const char *name, char prefix[PATH_MAX])
{
    char path[PATH_MAX], resolved[PATH_MAX];
    int r = pl_program_find(name, path);
    if (r < 0)
        return r;
    /* An environment's Python is a link to the one outside, so only its folder is resolved (/bin is
     * a link to /usr/bin). Other programs are links where pipx and the like put them. */
    bool python = pl_program_is_python_word(name);
    if ((python && !cut_last(path)) || realpath(path, resolved) == NULL)
        return -ENOENT;
    if ((!python && !cut_last(resolved)) || !cut_last(resolved))
        return -ENOENT;
    memcpy(prefix, resolved, sizeof(resolved));
    return 0;
}

int pl_program_self(char path[PATH_MAX], pl_error *reterr)
{
    if (realpath("/proc/self/exe", path) != NULL && pl_program_runs(path))
        return 0;
    return pl_error_set(reterr, -ENOENT,
                        "cannot find this program's own file, which the kernels would start: it "
                        "was moved, or /proc is not mounted");
}

bool pl_program_is_python_word(const char *word)
{
    return strncmp(word, "python", 6) == 0 && strspn(word + 6, "0123456789.") == strlen(word + 6);
}

static int python_below(const char *prefix, const char *word, char path[PATH_MAX])
{
    static const char *const names[] = {"bin/python", "bin/python3"};
    char own[32] = "bin/"; /* the word itself first: it may name a version */
    if (strlen(word) < sizeof(own) - strlen(own)) {
        strcat(own, word);
        if (pl_path_join(prefix, own, path) == 0 && pl_program_runs(path))
            return 0;
    }
    for (size_t i = 0; i < PL_COUNT_OF(names); i++)
        if (pl_path_join(prefix, names[i], path) == 0 && pl_program_runs(path))
            return 0;
    return -ENOENT;
}

/* A kernelspec that pip installed says just "python", and means the Python of the environment it
 * lies in. Elsewhere it means the Python of the Jupyter that finds it. */
int pl_program_python(const char *word, const char *folder, char path[PATH_MAX])
{
    static const char middle[] = "/share/jupyter/kernels/";
    const char *end = strstr(folder, middle);
    char prefix[PATH_MAX];
    if (end != NULL && (size_t)(end - folder) < sizeof(prefix)) {
        memcpy(prefix, folder, (size_t)(end - folder));
        prefix[end - folder] = '\0';
        if (python_below(prefix, word, path) == 0)
            return 0;
    }
    if (pl_program_prefix("jupyter", prefix) == 0 && python_below(prefix, word, path) == 0)
        return 0;
    return pl_program_find(word, path);
}
