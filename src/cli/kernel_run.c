/* SPDX-License-Identifier: Apache-2.0 */
/* See kernel_run.h. */
#include "cli/kernel_run.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/installed.h"
#include "supervise/run_record.h"
#include "sys/cpu.h"

static char load_extension[] = "--ext=plimsoll.notebook";

/* Makes the folder, or takes one that exists and that only this user can access. -EPERM: another
 * user has taken the name. */
static int make_own(const char *folder)
{
    struct stat st;
    if (mkdir(folder, 0700) == 0)
        return 0;
    if (errno != EEXIST || lstat(folder, &st) < 0)
        return -errno;
    bool own = S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
    return own ? 0 : -EPERM;
}

/* Any user may make a folder of any name in /tmp, so this tries several names. If the next kernel
 * cannot find this record, that must not keep this kernel from starting. */
static int make_any(const char *temporary, char folder[PATH_MAX])
{
    enum { NAMES = 10 };
    int r = -EPERM;
    for (int i = 0; r == -EPERM && i < NAMES; i++) {
        char number[16] = "";
        if (i > 0)
            snprintf(number, sizeof number, "-%d", i);
        int n = snprintf(folder, PATH_MAX, "%s/plimsoll-%u%s", temporary, geteuid(), number);
        r = n < PATH_MAX ? make_own(folder) : -ENAMETOOLONG;
    }
    if (r != -EPERM)
        return r;
    int n = snprintf(folder, PATH_MAX, "%s/plimsoll-%u-XXXXXX", temporary, geteuid());
    return n >= PATH_MAX ? -ENAMETOOLONG : mkdtemp(folder) ? 0 : -errno;
}

int pl_kernel_run_use_temporary(char ret_folder[PATH_MAX])
{
    const char *temporary = getenv("TMPDIR");
    int r = make_any(temporary && temporary[0] == '/' ? temporary : "/tmp", ret_folder);
    if (r < 0)
        return r;
    return setenv("PLIMSOLL_STATE", ret_folder, 1) < 0 ? -errno : 0;
}

/* Keeps the end of a path, which is more telling than its beginning: a kernel's id, a notebook's
 * name. */
static void keep_tail(char *field, size_t n, const char *text)
{
    size_t length = strlen(text), kept = length < n ? length : n - 1;
    memcpy(field, text + length - kept, kept + 1);
}

/* Finds the connection file in a command: the last word that names a .json file, as in `-f FILE`,
 * `--f=FILE` or a script for sh. "" if there is none. */
static void find_connection_file(char *const *command, char ret_file[PATH_MAX])
{
    static const char ending[] = ".json";
    ret_file[0] = '\0';
    for (; *command; command++) {
        const char *end = NULL;
        for (const char *at = *command; (at = strstr(at, ending)) != NULL; at++)
            end = at + strlen(ending);
        if (!end)
            continue;
        const char *equals = strchr(*command, '='), *slash = strchr(*command, '/');
        const char *start = slash && slash < end     ? slash
                            : equals && equals < end ? equals + 1
                                                     : *command;
        snprintf(ret_file, PATH_MAX, "%.*s", (int)(end - start), start);
    }
}

static void describe_kernel(pl_ledger_header *header, const char *connection_file)
{
    char path[2 * PATH_MAX], folder[PATH_MAX];
    if (connection_file[0] != '/' && getcwd(folder, sizeof folder))
        snprintf(path, sizeof path, "%s/%s", folder, connection_file);
    else
        snprintf(path, sizeof path, "%s", connection_file);
    keep_tail(header->kernel, sizeof header->kernel, path);

    char id[PL_RECORD_ID_BYTES] = "";
    static_assert(sizeof header->previous >= sizeof id, "an id fits");
    if (pl_run_record_of_kernel(header->kernel, id, NULL) == 0)
        memcpy(header->previous, id, sizeof id);
}

void pl_kernel_run_describe(pl_ledger_header *header, const char *connection_file,
                            char *const *command)
{
    char found[PATH_MAX];
    if (strcmp(connection_file, PL_KERNEL_RUN_AUTO) == 0) {
        find_connection_file(command, found);
        connection_file = found;
    }
    if (connection_file[0])
        describe_kernel(header, connection_file);

    const char *notebook = getenv("JPY_SESSION_NAME");
    if (notebook)
        keep_tail(header->notebook, sizeof header->notebook, notebook);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Is it python -m ipykernel_launcher -f FILE, with any environment's Python and behind any
 * wrapper? */
static bool is_ipython_kernel(char *const *command)
{
    for (int i = 1; command[i]; i++) {
        const char *name = strcmp(command[i - 1], "-m") == 0 ? command[i] : "";
        if (strcmp(name, "ipykernel_launcher") == 0 || strcmp(name, "ipykernel") == 0 ||
            ends_with(command[i], "/ipykernel_launcher.py") ||
            strcmp(command[i], "ipykernel_launcher.py") == 0)
            return true;
    }
    return false;
}

static char *const *with_extension(char *const *command)
{
    size_t n = 0;
    while (command[n])
        n++;
    char **longer = calloc(n + 2, sizeof *longer);
    if (longer) {
        memcpy(longer, command, n * sizeof *longer);
        longer[n] = load_extension;
    }
    return longer;
}

/* Removes a variable that an outer kernel's run may have left, if this one has no value for it. */
static int set(const char *name, const char *value)
{
    int r = value ? setenv(name, value, 1) : unsetenv(name);
    return r < 0 ? -errno : 0;
}

/* The extension puts PYTHONPATH back before the user's code sees it. `folder` NULL: none. */
static int set_python_path(const char *folder)
{
    const char *present = folder ? getenv("PYTHONPATH") : NULL;
    int r = set("PLIMSOLL_PYTHON_FOLDER", folder);
    if (r == 0)
        r = set("PLIMSOLL_PYTHONPATH", present);
    if (r < 0 || !folder)
        return r;
    bool joined = present && *present; /* an empty part would be the working directory */
    char *path = NULL;
    if (asprintf(&path, "%s%s%s", folder, joined ? ":" : "", joined ? present : "") < 0)
        return -ENOMEM;
    r = set("PYTHONPATH", path);
    free(path);
    return r;
}

/* Libraries count processors and ignore CPU quotas. Forty threads on two cores are slower than two,
 * and each has its own stack and buffers. */
static int set_threads(void)
{
    static const char *const names[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                        "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS"};
    pl_cpu cpu;
    char text[16];
    if (pl_cpu_read("", &cpu) < 0 || cpu.n_usable >= cpu.n_allowed)
        return 0;
    snprintf(text, sizeof text, "%u", cpu.n_usable);
    for (size_t i = 0; i < PL_COUNT_OF(names); i++)
        if (setenv(names[i], text, 0) < 0)
            return -errno;
    return 0;
}

static int set_environment(const pl_ledger_header *header, const char *python_folder)
{
    char program[PATH_MAX];
    int r = pl_installed_program(program);
    if (r == 0)
        r = set("PLIMSOLL_PROGRAM", program);
    if (r == 0)
        r = set("PLIMSOLL_PREVIOUS", header->previous[0] ? header->previous : NULL);
    if (r == 0)
        r = set_python_path(python_folder);
    if (r == 0)
        r = set_threads();
    return r;
}

int pl_kernel_run_prepare(const pl_ledger_header *header, char *const *command,
                          char *const **ret_command, const char **ret_warning, pl_error *reterr)
{
    char folder[PATH_MAX];
    bool is_ipython = is_ipython_kernel(command);
    bool extended = is_ipython && pl_installed_python(folder) == 0;
    int r = set_environment(header, extended ? folder : NULL);
    if (r == 0 && extended)
        command = with_extension(command);
    if (!command)
        r = -ENOMEM;
    if (r < 0)
        return pl_error_set(reterr, r, "cannot prepare the kernel's environment: %s",
                            pl_error_text(r));
    *ret_command = command;
    *ret_warning = is_ipython && !extended
                       ? "cannot find the Python package 'plimsoll' beside the program: the kernel "
                         "runs without %plimsoll, and its cells are not recorded"
                       : NULL;
    return 0;
}

/* Process 1 never ends before its children: in a container, Jupyter may be process 1. */
pid_t pl_kernel_run_parent(void)
{
    const char *said = getenv("JPY_PARENT_PID");
    pid_t parent = getppid();
    return said && parent > 1 && strtol(said, NULL, 10) == parent ? parent : 0;
}
