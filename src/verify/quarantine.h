/* SPDX-License-Identifier: Apache-2.0 */
/* Moves files out of the way, so that they can be moved back.
 *   folder    holds the files, each with a number before its name, and the manifest
 *   manifest  a JSON line for each file: its old path, its new name, the reason. The line is on
 *             disk before the file moves, so if we die, a line without its file means that
 *             the file was never moved
 *
 * A file is in one place or the other at every moment: it is moved by rename(2), which replaces
 * nothing; between file systems it is copied, the copy is synced to disk under its name, and only
 * then is the original removed. One process at a time has a folder; one thread.
 *
 * A folder may come from a stranger's download. Folder and manifest must belong to the user and
 * must not be links, or nothing is done; nothing is moved through a link among the folders of a
 * path; and the moves that a manifest asks for are shown before they are done. */
#ifndef PL_VERIFY_QUARANTINE_H
#define PL_VERIFY_QUARANTINE_H

#include <limits.h>

#include "base/base.h"
#include "verify/walk.h"

typedef struct pl_quarantine {
    char folder[PATH_MAX];
    int folder_fd;
    int manifest_fd;
    uint64_t last;           /* the last number given to a file */
    uint64_t manifest_bytes; /* of whole lines */
} pl_quarantine;

/* Makes the folder if it does not exist. -EBUSY: another process has it. -EPERM: it belongs to
 * someone else. */
PL_MUST_CHECK int pl_quarantine_open(pl_quarantine *quarantine, const char *folder,
                                     pl_error *reterr);
void pl_quarantine_close(pl_quarantine *quarantine);

/* Identifies the folder, so that the walk skips it. */
pl_verify_folder pl_quarantine_identity(const pl_quarantine *quarantine);

/* Returns 1, with the new place in `to`; or 0, with the reason in *reterr, if the file stays where
 * it was: the folder is read-only, the file is gone, it is a folder itself. Negative: nothing more
 * can be moved, because the manifest cannot be written. */
PL_MUST_CHECK int pl_quarantine_move(pl_quarantine *quarantine, const char *path,
                                     const char *reason, char to[PATH_MAX], pl_error *reterr);

typedef struct pl_quarantine_restoring {
    /* Called for each file that would be moved: its name in quarantine, and its destination. */
    void (*show)(const char *name, const char *path);
    /* Called after all of them, unless there are none. 1: move them; 0: leave everything as it is;
     * or an error. */
    int (*agree)(uint64_t n_files, pl_error *reterr);
    /* Called for each file that cannot be moved back. */
    void (*tell)(const char *path, const char *why);
} pl_quarantine_restoring;

typedef struct pl_quarantine_restored {
    uint64_t n_restored;
    uint64_t n_left; /* not moved back: reported, unless nobody agreed, and still listed */
} pl_quarantine_restored;

/* Moves back all files that it can, once agreed. Removes the manifest when no line is left, and
 * then the folder if it is empty. */
PL_MUST_CHECK int pl_quarantine_restore(const char *folder, const pl_quarantine_restoring *how,
                                        pl_quarantine_restored *ret_restored, pl_error *reterr);

#endif
