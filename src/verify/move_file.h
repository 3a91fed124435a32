/* SPDX-License-Identifier: Apache-2.0 */
/* Moves a file to another name, also on another file system; see quarantine.h.
 *   folder, name   an open folder, and a name in it without a '/': replacing a folder further up by
 *                  a link meanwhile has no effect */
#ifndef PL_VERIFY_MOVE_FILE_H
#define PL_VERIFY_MOVE_FILE_H

#include "base/base.h"

/* -EEXIST: the name is taken. On failure the file stays where it was. */
PL_MUST_CHECK int pl_move_file(int from_folder, const char *from, int to_folder, const char *to);

/* Do both have the same bytes, or are both links to the same place? Reads only regular files. */
bool pl_files_are_same(int folder_a, const char *a, int folder_b, const char *b);

#endif
