/* SPDX-License-Identifier: Apache-2.0 */
/* See installation.h. */
#include "preflight/installation.h"

#include <stdio.h>
#include <string.h>

#include "preflight/elf.h"
#include "preflight/sysroot.h"

/* The version that docs/guard.md promises, used where there is no guard to read. */
static const char usual_guard_libc[] = "2.35";

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

/* Finds the first site of the Python that has this file of the package. */
static bool find_in_sites(const char *root, const pl_interpreter *python, const char *name,
                          char path[PATH_MAX])
{
    for (size_t i = 0; i < python->n_sites; i++)
        if (pl_format(path, PATH_MAX, "%s/plimsoll/%s", python->sites[i], name) &&
            pl_sysroot_is_file(root, path))
            return true;
    path[0] = '\0';
    return false;
}

static void find_program(const char *root, const pl_interpreter *python, char path[PATH_MAX])
{
    bool by_folder;
    if (!find_in_sites(root, python, "command/plimsoll", path) &&
        pl_interpreter_program(root, "plimsoll", path, &by_folder) < 0)
        path[0] = '\0';
}

/* Looks beside the program, as in a wheel, then in a library folder next to it. */
static void find_guard(const char *root, const char *program, char path[PATH_MAX])
{
    static const char *const places[] = {"",
                                         "../guard/",
                                         "../lib/plimsoll/",
                                         "../lib/x86_64-linux-gnu/plimsoll/",
                                         "../lib/aarch64-linux-gnu/plimsoll/",
                                         "../lib64/plimsoll/"};
    int n = (int)(strrchr(program, '/') + 1 - program);
    for (size_t i = 0; i < PL_COUNT_OF(places); i++)
        if (pl_format(path, PATH_MAX, "%.*s%slibplimsoll-guard.so", n, program, places[i]) &&
            pl_sysroot_is_file(root, path))
            return;
    path[0] = '\0';
}

/* Removes the last components of a path. */
static void climb(char path[PATH_MAX], int n_levels)
{
    for (; n_levels > 0 && strrchr(path, '/') != NULL; n_levels--)
        *strrchr(path, '/') = '\0';
}

/* Every Debian package has this file, and minimal images keep it when they drop other documents. */
#define DEBIAN_COPYRIGHT "/usr/share/doc/plimsoll/copyright"

static void tell_kind(const char *root, pl_installation *found)
{
    memcpy(found->folder, found->program, sizeof found->folder);
    if (ends_with(found->program, "/plimsoll/command/plimsoll")) {
        found->kind = "a wheel";
        climb(found->folder, 3);
    } else if (ends_with(found->program, "/src/cli/plimsoll")) {
        found->kind = "a build tree";
        climb(found->folder, 3);
    } else {
        found->kind = strcmp(found->program, "/usr/bin/plimsoll") == 0 &&
                              pl_sysroot_is_file(root, DEBIAN_COPYRIGHT)
                          ? "a Debian package"
                          : "make install";
        climb(found->folder, 2);
    }
}

/* "_core.cpython-313t-x86_64-linux-gnu.so" is for the free-threaded 3.13. */
static bool has_extension(const char *root, const pl_interpreter *python, const char *folder)
{
    char start[48];
    pl_folder_names names = {0};
    bool found = false;
    const char *minor = strchr(python->version, '.');
    if (minor == NULL ||
        !pl_format(start, sizeof start, "_core.cpython-%.*s%s%s-", (int)(minor - python->version),
                   python->version, minor + 1, python->free_threaded ? "t" : "") ||
        pl_sysroot_list(root, folder, &names) < 0)
        return false;
    for (size_t i = 0; i < names.n; i++)
        found |= strncmp(names.items[i], start, strlen(start)) == 0;
    pl_folder_names_done(&names);
    return found;
}

void pl_installation_find(const char *root, const char *program, const char *guard,
                          const pl_interpreter *python, pl_installation *ret_installation)
{
    pl_installation *found = ret_installation;
    pl_elf elf;
    *found = (pl_installation){.kind = ""};
    strcpy(found->guard_libc, usual_guard_libc);
    if (program != NULL)
        pl_format(found->program, sizeof found->program, "%s", program);
    else
        find_program(root, python, found->program);
    if (found->program[0] == '/') {
        tell_kind(root, found);
        if (pl_elf_read_at(root, found->program, &elf) == 0)
            memcpy(found->version, elf.plimsoll, sizeof found->version);
        if (guard != NULL)
            pl_format(found->guard, sizeof found->guard, "%s", guard);
        else
            find_guard(root, found->program, found->guard);
    }
    if (found->guard[0] != '\0' && pl_elf_read_at(root, found->guard, &elf) == 0) {
        memcpy(found->guard_version, elf.plimsoll, sizeof found->guard_version);
        if (elf.glibc_needs[0] != '\0')
            memcpy(found->guard_libc, elf.glibc_needs, sizeof found->guard_libc);
    }
    if (find_in_sites(root, python, "__init__.py", found->modules)) {
        climb(found->modules, 1);
        found->extension = has_extension(root, python, found->modules);
    }
}
