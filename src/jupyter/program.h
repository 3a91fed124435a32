/* SPDX-License-Identifier: Apache-2.0 */
/* Finds programs: one on $PATH by name, this one, and the Python that Jupyter would use for the
 * word `python`. Never allocates. */
#ifndef PL_JUPYTER_PROGRAM_H
#define PL_JUPYTER_PROGRAM_H

#include <limits.h>

#include "base/base.h"

/* The absolute path of a program on $PATH, in its absolute folders. -ENOENT if it is not found. */
PL_MUST_CHECK int pl_program_find(const char *name, char path[PATH_MAX]);

/* Is this a file that this user may execute? */
bool pl_program_runs(const char *path);

/* The prefix that a program on $PATH belongs to: "/opt/env" for "/opt/env/bin/python3". */
PL_MUST_CHECK int pl_program_prefix(const char *name, char prefix[PATH_MAX]);

/* The path of the running program. */
PL_MUST_CHECK int pl_program_self(char path[PATH_MAX], pl_error *reterr);

/* "python", "python3", "python3.11": words that jupyter_client replaces by the Python it runs in,
 * when a kernel's command begins with them. */
bool pl_program_is_python_word(const char *word);

/* The Python that such a word means for the kernelspec in `folder`. -ENOENT if it is not found. */
PL_MUST_CHECK int pl_program_python(const char *word, const char *folder, char path[PATH_MAX]);

#endif
