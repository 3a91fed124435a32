/* SPDX-License-Identifier: Apache-2.0 */
/* The 512 bytes before a tar entry, and the attributes of pax. For tar.c only. */
#ifndef PL_CODEC_ARCHIVE_TAR_HEADER_H
#define PL_CODEC_ARCHIVE_TAR_HEADER_H

#include "base/base.h"

typedef struct pl_tar_header {
    char type;     /* as stored; NUL: from before there were types */
    bool more_map; /* GNU sparse files: the map continues in the next block */
    uint64_t size;
    size_t n_name;
    char name[257];   /* 155 of the prefix, a slash, 100 of the name, NUL */
    char problem[96]; /* for a message, on failure */
} pl_tar_header;

/* Returns 1; 0: all zero; PL_ECORRUPT, with the problem in the header. */
PL_MUST_CHECK int pl_tar_header_parse(const uint8_t *bytes, pl_tar_header *ret_header);

typedef struct pl_tar_attribute {
    const char *key, *value;
    size_t n_key, n_value;
} pl_tar_attribute;

/* Parses the attribute at the start of `n` bytes, "LENGTH KEY=VALUE\n". Returns the start of the
 * next one, or NULL: it is malformed. */
const char *pl_tar_attribute_next(const char *text, size_t n, pl_tar_attribute *ret_attribute);

/* Parses digits and nothing else, below 2^63. */
bool pl_tar_decimal(const char *text, size_t n, uint64_t *ret_value);

#endif
