/* SPDX-License-Identifier: Apache-2.0 */
/* Files moved out of the way, so that they can be moved back.
 *   folder    holds the files, each with a number before its name, and the manifest
 *   manifest  a JSON line for each file: from where, to which name, why. It is on disk before the
 *             file moves, so whatever ends us, a line without its file was never moved
 *
 * A file is in one place or the other at every moment: moved by rename(2), which replaces nothing;
 * between file systems it is copied, the copy is on disk under its name, and then the first one
 * goes. One process at a time has a folder; one thread.
 *
 * A folder may have come with somebody's download. Folder and manifest are the user's own and no
 * links, or nothing is done with them; nothing is moved through a link among the folders of a path;
 * and what a manifest wants is shown before it is done. */
#ifndef PL_VERIFY_QUARANTINE_H
#define PL_VERIFY_QUARANTINE_H

#include <limits.h>

#include "base/base.h"
#include "verify/walk.h"

typedef struct pl_quarantine {
    char folder[PATH_MAX];
    int folder_fd;
    int manifest_fd;
    uint64_t last;           /* number that was given to a file */
    uint64_t manifest_bytes; /* of whole lines */
} pl_quarantine;

/* Makes the folder if it is not there. -EBUSY: another process has it. -EPERM: somebody else's. */
PL_MUST_CHECK int pl_quarantine_open(pl_quarantine *quarantine, const char *folder,
                                     pl_error *reterr);
void pl_quarantine_close(pl_quarantine *quarantine);

/* For the walk to pass over. */
pl_verify_folder pl_quarantine_identity(const pl_quarantine *quarantine);

/* 1, and `to` is where it is then; or 0, and *reterr says why it stays where it was: the folder is
 * read-only, it is gone, it is a folder itself. Negative: nothing more can be moved, because the
 * manifest cannot be written. */
PL_MUST_CHECK int pl_quarantine_move(pl_quarantine *quarantine, const char *path,
                                     const char *reason, char to[PATH_MAX], pl_error *reterr);

typedef struct pl_quarantine_restoring {
    /* Each file that would be moved: its name in quarantine, and where to. */
    void (*show)(const char *name, const char *path);
    /* After all of them, unless there are none. 1: move them; 0: leave all as it is; or an error.
     */
    int (*agree)(uint64_t n_files, pl_error *reterr);
    /* Each that cannot be moved back. */
    void (*tell)(const char *path, const char *why);
} pl_quarantine_restoring;

typedef struct pl_quarantine_restored {
    uint64_t n_restored;
    uint64_t n_left; /* not moved back: told, unless nobody agreed, and still in the manifest */
} pl_quarantine_restored;

/* Moves all back that can be, once it was agreed to. The manifest goes when nothing is left of it,
 * and then the folder if it is empty. */
PL_MUST_CHECK int pl_quarantine_restore(const char *folder, const pl_quarantine_restoring *how,
                                        pl_quarantine_restored *ret_restored, pl_error *reterr);

#endif
