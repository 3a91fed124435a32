/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a pattern matches.
 *   pattern  a path whose parts may have *, ? and [...], as the shell has them; "**" is any number
 *            of folders, none included
 *
 * Names that begin with a dot match only a part that does as well. Links to folders are followed,
 * but not by "**", so that no chain of them goes round. It gives files of any kind, but not
 * folders; in the order of the folders on disk. One path is in memory at a time. Safe from any
 * thread. */
#ifndef PL_DATA_SOURCE_GLOB_H
#define PL_DATA_SOURCE_GLOB_H

#include "base/base.h"

/* A negative result ends the walk, and is returned. */
typedef int pl_glob_visit(void *context, const char *path, pl_error *reterr);

/* 0 even if nothing matches. -ENAMETOOLONG, or the error of reading a folder, with its name. A folder
 * that is gone or may not be read counts as empty. */
PL_MUST_CHECK int pl_glob(const char *pattern, pl_glob_visit *visit, void *context,
                          pl_error *reterr);

/* As pl_glob(), below a folder, whose name is not a pattern: all paths begin with it, and a slash if
 * it does not end with one. */
PL_MUST_CHECK int pl_glob_below(const char *folder, const char *pattern, pl_glob_visit *visit,
                                void *context, pl_error *reterr);

#endif
