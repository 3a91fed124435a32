/* SPDX-License-Identifier: Apache-2.0 */
/* Checks JSON in memory, for files that contain some. */
#ifndef PL_VERIFY_JSON_CHECK_H
#define PL_VERIFY_JSON_CHECK_H

#include "verify/file.h"

/* `name` tells whether the bytes are JSON lines; `offset` is their offset within the file; `where`
 * goes before the message. */
void pl_verify_json_bytes(pl_verify_file *file, const char *name, const void *bytes, size_t n,
                          uint64_t offset, const char *where);

#endif
