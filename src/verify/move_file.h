/* SPDX-License-Identifier: Apache-2.0 */
/* Moves a file to another name, also on another file system; see quarantine.h. */
#ifndef PL_VERIFY_MOVE_FILE_H
#define PL_VERIFY_MOVE_FILE_H

#include "base/base.h"

/* -EEXIST: there is something by that name. On failure the file is where it was. */
PL_MUST_CHECK int pl_move_file(const char *from, const char *to);

/* What a move to this name left when it was killed: a copy that is not whole. */
void pl_move_file_clean(const char *to);

/* Have both the same bytes, or are both links to the same place? */
bool pl_files_are_same(const char *a, const char *b);

#endif
