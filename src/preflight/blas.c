/* SPDX-License-Identifier: Apache-2.0 */
/* See blas.h. */
#include "preflight/blas.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "preflight/child.h"
#include "preflight/sysroot.h"

enum { TIMEOUT_MS = 5000 };

/* Names of the function in builds for 64-bit integers, and in those bundled with NumPy's wheels. */
static const char *const questions[] = {"openblas_get_corename", "openblas_get_corename64_",
                                        "scipy_openblas_get_corename",
                                        "scipy_openblas_get_corename64_"};

static void ask(const void *path, int fd)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *(*kernels)(void) = NULL;
    for (size_t i = 0; library && !kernels && i < PL_COUNT_OF(questions); i++)
        *(void **)&kernels = dlsym(library, questions[i]);
    const char *name = kernels ? kernels() : NULL;
    ssize_t n = name ? write(fd, name, strlen(name)) : 0;
    (void)n; /* no answer, then */
}

/* Finds site/numpy.libs/libopenblas...so. Sets *ret_path to "" if there is none. */
static int find_brought(const char *root, const pl_package *numpy, char ret_path[PATH_MAX])
{
    char folder[PATH_MAX], inside[PATH_MAX];
    pl_folder_names names;
    ret_path[0] = '\0';
    if (!pl_format(folder, sizeof folder, "%s/numpy.libs", numpy->site))
        return 0;
    int r = pl_sysroot_list(root, folder, &names);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    for (size_t i = 0; i < names.n && !ret_path[0]; i++)
        if (strstr(names.items[i], "openblas") && strstr(names.items[i], ".so") &&
            pl_format(inside, sizeof inside, "%s/%s", folder, names.items[i]) &&
            pl_sysroot_is_file(root, inside) && !pl_sysroot_path(root, inside, ret_path))
            ret_path[0] = '\0';
    pl_folder_names_done(&names);
    return 0;
}

int pl_blas_facts_read(const char *root, const pl_interpreter *python, const pl_packages *packages,
                       pl_blas_facts *ret_facts)
{
    const pl_package *numpy = pl_packages_get(packages, "numpy");
    pl_blas_facts facts = {.library = ""};
    int r = 0;
    if (numpy)
        r = find_brought(root, numpy, facts.library);
    if (r < 0)
        return r;
    if (numpy && !facts.library[0] && !root[0] && !numpy->wheel)
        strcpy(facts.library, "libblas.so.3");
    facts.asked = facts.library[0] && !root[0] && !python->by_folder;
    if (facts.asked)
        r = pl_child_ask(ask, facts.library, TIMEOUT_MS, facts.kernels, sizeof facts.kernels - 1);
    facts.kernels[r > 0 ? r : 0] = '\0';
    *ret_facts = facts;
    return 0;
}
