/* SPDX-License-Identifier: Apache-2.0 */
/* See packages.h. */
#include "preflight/packages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "preflight/sysroot.h"
#include "preflight/version.h"

enum { METADATA_BYTES = 1 << 16, WHEEL_BYTES = 4096 };

bool pl_package_is_watched(const char *name)
{
    static const char *const beginnings[] = {
        "tensorflow",   "tf-",     "torch",       "jax",         "numpy",  "keras",
        "nvidia-",      "triton",  "scipy",       "ml-dtypes",   "mkl",    "intel-openmp",
        "scikit-learn", "xgboost", "lightgbm",    "onnxruntime", "pandas", "numba",
        "cudatoolkit",  "cudnn",   "cuda-cudart", "plimsoll",
    };
    for (size_t i = 0; i < PL_COUNT_OF(beginnings); i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

bool pl_package_field(const char **cursor, const char *field, char *value, size_t n)
{
    size_t length = strlen(field);
    for (const char *line = *cursor; line != NULL && *line != '\0';) {
        const char *end = strchrnul(line, '\n');
        bool found = strncasecmp(line, field, length) == 0 && line[length] == ':';
        const char *start = line + length + 1;
        line = *end == '\n' ? end + 1 : end;
        if (!found)
            continue;
        start += strspn(start, " \t");
        *cursor = line;
        if (start <= end && pl_format(value, n, "%.*s",
                                      (int)(end - start - (end > start && end[-1] == '\r')), start))
            return true;
    }
    return false;
}

bool pl_package_parse_folder(const char *folder, pl_package *package)
{
    static const char *const ends[] = {".dist-info", ".egg-info"};
    size_t n = strlen(folder), length = 0;
    for (size_t i = 0; i < PL_COUNT_OF(ends); i++)
        if (n > strlen(ends[i]) && strcmp(folder + n - strlen(ends[i]), ends[i]) == 0)
            length = n - strlen(ends[i]);
    const char *dash = memchr(folder, '-', length);
    if (dash == NULL || !pl_package_normalise(folder, (size_t)(dash - folder), package->name))
        return false;
    const char *version = dash + 1;
    size_t n_version = length - (size_t)(version - folder);
    const char *behind = memchr(version, '-', n_version);
    if (behind != NULL)
        n_version = (size_t)(behind - version);
    return pl_format(package->version, sizeof package->version, "%.*s", (int)n_version, version);
}

/* The fields end at an empty line; the description after it can be long and say anything. */
static char *read_head(const char *root, const char *path)
{
    char *text = NULL;
    if (pl_sysroot_read(root, path, METADATA_BYTES, &text) < 0)
        return NULL;
    char *end = strstr(text, "\n\n");
    if (end != NULL)
        end[1] = '\0';
    return text;
}

static char *read_metadata(const char *root, const char *place)
{
    static const char *const names[] = {"/METADATA", "/PKG-INFO", ""};
    char path[PATH_MAX], *text = NULL;
    for (size_t i = 0; text == NULL && i < PL_COUNT_OF(names); i++)
        if (pl_format(path, sizeof path, "%s%s", place, names[i]))
            text = read_head(root, path);
    return text != NULL ? text : strdup("");
}

/* conda and Debian install with dist-info too, but build their own packages. */
static void read_wheel(const char *root, const char *place, pl_package *package)
{
    char path[PATH_MAX], *text = NULL, *installer = NULL;
    if (!pl_format(path, sizeof path, "%s/WHEEL", place) ||
        pl_sysroot_read(root, path, WHEEL_BYTES, &text) < 0)
        return;
    const char *cursor = text;
    if (!pl_package_field(&cursor, "Tag", package->tag, sizeof package->tag))
        package->tag[0] = '\0';
    package->wheel = strcmp(package->site, "/usr/lib/python3/dist-packages") != 0;
    if (pl_format(path, sizeof path, "%s/INSTALLER", place) &&
        pl_sysroot_read(root, path, WHEEL_BYTES, &installer) == 0)
        package->wheel &= strncmp(installer, "conda", 5) != 0;
    free(installer);
    free(text);
}

static pl_package *add(pl_packages *packages)
{
    size_t n = packages->n;
    if ((n & (n - 1)) == 0) {
        pl_package *items = realloc(packages->items, (n == 0 ? 1 : 2 * n) * sizeof *items);
        if (items == NULL) {
            packages->no_memory = true;
            return NULL;
        }
        packages->items = items;
    }
    return &packages->items[n];
}

/* Marks packages of the same name as hidden or twice. */
static void compare_with_others(pl_packages *packages, pl_package *package)
{
    for (size_t i = 0; i < packages->n; i++) {
        pl_package *other = &packages->items[i];
        if (strcmp(other->name, package->name) != 0)
            continue;
        package->hidden = true;
        if (other->site == package->site && strcmp(other->version, package->version) != 0)
            other->twice = package->twice = true;
    }
}

static void add_package(const char *root, pl_packages *packages, const char *site,
                        const char *folder)
{
    char place[PATH_MAX];
    pl_package package = {.site = site};
    if (!pl_package_parse_folder(folder, &package) || !pl_package_is_watched(package.name) ||
        !pl_format(place, sizeof place, "%s/%s", site, folder))
        return;
    pl_package *added = add(packages);
    if (added == NULL)
        return;
    compare_with_others(packages, &package);
    read_wheel(root, place, &package);
    pl_package_read_build(root, &package);
    package.metadata = read_metadata(root, place);
    if (package.metadata == NULL)
        packages->no_memory = true;
    *added = package;
    packages->n++;
}

/* "cudatoolkit-11.8.0-h6a678d5_0.json" in conda-meta: conda packages that Python does not see. */
static void add_conda(const char *root, pl_packages *packages, const pl_interpreter *interpreter,
                      const char *name)
{
    size_t n = strlen(name);
    const char *build = memrchr(name, '-', n);
    const char *version =
        build != NULL && build > name ? memrchr(name, '-', (size_t)(build - name)) : NULL;
    pl_package package = {.site = interpreter->prefix};
    (void)root;
    if (version == NULL || n < 5 || strcmp(name + n - 5, ".json") != 0 ||
        !pl_package_normalise(name, (size_t)(version - name), package.name) ||
        !pl_package_is_watched(package.name) || pl_packages_get(packages, package.name) != NULL ||
        !pl_format(package.version, sizeof package.version, "%.*s", (int)(build - version - 1),
                   version + 1))
        return;
    pl_package *added = add(packages);
    if (added == NULL)
        return;
    package.metadata = strdup("");
    packages->no_memory |= package.metadata == NULL;
    *added = package;
    packages->n++;
}

static void scan_folder(const char *root, pl_packages *packages, const char *folder,
                        const pl_interpreter *conda)
{
    pl_folder_names names = {0};
    if (pl_sysroot_list(root, folder, &names) < 0)
        return;
    for (size_t i = 0; i < names.n && !packages->no_memory; i++) {
        if (conda != NULL)
            add_conda(root, packages, conda, names.items[i]);
        else
            add_package(root, packages, folder, names.items[i]);
    }
    pl_folder_names_done(&names);
}

int pl_packages_find(const char *root, const pl_interpreter *interpreter, pl_packages *ret_packages)
{
    pl_packages packages = {0};
    char conda[PATH_MAX];
    for (size_t i = 0; i < interpreter->n_sites; i++)
        scan_folder(root, &packages, interpreter->sites[i], NULL);
    if (strcmp(interpreter->kind, "conda environment") == 0 &&
        pl_format(conda, sizeof conda, "%s/conda-meta", interpreter->prefix))
        scan_folder(root, &packages, conda, interpreter);
    if (packages.no_memory) {
        pl_packages_done(&packages);
        return -ENOMEM;
    }
    *ret_packages = packages;
    return 0;
}

void pl_packages_done(pl_packages *packages)
{
    for (size_t i = 0; i < packages->n; i++)
        free(packages->items[i].metadata);
    free(packages->items);
    *packages = (pl_packages){0};
}

const pl_package *pl_packages_get(const pl_packages *packages, const char *name)
{
    for (size_t i = 0; i < packages->n; i++)
        if (strcmp(packages->items[i].name, name) == 0)
            return &packages->items[i];
    return NULL;
}
