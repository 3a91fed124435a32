/* SPDX-License-Identifier: Apache-2.0 */
/* See libraries.h. A framework has thousands of files, so folders without libraries are skipped and
 * the number of files read is bounded. */
#include "preflight/libraries.h"

#include <dirent.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "preflight/sysroot.h"
#include "preflight/version.h"

enum { MOST_LIBRARIES = 800, MOST_DEPTH = 6 };

typedef struct search {
    const char *root;
    const char *machine;
    pl_libraries *libraries;
    pl_library_need *need; /* of the package whose folder this is; NULL: nobody's */
    const char *owner;
} search;

/* ---- OpenMP runtimes ---- */

/* "libgomp-a34b3233.so.1" is libgomp too: wheels rename the libraries they bundle. */
static const char *openmp_family(const char *name)
{
    static const char *const families[] = {"libgomp", "libiomp5", "libomp"};
    if (strstr(name, ".so") == NULL)
        return NULL;
    for (size_t i = 0; i < PL_COUNT_OF(families); i++) {
        size_t n = strlen(families[i]);
        if (strncmp(name, families[i], n) == 0 && (name[n] == '.' || name[n] == '-'))
            return families[i];
    }
    return NULL;
}

static bool is_known(const pl_libraries *libraries, const pl_openmp_runtime *runtime)
{
    for (size_t i = 0; i < libraries->n_runtimes; i++) {
        const pl_openmp_runtime *known = &libraries->runtimes[i];
        bool brought = known->path[0] != '\0';
        if (brought != (runtime->path[0] != '\0'))
            continue;
        if (brought ? known->device == runtime->device && known->inode == runtime->inode
                    : known->family == runtime->family)
            return true;
    }
    return false;
}

static void add_runtime(const search *here, const char *family, const char *path)
{
    pl_libraries *libraries = here->libraries;
    pl_openmp_runtime runtime = {.family = family};
    char full[PATH_MAX], real[PATH_MAX];
    struct stat status;
    if (path[0] != '\0') {
        if (!pl_sysroot_path(here->root, path, full) || stat(full, &status) < 0)
            return;
        runtime.device = status.st_dev;
        runtime.inode = status.st_ino;
        /* conda's libgomp.so.1 can be a link to LLVM's libomp. */
        if (pl_sysroot_resolve(here->root, path, real) == 0 &&
            openmp_family(strrchr(real, '/') + 1))
            runtime.family = openmp_family(strrchr(real, '/') + 1);
    }
    pl_format(runtime.path, sizeof runtime.path, "%s", path);
    pl_format(runtime.owner, sizeof runtime.owner, "%s", here->owner);
    if (libraries->n_runtimes < PL_OPENMP_RUNTIMES && !is_known(libraries, &runtime))
        libraries->runtimes[libraries->n_runtimes++] = runtime;
}

/* A library required by its usual name and not bundled is the system's. */
static void note_needed(const search *here, const pl_elf *elf, const char *folder)
{
    for (int i = 0; i < elf->n_needed; i++) {
        char beside[PATH_MAX];
        const char *family = openmp_family(elf->needed[i]);
        if (family == NULL || strchr(elf->needed[i], '-') != NULL)
            continue;
        if (pl_format(beside, sizeof beside, "%s/%s", folder, elf->needed[i]) &&
            pl_sysroot_is_file(here->root, beside))
            continue;
        bool brought = false;
        for (size_t j = 0; j < here->libraries->n_runtimes; j++)
            brought |= strcmp(here->libraries->runtimes[j].owner, here->owner) == 0;
        if (!brought)
            add_runtime(here, family, "");
    }
}

/* ---- one library ---- */

static void note_need(pl_library_need *need, const char *machine, const pl_elf *elf,
                      const char *path)
{
    pl_version before, now;
    if (elf->machine[0] != '\0' && strcmp(elf->machine, machine) != 0)
        strcpy(need->other_machine, elf->machine);
    need->x86_levels |= elf->x86_levels;
    if (pl_version_parse(elf->glibc_needs, &now) < 0)
        return;
    if (pl_version_parse(need->glibc, &before) == 0 && pl_version_compare(&now, &before) <= 0)
        return;
    strcpy(need->glibc, elf->glibc_needs);
    pl_format(need->glibc_file, sizeof need->glibc_file, "%s", path);
}

static void look_at(search *here, const char *folder, const char *name)
{
    char path[PATH_MAX];
    pl_elf elf;
    if (here->libraries->n_read >= MOST_LIBRARIES ||
        !pl_format(path, sizeof path, "%s/%s", folder, name))
        return;
    here->libraries->n_read++;
    if (openmp_family(name) != NULL)
        add_runtime(here, openmp_family(name), path);
    if (pl_elf_read_at(here->root, path, &elf) < 0)
        return;
    if (here->need != NULL)
        note_need(here->need, here->machine, &elf, path);
    note_needed(here, &elf, folder);
}

/* ---- folders ---- */

static bool may_hold_libraries(const char *name)
{
    static const char *const without[] = {"include", "tests",   "test",    "__pycache__",
                                          "share",   "testing", "_export", "_inductor"};
    for (size_t i = 0; i < PL_COUNT_OF(without); i++)
        if (strcmp(name, without[i]) == 0)
            return false;
    return name[0] != '.';
}

static bool is_library(const char *name)
{
    const char *so = strstr(name, ".so");
    return so != NULL && (so[3] == '\0' || so[3] == '.');
}

/* Depth 0 is a module's own folder, whose `lib` was searched before. */
static void walk(search *here, const char *folder, int depth)
{
    char full[PATH_MAX], below[PATH_MAX];
    DIR *list = pl_sysroot_path(here->root, folder, full) ? opendir(full) : NULL;
    if (list == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        bool folder_below = entry->d_type == DT_DIR;
        if (!pl_format(below, sizeof below, "%s/%s", folder, entry->d_name))
            continue;
        if (entry->d_type == DT_UNKNOWN)
            folder_below = pl_sysroot_is_folder(here->root, below);
        if (!folder_below && is_library(entry->d_name))
            look_at(here, folder, entry->d_name);
        else if (folder_below && depth < MOST_DEPTH && may_hold_libraries(entry->d_name) &&
                 (depth > 0 || strcmp(entry->d_name, "lib") != 0))
            walk(here, below, depth + 1);
    }
    closedir(list);
}

/* A distribution's module usually has its name, with '_'. */
static const char *module_of(const char *name, char module[PL_PACKAGE_NAME_BYTES])
{
    static const char *const others[][2] = {
        {"scikit-learn", "sklearn"},        {"tensorflow-cpu", "tensorflow"},
        {"tensorflow-gpu", "tensorflow"},   {"tensorflow-rocm", "tensorflow"},
        {"tf-nightly", "tensorflow"},       {"tf-nightly-cpu", "tensorflow"},
        {"onnxruntime-gpu", "onnxruntime"},
    };
    for (size_t i = 0; i < PL_COUNT_OF(others); i++)
        if (strcmp(name, others[i][0]) == 0)
            return others[i][1];
    strcpy(module, name);
    for (char *c = module; *c != '\0'; c++)
        if (*c == '-')
            *c = '_';
    return module;
}

/* "numpy.libs", where auditwheel puts bundled libraries, comes first: a package that bundles a
 * runtime does not use the system's. */
static void look_into_package(search *here, const pl_package *package)
{
    char storage[PL_PACKAGE_NAME_BYTES], own[PL_PACKAGE_NAME_BYTES], path[PATH_MAX];
    const char *module = module_of(package->name, storage);
    strcpy(own, package->name);
    for (char *c = own; *c != '\0'; c++)
        *c = *c == '-' ? '_' : *c;
    here->owner = package->name;
    if (pl_format(path, sizeof path, "%s/%s.libs", package->site, own))
        walk(here, path, MOST_DEPTH);
    if (pl_format(path, sizeof path, "%s/%s/lib", package->site, module))
        walk(here, path, 1);
    if (pl_format(path, sizeof path, "%s/%s", package->site, module))
        walk(here, path, 0);
}

/* intel-openmp, mkl and conda install libraries into the environment's own lib. */
static void look_into_prefix(search *here, const pl_interpreter *interpreter)
{
    char folder[PATH_MAX], path[PATH_MAX];
    pl_folder_names names = {0};
    here->owner = "the environment";
    here->need = NULL;
    if (strcmp(interpreter->kind, "installation") == 0 ||
        !pl_format(folder, sizeof folder, "%s/lib", interpreter->prefix) ||
        pl_sysroot_list(here->root, folder, &names) < 0)
        return;
    for (size_t i = 0; i < names.n; i++)
        if (openmp_family(names.items[i]) != NULL &&
            pl_format(path, sizeof path, "%s/%s", folder, names.items[i]))
            add_runtime(here, openmp_family(names.items[i]), path);
    pl_folder_names_done(&names);
}

/* ---- the system's libc ---- */

static bool libc_place(size_t index, const char *machine, char path[PATH_MAX])
{
    static const char *const folders[] = {"/lib/",       "/usr/lib/", "/lib64/",
                                          "/usr/lib64/", "/lib/",     "/usr/lib/"};
    if (index >= PL_COUNT_OF(folders))
        return false;
    bool debian = index < 2; /* one folder for each kind of machine */
    return pl_format(path, PATH_MAX, "%s%s%slibc.so.6", folders[index], debian ? machine : "",
                     debian ? "-linux-gnu/" : "");
}

/* This system's libc reports its version. Below another root only the highest symbol version is
 * known, which can be lower: 2.31 defines none of its own in libc.so.6. */
static void find_libc(const char *root, const char *machine, pl_libraries *libraries)
{
    char path[PATH_MAX];
    pl_elf elf;
    if (root[0] == '\0')
        pl_format(libraries->glibc, sizeof libraries->glibc, "%s", gnu_get_libc_version());
    for (size_t i = 0; libraries->glibc[0] == '\0' && libc_place(i, machine, path); i++)
        if (pl_elf_read_at(root, path, &elf) == 0)
            strcpy(libraries->glibc, elf.glibc_is);
    pl_format(path, sizeof path, "/lib/ld-musl-%s.so.1", machine);
    libraries->musl = libraries->glibc[0] == '\0' && pl_sysroot_is_file(root, path);
}

int pl_libraries_find(const char *root, const pl_interpreter *interpreter,
                      const pl_packages *packages, const char *machine, pl_libraries *ret_libraries)
{
    pl_libraries libraries = {0};
    search here = {.root = root, .machine = machine, .libraries = &libraries};
    libraries.needs = calloc(packages->n + 1, sizeof *libraries.needs);
    if (libraries.needs == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < packages->n; i++) {
        if (packages->items[i].hidden)
            continue;
        here.need = &libraries.needs[libraries.n_needs++];
        here.need->package = &packages->items[i];
        look_into_package(&here, &packages->items[i]);
    }
    look_into_prefix(&here, interpreter);
    find_libc(root, machine, &libraries);
    *ret_libraries = libraries;
    return 0;
}

void pl_libraries_done(pl_libraries *libraries)
{
    free(libraries->needs);
    *libraries = (pl_libraries){0};
}
