/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that lies in memory, for what contains some. */
#ifndef PL_VERIFY_JSON_CHECK_H
#define PL_VERIFY_JSON_CHECK_H

#include "verify/file.h"

/* `name` tells whether they are JSON lines; `offset` is that of the bytes within the file; `where`
 * stands before what is said. */
void pl_verify_json_bytes(pl_verify_file *file, const char *name, const void *bytes, size_t n,
                          uint64_t offset, const char *where);

#endif
