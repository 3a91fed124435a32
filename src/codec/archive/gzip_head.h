/* SPDX-License-Identifier: Apache-2.0 */
/* What stands before deflated data in gzip and in zlib, taken byte by byte: ISA-L reads it as well,
 * but only where it has it in one piece. For inflate.c. */
#ifndef PL_CODEC_ARCHIVE_GZIP_HEAD_H
#define PL_CODEC_ARCHIVE_GZIP_HEAD_H

#include "base/base.h"

/* All zero at first. */
typedef struct pl_gzip_head {
    enum {
        PL_GZIP_FIXED,
        PL_GZIP_EXTRA_LENGTH,
        PL_GZIP_EXTRA,
        PL_GZIP_NAME,
        PL_GZIP_COMMENT,
        PL_GZIP_SUM,
        PL_GZIP_DATA, /* the head is over */
    } part;
    uint32_t n; /* bytes of the part that were taken */
    uint32_t extra_bytes;
    uint32_t crc; /* of all before its own sum */
    uint16_t sum;
    uint8_t flags;
} pl_gzip_head;

/* Takes a byte of a gzip member's head. NULL, or what is wrong with it. */
const char *pl_gzip_head_take(pl_gzip_head *head, uint8_t byte);

/* The same for zlib's, which has two. */
const char *pl_zlib_head_take(pl_gzip_head *head, uint8_t byte);

#endif
