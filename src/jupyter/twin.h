/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes twins (see kernelspec.h). The twin of NAME is the folder `plimsoll-NAME`: all
 * that the original's folder has, with a kernel.json that starts it through `plimsoll run`. The
 * original is only read. Whenever Jupyter looks, a twin is complete or absent. */
#ifndef PL_JUPYTER_TWIN_H
#define PL_JUPYTER_TWIN_H

#include "jupyter/folder.h"
#include "jupyter/kernelspec.h"

#define PL_TWIN_PREFIX "plimsoll-"

typedef struct pl_twin_options {
    const char *program; /* the path of plimsoll */
    const char *budget;  /* for `plimsoll run`; NULL: as much as there is */
    const char *folder;  /* the kernels folder to put it in */
    pl_folder_note *note;
} pl_twin_options;

/* Makes the twin of a kernelspec without problems, in place of an older one, and sets `path` to its
 * folder. -EEXIST when a folder of that name exists and is not a twin. */
PL_MUST_CHECK int pl_twin_install(const pl_kernelspec *original, const pl_twin_options *options,
                                  char path[PATH_MAX], pl_error *reterr);

/* Removes the folder of a twin. PL_EUSAGE when it is not a twin. */
PL_MUST_CHECK int pl_twin_remove(const pl_kernelspec *twin, pl_folder_note *note, pl_error *reterr);

#endif
