/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the header before deflated data in gzip and zlib, byte by byte: ISA-L can parse it too,
 * but only in one piece. For inflate.c. */
#ifndef PL_CODEC_ARCHIVE_GZIP_HEAD_H
#define PL_CODEC_ARCHIVE_GZIP_HEAD_H

#include "base/base.h"

/* Starts all zero. */
typedef struct pl_gzip_head {
    enum {
        PL_GZIP_FIXED,
        PL_GZIP_EXTRA_LENGTH,
        PL_GZIP_EXTRA,
        PL_GZIP_NAME,
        PL_GZIP_COMMENT,
        PL_GZIP_SUM,
        PL_GZIP_DATA, /* the header is complete */
    } part;
    uint32_t n; /* bytes taken of the current part */
    uint32_t extra_bytes;
    uint32_t crc; /* of all bytes before the header's own checksum */
    uint16_t sum;
    uint8_t flags;
} pl_gzip_head;

/* Takes a byte of a gzip member's header. Returns NULL, or what is wrong with it. */
const char *pl_gzip_head_take(pl_gzip_head *head, uint8_t byte);

/* Does the same for the zlib header, which has two bytes. */
const char *pl_zlib_head_take(pl_gzip_head *head, uint8_t byte);

#endif
