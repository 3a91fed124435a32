/* SPDX-License-Identifier: Apache-2.0 */
/* See interpreter.h. */
#include "preflight/interpreter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "preflight/child.h"
#include "preflight/sysroot.h"

enum { CONFIG_BYTES = 16384, ASK_TIMEOUT_MS = 5000 };

/* Removes the last component of a path; "/bin" becomes "". */
static bool cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    return slash != NULL;
}

bool pl_venv_value(const char *config, const char *key, char *value, size_t n)
{
    for (const char *line = config; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t length = strlen(key), skipped;
        if (strncasecmp(line, key, length) != 0)
            continue;
        skipped = length + strspn(line + length, " \t");
        if (line[skipped] != '=')
            continue;
        line += skipped + 1 + strspn(line + skipped + 1, " \t");
        size_t end = strcspn(line, "\r\n");
        while (end > 0 && (line[end - 1] == ' ' || line[end - 1] == '\t'))
            end--;
        return pl_format(value, n, "%.*s", (int)end, line);
    }
    return false;
}

bool pl_interpreter_take_version(pl_interpreter *interpreter, const char *text)
{
    size_t major = strspn(text, "0123456789");
    if (major == 0 || text[major] != '.')
        return false;
    size_t minor = strspn(text + major + 1, "0123456789"), n = major + 1 + minor;
    if (minor == 0 ||
        !pl_format(interpreter->version, sizeof interpreter->version, "%.*s", (int)n, text))
        return false;
    interpreter->free_threaded = text[n] == 't';
    return true;
}

static char *read_config(const char *root, const char *folder)
{
    char file[PATH_MAX], *text = NULL;
    bool read = pl_format(file, sizeof file, "%s/pyvenv.cfg", folder) &&
                pl_sysroot_read(root, file, CONFIG_BYTES, &text) == 0;
    return read ? text : NULL;
}

/* A pyvenv.cfg beside the program, or in the folder above, marks a virtualenv. */
static bool read_virtualenv(const char *root, pl_interpreter *interpreter)
{
    char folder[PATH_MAX], home[PATH_MAX], value[64], *text = NULL;
    memcpy(folder, interpreter->path, sizeof folder);
    for (int i = 0; text == NULL && i < 2 && cut_last(folder); i++)
        text = read_config(root, folder);
    if (text == NULL)
        return false;
    bool has_home = pl_venv_value(text, "home", home, sizeof home) && cut_last(home);
    interpreter->sees_base =
        pl_venv_value(text, "include-system-site-packages", value, sizeof value) &&
        strcasecmp(value, "true") == 0;
    if (pl_venv_value(text, "version_info", value, sizeof value) ||
        pl_venv_value(text, "version", value, sizeof value))
        pl_interpreter_take_version(interpreter, value);
    free(text);
    memcpy(interpreter->prefix, folder, sizeof folder);
    memcpy(interpreter->base, has_home ? home : folder, sizeof folder);
    interpreter->kind = "virtualenv";
    return true;
}

/* Finds the version by its library folder, if neither the program's name nor a virtualenv states
 * it. */
static bool version_from_library(const char *root, pl_interpreter *interpreter)
{
    char folder[PATH_MAX], file[PATH_MAX];
    pl_folder_names names = {0};
    int n_found = 0;
    if (!pl_format(folder, sizeof folder, "%s/lib", interpreter->base) ||
        pl_sysroot_list(root, folder, &names) < 0)
        return false;
    for (size_t i = 0; i < names.n; i++)
        if (strncmp(names.items[i], "python", 6) == 0 &&
            pl_format(file, sizeof file, "%s/%s/os.py", folder, names.items[i]) &&
            pl_sysroot_is_file(root, file) &&
            pl_interpreter_take_version(interpreter, names.items[i] + 6))
            n_found++;
    pl_folder_names_done(&names);
    if (n_found != 1)
        interpreter->version[0] = '\0';
    return n_found == 1;
}

static bool describe(const char *root, pl_interpreter *interpreter)
{
    char real[PATH_MAX], conda[PATH_MAX];
    if (pl_sysroot_resolve(root, interpreter->path, real) < 0)
        return false;
    if (!read_virtualenv(root, interpreter)) {
        memcpy(interpreter->prefix, real, sizeof real);
        if (!cut_last(interpreter->prefix) || !cut_last(interpreter->prefix))
            return false;
        if (interpreter->prefix[0] == '\0')
            strcpy(interpreter->prefix, "/usr"); /* /bin is a link to /usr/bin */
        memcpy(interpreter->base, interpreter->prefix, sizeof interpreter->base);
        interpreter->kind = "installation";
        interpreter->sees_base = true;
    }
    if (strcmp(interpreter->kind, "virtualenv") != 0 &&
        pl_format(conda, sizeof conda, "%s/conda-meta", interpreter->prefix) &&
        pl_sysroot_is_folder(root, conda))
        interpreter->kind = "conda environment";
    const char *name = strrchr(real, '/') + 1, *called = strrchr(interpreter->path, '/') + 1;
    bool named = strncmp(name, "python", 6) == 0;
    if (!named && strncmp(called, "python", 6) != 0 && !interpreter->was_run)
        return false; /* there is a Python beside every program of /usr/bin */
    return (named && pl_interpreter_take_version(interpreter, name + 6)) ||
           interpreter->version[0] != '\0' || version_from_library(root, interpreter);
}

static bool is_script(const char *root, const char *path)
{
    char start[2] = {0}, real[PATH_MAX];
    int fd = pl_sysroot_resolve(root, path, real) == 0 ? pl_sysroot_open(root, real) : -1;
    if (fd < 0)
        return false;
    bool script = pread(fd, start, 2, 0) == 2 && memcmp(start, "#!", 2) == 0;
    close(fd);
    return script;
}

/* Isolated and without site, so that nothing of the user's is imported. Not in the working folder:
 * the shims of tools other than pyenv (asdf, mise) run what a file there names. */
static void ask_python(const void *context, int fd)
{
    static const char question[] = "import sys; print(sys.executable); print(sys.version)";
    dup2(fd, STDOUT_FILENO);
    if (chdir("/") < 0 || setenv("PWD", "/", 1) < 0)
        return;
    execl(context, context, "-I", "-S", "-c", question, (char *)NULL);
}

static int run(pl_interpreter *interpreter)
{
    char answer[PATH_MAX + 256];
    int r = pl_child_ask(ask_python, interpreter->path, ASK_TIMEOUT_MS, answer, sizeof answer - 1);
    if (r < 0)
        return r;
    answer[r] = '\0';
    char *end = strchr(answer, '\n');
    if (end == NULL || answer[0] != '/' || !pl_interpreter_take_version(interpreter, end + 1))
        return PL_EFORMAT;
    *end = '\0';
    interpreter->was_run = true;
    return pl_format(interpreter->path, PATH_MAX, "%s", answer) ? 0 : -ENAMETOOLONG;
}

static int identify(const char *root, pl_interpreter *interpreter, pl_error *reterr)
{
    bool script = is_script(root, interpreter->path);
    if (!script && describe(root, interpreter))
        return 0;
    if (root[0] != '\0')
        return pl_error_set(reterr, PL_EFORMAT,
                            "cannot determine the version of '%s': nothing is run below --root",
                            interpreter->path);
    if (interpreter->by_folder)
        return pl_error_set(
            reterr, PL_EFORMAT,
            "cannot determine the version of '%s': it is not run, because a .python-version in "
            "this folder or one above chose it; pass it with --python to allow that",
            interpreter->path);
    char asked[PATH_MAX];
    memcpy(asked, interpreter->path, sizeof asked);
    int r = run(interpreter);
    if (r == 0 && describe(root, interpreter))
        return 0;
    bool answered = r >= 0 || r == PL_EFORMAT;
    return pl_error_set(reterr, r < 0 ? r : PL_EFORMAT, "'%s' does not answer like a Python%s%s",
                        asked, answered ? "" : ": ", answered ? "" : pl_error_text(r));
}

int pl_interpreter_find(const char *root, const char *word, pl_interpreter *ret_interpreter,
                        pl_error *reterr)
{
    PL_CLEANUP(pl_interpreter_done) pl_interpreter interpreter = {.kind = ""};
    int r = pl_interpreter_program(root, word, interpreter.path, &interpreter.by_folder);
    if (r < 0 && word == NULL)
        return pl_error_set(reterr, r, "no python3 or python on PATH");
    if (r < 0)
        return pl_error_set(
            reterr, r,
            "'%s' is not a Python: there is no such program, and no such folder with bin/python",
            word);
    r = identify(root, &interpreter, reterr);
    if (r == 0)
        r = pl_interpreter_find_sites(root, &interpreter);
    if (r < 0)
        return r;
    *ret_interpreter = interpreter;
    interpreter.n_sites = 0; /* they are the caller's now */
    return 0;
}

void pl_interpreter_done(pl_interpreter *interpreter)
{
    for (size_t i = 0; i < interpreter->n_sites; i++)
        free(interpreter->sites[i]);
    interpreter->n_sites = 0;
}
