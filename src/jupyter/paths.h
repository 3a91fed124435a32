/* SPDX-License-Identifier: Apache-2.0 */
/* Where Jupyter looks for kernelspecs, found as jupyter_core finds it, without asking Python.
 *   data folder     ".../share/jupyter"; it holds a folder `kernels`
 *   kernels folder  ".../share/jupyter/kernels"; it holds a folder per kernelspec
 * Every path here is absolute and names a kernels folder. Folders that do not exist are listed too,
 * because Jupyter would find a kernelspec in them. Reads the environment; not for several
 * threads. */
#ifndef PL_JUPYTER_PATHS_H
#define PL_JUPYTER_PATHS_H

#include <limits.h>

#include "base/base.h"

typedef struct pl_jupyter_paths {
    char **folders; /* in Jupyter's order: of two kernels with one name, the first counts */
    size_t n_folders;
} pl_jupyter_paths;

PL_MUST_CHECK int pl_jupyter_paths_init(pl_jupyter_paths *ret_paths, pl_error *reterr);
void pl_jupyter_paths_done(pl_jupyter_paths *paths);

/* Does Jupyter search this kernels folder, under any name? */
bool pl_jupyter_paths_contain(const pl_jupyter_paths *paths, const char *folder);

/* The user's own kernels folder, and that of an installation prefix. */
PL_MUST_CHECK int pl_jupyter_user_folder(char path[PATH_MAX], pl_error *reterr);
PL_MUST_CHECK int pl_jupyter_prefix_folder(const char *prefix, char path[PATH_MAX],
                                           pl_error *reterr);

#endif
