/* SPDX-License-Identifier: Apache-2.0 */
/* The command `plimsoll` as pip installs it. The program itself is in the Python package, beside
 * the guard and its libraries. The package's place, relative to this command, depends on pip's
 * options: this searches each place and executes the program. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* PL_PYTHON_FOLDER is "python3.11": the Python that the wheel is for. */
static const char *const places[] = {
    "../lib/" PL_PYTHON_FOLDER "/site-packages",   /* environments, --user, --prefix */
    "../lib/" PL_PYTHON_FOLDER "/dist-packages",   /* Debian's Python, as root */
    "../lib64/" PL_PYTHON_FOLDER "/site-packages", /* Fedora's */
    "../lib/python",                               /* --home */
    "..",                                          /* --target */
};

int main(int argc, char **argv)
{
    char own[PATH_MAX] = "", program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    char *slash = n > 0 ? strrchr(own, '/') : NULL;
    (void)argc;
    if (slash)
        *slash = '\0';
    for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++) {
        int length =
            snprintf(program, sizeof program, "%s/%s/plimsoll/command/plimsoll", own, places[i]);
        if (length >= (int)sizeof program || access(program, F_OK) != 0)
            continue;
        execv(program, argv);
        fprintf(stderr, "plimsoll: cannot run '%s': %s\n", program, strerror(errno));
        return 125;
    }
    fprintf(stderr,
            "plimsoll: cannot find the package 'plimsoll' for " PL_PYTHON_FOLDER
            " beside '%s': install it again (pip install --force-reinstall plimsoll)\n",
            own);
    return 125;
}
