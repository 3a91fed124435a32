/* SPDX-License-Identifier: Apache-2.0 */
/* Access to the files of the examined system, which may be mounted below another root.
 *   root   prefix of every path: "" is this system; otherwise a folder with a mounted image, or a
 *          tree that a test made
 *   path   absolute, as the examined system names it
 * The contents are not trusted: texts are bounded, and only regular files are opened. Returned
 * memory is the caller's to free(). Safe from any thread. */
#ifndef PL_PREFLIGHT_SYSROOT_H
#define PL_PREFLIGHT_SYSROOT_H

#include <limits.h>

#include "base/base.h"

/* Formats text into `out`. If it does not fit, returns false and leaves "" there: a truncated path
 * would name another file. */
bool pl_format(char *out, size_t n, const char *format, ...) __attribute__((format(printf, 3, 4)));

bool pl_sysroot_path(const char *root, const char *path, char out[PATH_MAX]);

bool pl_sysroot_is_folder(const char *root, const char *path);
bool pl_sysroot_is_file(const char *root, const char *path);

/* Reads up to `most_bytes` from the start of a regular file. The text ends with a NUL and is the
 * caller's to free(). */
PL_MUST_CHECK int pl_sysroot_read(const char *root, const char *path, uint64_t most_bytes,
                                  char **ret_text);

/* Reads a file of /proc or /sys, which reports no length. Returns the number of bytes read; text
 * beyond n - 1 bytes is cut. */
PL_MUST_CHECK int pl_sysroot_read_proc(const char *root, const char *path, char *buffer, size_t n);

/* Opens a regular file for reading. Returns the descriptor. */
PL_MUST_CHECK int pl_sysroot_open(const char *root, const char *path);

/* Follows links of the last path component. -ENOENT, -ELOOP. Links in the folders above it are left
 * to the kernel: below another root, absolute ones lead out of it. */
PL_MUST_CHECK int pl_sysroot_resolve(const char *root, const char *path, char out[PATH_MAX]);

typedef struct pl_folder_names {
    size_t n;
    char **items; /* sorted */
} pl_folder_names;

/* Lists a folder, except for names that begin with '.'. */
PL_MUST_CHECK int pl_sysroot_list(const char *root, const char *path, pl_folder_names *ret_names);
void pl_folder_names_done(pl_folder_names *names);

#endif
