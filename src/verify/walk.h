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

#include "data/source/paths.h"

enum { PL_VERIFY_FOLDERS_DEEP = 256 }; /* far more than anybody has; each takes some stack */

/* A folder that is passed over; all zero: none. */
typedef struct pl_verify_folder {
    dev_t device;
    ino_t inode;
} pl_verify_folder;

/* Takes the files of one folder, by their names, in order. The folder has been read to its end by
 * then: it may be changed. Negative ends the walk. */
typedef int pl_verify_found(void *context, const char *folder, const pl_paths *names,
                            pl_error *reterr);

/* Whether all roots are there, and are files or folders: -ENOENT and so on, -EINVAL. */
PL_MUST_CHECK int pl_verify_check_roots(const char *const *roots, size_t n_roots, pl_error *reterr);

/* Finds what is below each of the roots. What pl_verify_check_roots() says; PL_EBUDGET. */
PL_MUST_CHECK int pl_verify_walk(const char *const *roots, size_t n_roots, pl_verify_folder skip,
                                 pl_memory *memory, pl_verify_found *found, void *context,
                                 pl_error *reterr);

#endif
