/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the system that is looked at.
 *   root   stands before every path: "" is this system; else a folder with one: a mounted image, or
 *          a tree that a test made
 *   path   absolute, as that system knows it
 * Nothing read is trusted: texts are bounded, and only regular files are opened. Allocates what it
 * returns. Safe from any thread. */
#ifndef PL_PREFLIGHT_ROOTED_H
#define PL_PREFLIGHT_ROOTED_H

#include <limits.h>

#include "base/base.h"

/* Text into a field; false, and "" in it, when it does not fit: a cut path is another path. */
bool pl_format(char *out, size_t n, const char *format, ...) __attribute__((format(printf, 3, 4)));

bool pl_rooted_path(const char *root, const char *path, char out[PATH_MAX]);

bool pl_rooted_is_folder(const char *root, const char *path);
bool pl_rooted_is_file(const char *root, const char *path);

/* The first `most_bytes` of a regular file, with a NUL behind them, for the caller to free(). */
PL_MUST_CHECK int pl_rooted_read(const char *root, const char *path, uint64_t most_bytes,
                                 char **ret_text);

/* The same for a file of /proc or /sys, which has no length. Returns it, cut at n - 1. */
PL_MUST_CHECK int pl_rooted_read_proc(const char *root, const char *path, char *buffer, size_t n);

/* One descriptor of a regular file, for reading. */
PL_MUST_CHECK int pl_rooted_open(const char *root, const char *path);

/* Where the path's last part leads to, link after link. -ENOENT, -ELOOP. Links among the folders
 * above it are the system's to follow: below a root, absolute ones lead out of it. */
PL_MUST_CHECK int pl_rooted_resolve(const char *root, const char *path, char out[PATH_MAX]);

typedef struct pl_names {
    size_t n;
    char **items; /* in order */
} pl_names;

/* What a folder holds, less what begins with a '.'. */
PL_MUST_CHECK int pl_rooted_list(const char *root, const char *path, pl_names *ret_names);
void pl_names_done(pl_names *names);

#endif
