/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the files below folders: first the files of a folder in order of their names' bytes, then
 * those of its subfolders, in the same order.
 *   file  a regular one, or a link to one; pipes, sockets and devices are skipped
 *
 * Names that begin with a dot are skipped, as in datasets' patterns, and links to folders below the
 * first are not followed, so that links cannot form a loop. A folder that cannot be read is passed
 * on like a file: opening it shows the reason. */
#ifndef PL_VERIFY_WALK_H
#define PL_VERIFY_WALK_H

#include <sys/types.h>

#include "data/source/paths.h"

enum { PL_VERIFY_FOLDERS_DEEP = 256 }; /* far more than anybody has; each takes some stack */

/* A folder to skip; all zero: none. */
typedef struct pl_verify_folder {
    dev_t device;
    ino_t inode;
} pl_verify_folder;

/* Takes the files of one folder, by their names, in order. The folder has already been read to its
 * end, and may be changed. A negative result ends the walk. */
typedef int pl_verify_found(void *context, const char *folder, const pl_paths *names,
                            pl_error *reterr);

/* Checks that all roots exist, and are files or folders: -ENOENT and so on, -EINVAL. */
PL_MUST_CHECK int pl_verify_check_roots(const char *const *roots, size_t n_roots, pl_error *reterr);

/* Finds all files below each of the roots. Fails as pl_verify_check_roots(); PL_EBUDGET. */
PL_MUST_CHECK int pl_verify_walk(const char *const *roots, size_t n_roots, pl_verify_folder skip,
                                 pl_memory *memory, pl_verify_found *found, void *context,
                                 pl_error *reterr);

#endif
