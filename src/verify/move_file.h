/* SPDX-License-Identifier: Apache-2.0 */
/* Moves a file to another name, also on another file system; see quarantine.h.
 *   folder, name   an open folder, and a name in it without a '/': who swaps a folder above for a
 *                  link meanwhile changes nothing */
#ifndef PL_VERIFY_MOVE_FILE_H
#define PL_VERIFY_MOVE_FILE_H

#include "base/base.h"

/* -EEXIST: there is something by that name. On failure the file is where it was. */
PL_MUST_CHECK int pl_move_file(int from_folder, const char *from, int to_folder, const char *to);

/* Have both the same bytes, or are both links to the same place? Nothing but files is read. */
bool pl_files_are_same(int folder_a, const char *a, int folder_b, const char *b);

#endif
