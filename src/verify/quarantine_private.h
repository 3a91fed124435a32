/* SPDX-License-Identifier: Apache-2.0 */
/* A quarantine's folder and its manifest, for quarantine.c and restore.c. */
#ifndef PL_VERIFY_QUARANTINE_PRIVATE_H
#define PL_VERIFY_QUARANTINE_PRIVATE_H

#include <limits.h>

#include "base/base.h"
#include "verify/quarantine.h"
#include "json/document.h"

#define PL_MANIFEST "manifest.jsonl"

/* Formats "cannot open '/x': Permission denied". */
int pl_quarantine_refuse(pl_error *reterr, int code, const char *what, const char *path);

/* Opens the folder, which must exist, and its manifest, which is made if `flags` has O_CREAT. Both
 * must belong to the user and must not be links; the manifest is locked until it is closed. Fills
 * in folder, folder_fd and manifest_fd. */
PL_MUST_CHECK int pl_quarantine_attach(pl_quarantine *quarantine, const char *folder, int flags,
                                       pl_error *reterr);

/* Reads the whole manifest, for the caller to free(). */
PL_MUST_CHECK int pl_quarantine_read(const pl_quarantine *quarantine, char **ret_text,
                                     uint64_t *ret_n);

bool pl_quarantine_is_utf8(const char *text);

/* Returns the key of a path in a line: "from", or "from_hex" if the path is not UTF-8. NULL: out of
 * memory. */
const char *pl_quarantine_path_key(const char *path);
json_t *pl_quarantine_path_to_json(const char *path);

/* False: the line has no path, or it is too long. */
bool pl_quarantine_path_from_json(const json_t *line, char path[PATH_MAX]);

/* A line of the manifest that passed all checks. */
typedef struct pl_quarantine_entry {
    char path[PATH_MAX];     /* the old path: absolute, and ending in the name of a file */
    char name[NAME_MAX + 1]; /* in quarantine */
} pl_quarantine_entry;

/* Parses the `n` bytes of a line. False for a line that we would not have written. */
bool pl_quarantine_parse(const char *text, size_t n, pl_quarantine_entry *ret_entry);

#endif
