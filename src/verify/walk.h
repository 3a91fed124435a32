/* SPDX-License-Identifier: Apache-2.0 */
/* The files below folders: those of a folder in order of their names' bytes, then those of its
 * folders, likewise.
 *   file  a regular one, or a link to one; pipes, sockets and devices are passed over
 *
 * Names that begin with a dot are passed over, as datasets' patterns do, and links to folders below
 * the first are not followed, so that no chain of them goes round. A folder that cannot be read is
 * told as if it were a file: whoever opens it finds out why. */
#ifndef PL_VERIFY_WALK_H
#define PL_VERIFY_WALK_H

#include <sys/types.h>

#include "data/paths.h"

/* A folder that is passed over; all zero: none. */
typedef struct pl_verify_folder {
    dev_t device;
    ino_t inode;
} pl_verify_folder;

/* Adds what is below each of the roots, which are files or folders, to `paths`. -ENOENT and so on
 * for a root that is not there; PL_EBUDGET. */
PL_MUST_CHECK int pl_verify_walk(const char *const *roots, size_t n_roots, pl_verify_folder skip,
                                 pl_paths *paths, pl_error *reterr);

#endif
