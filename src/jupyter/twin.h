/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes twins (see kernelspec.h). The twin of NAME is the folder `plimsoll-NAME`: the
 * files of the original's folder, with a kernel.json that starts the kernel through `plimsoll run`.
 * The original is only read. Jupyter always finds a twin complete, or not at all. */
#ifndef PL_JUPYTER_TWIN_H
#define PL_JUPYTER_TWIN_H

#include "jupyter/folder.h"
#include "jupyter/kernelspec.h"

#define PL_TWIN_PREFIX "plimsoll-"

typedef struct pl_twin_options {
    const char *program; /* the path of plimsoll */
    const char *budget;  /* for `plimsoll run`; NULL: all that is available */
    const char *folder;  /* the kernels folder for the twin */
    pl_folder_note *note;
} pl_twin_options;

/* Makes the twin of a kernelspec without problems, in place of an older twin, and sets `path` to
 * its folder. -EEXIST if a folder of that name exists and is not a twin. */
PL_MUST_CHECK int pl_twin_install(const pl_kernelspec *original, const pl_twin_options *options,
                                  char path[PATH_MAX], pl_error *reterr);

/* Removes the folder of a twin. PL_EUSAGE if it is not a twin. */
PL_MUST_CHECK int pl_twin_remove(const pl_kernelspec *twin, pl_folder_note *note, pl_error *reterr);

#endif
