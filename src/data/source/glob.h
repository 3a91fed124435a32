/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the files that match a pattern.
 *   pattern  a path whose parts may have *, ? and [...], as in the shell; "**" matches any number
 *            of folders, including none
 *
 * Names that begin with a dot match only a part that begins with one, too. Links to folders are
 * followed, but not by "**", so that link cycles end. Finds files of any kind, but not folders, in
 * their order on disk. One path is in memory at a time. Safe from any thread. */
#ifndef PL_DATA_SOURCE_GLOB_H
#define PL_DATA_SOURCE_GLOB_H

#include "base/base.h"

/* A negative result ends the walk, and is returned. */
typedef int pl_glob_visit(void *context, const char *path, pl_error *reterr);

/* Returns 0 even if nothing matches. Fails with -ENAMETOOLONG, or the error of reading a folder,
 * with its name. A folder that no longer exists or may not be read counts as empty. */
PL_MUST_CHECK int pl_glob(const char *pattern, pl_glob_visit *visit, void *context,
                          pl_error *reterr);

/* pl_glob() below a folder, whose name is not a pattern: all paths begin with it, and a slash
 * unless it ends with one. */
PL_MUST_CHECK int pl_glob_below(const char *folder, const char *pattern, pl_glob_visit *visit,
                                void *context, pl_error *reterr);

#endif
