/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and whole folders: joins, makes, copies and removes them. Copying needs memory to read
 * folders; removing needs none, so that running out of memory leaves nothing behind. */
#ifndef PL_JUPYTER_FOLDER_H
#define PL_JUPYTER_FOLDER_H

#include <limits.h>

#include "base/base.h"

/* "left/right". `path` may not be one of them. -ENAMETOOLONG leaves it undefined. */
PL_MUST_CHECK int pl_path_join(const char *left, const char *right, char path[PATH_MAX]);

/* Makes the path absolute and removes the slashes at its end. */
PL_MUST_CHECK int pl_path_absolute(const char *text, char path[PATH_MAX]);

/* A remark for a person to read, which is not an error. */
typedef void pl_folder_note(const char *text);

/* A larger file cannot be a logo, a script or a style sheet. */
#define PL_FOLDER_MAX_FILE_BYTES (8 * PL_MIB)

/* Copies the files in `from`, and in its folders, into the folder `to`, which exists. Links to
 * files are copied as files. A file named `except` on the top level is left out silently. Anything
 * that is not a file, is too large or too deep, or cannot be read is left out with a note. */
PL_MUST_CHECK int pl_folder_copy(const char *from, const char *to, const char *except,
                                 pl_folder_note *note);

/* Removes a folder and all in it; follows no links. A folder that does not exist is not an
 * error. */
PL_MUST_CHECK int pl_folder_remove(const char *path);

#endif
