/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes whole JSON texts with jansson, or fails. jansson 2.14 does not check whether the
 * buffers of its parser and of json_dumps() could grow, and silently drops characters; so we watch
 * its allocator for failures.
 *
 * Not thread-safe: jansson's allocator is global. */
#ifndef PL_JSON_DOCUMENT_H
#define PL_JSON_DOCUMENT_H

#include <jansson.h>

#include "base/base.h"

/* -ENOMEM; PL_ECORRUPT, with the reason in *ret_why, as printable ASCII. */
PL_MUST_CHECK int pl_json_parse(const char *text, size_t n, size_t flags, json_t **ret_value,
                                json_error_t *ret_why);

/* Returns a text for the caller to free(), or NULL when out of memory. It contains no control
 * characters but line ends, and with JSON_ENSURE_ASCII none of Unicode's either. */
char *pl_json_dump(const json_t *document, size_t flags);

/* Watches every allocation that jansson makes between the two calls. True when all succeeded. */
void pl_json_watch_memory(void);
bool pl_json_memory_sufficed(void);

/* Reads a regular file; the caller frees the text. -EINVAL for anything but a regular file; -EFBIG
 * if it is larger than `most_bytes`, with its size in *ret_n; -ENOMEM, -errno. */
PL_MUST_CHECK int pl_json_read(const char *path, uint64_t most_bytes, char **ret_text,
                               uint64_t *ret_n);

#endif
