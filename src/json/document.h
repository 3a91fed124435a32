/* SPDX-License-Identifier: Apache-2.0 */
/* JSON texts, read and made with jansson, that are whole or refused: jansson 2.14 does not check
 * whether the buffers of its parser and of json_dumps() could grow, and silently drops characters.
 * So its allocator is watched for failures.
 *
 * Not for several threads at once: jansson's allocator is global. */
#ifndef PL_JSON_DOCUMENT_H
#define PL_JSON_DOCUMENT_H

#include <jansson.h>

#include "base/base.h"

/* -ENOMEM; PL_ECORRUPT, with the reason in *ret_why: its text is printable ASCII. */
PL_MUST_CHECK int pl_json_parse(const char *text, size_t n, size_t flags, json_t **ret_value,
                                json_error_t *ret_why);

/* The caller's, to free(); NULL when out of memory. It has no control character but line ends, and
 * with JSON_ENSURE_ASCII none of Unicode's either. */
char *pl_json_dump(const json_t *document, size_t flags);

/* Between the two, every request of jansson is watched: true when all were granted. */
void pl_json_watch_memory(void);
bool pl_json_memory_sufficed(void);

/* The text of a regular file, for the caller to free(). -EINVAL for anything else than such a file,
 * -EFBIG if it has more than `most_bytes`; *ret_n is how many it has then too. -ENOMEM, -errno. */
PL_MUST_CHECK int pl_json_read(const char *path, uint64_t most_bytes, char **ret_text,
                               uint64_t *ret_n);

#endif
