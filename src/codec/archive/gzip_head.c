/* SPDX-License-Identifier: Apache-2.0 */
/* See gzip_head.h, and RFC 1952 and 1950. */
#include "codec/archive/gzip_head.h"

#include <isa-l/crc.h>

enum { HAS_SUM = 0x02, HAS_EXTRA = 0x04, HAS_NAME = 0x08, HAS_COMMENT = 0x10, UNKNOWN = 0xe0 };
enum { DEFLATE = 8, LARGEST_WINDOW = 7, DICTIONARY = 0x20 };

static const char other_kind[] = "does not begin as such";

/* Goes to the next part that is present. */
static void go_on(pl_gzip_head *head)
{
    static const uint8_t needs[] = {[PL_GZIP_EXTRA_LENGTH] = HAS_EXTRA,
                                    [PL_GZIP_EXTRA] = HAS_EXTRA,
                                    [PL_GZIP_NAME] = HAS_NAME,
                                    [PL_GZIP_COMMENT] = HAS_COMMENT,
                                    [PL_GZIP_SUM] = HAS_SUM};
    head->n = 0;
    do
        head->part++;
    while (head->part < PL_GZIP_DATA && (!(head->flags & needs[head->part]) ||
                                         (head->part == PL_GZIP_EXTRA && head->extra_bytes == 0)));
}

/* Takes ten bytes. The last six give the time, the compression level and the system. */
static const char *take_fixed(pl_gzip_head *head, uint8_t byte)
{
    static const uint8_t begin[] = {0x1f, 0x8b, DEFLATE};
    enum { FLAGS_AT = 3, BYTES = 10 };
    if (head->n < sizeof begin && byte != begin[head->n])
        return other_kind;
    if (head->n == FLAGS_AT && (byte & UNKNOWN))
        return "has flags that there are not";
    if (head->n == FLAGS_AT)
        head->flags = byte;
    if (++head->n == BYTES)
        go_on(head);
    return NULL;
}

static const char *take_sum(pl_gzip_head *head, uint8_t byte)
{
    head->sum |= (uint16_t)(byte << 8 * head->n);
    if (++head->n < 2)
        return NULL;
    go_on(head);
    return head->sum == (head->crc & 0xffff) ? NULL
                                             : "is corrupt: its head's checksum does not match";
}

const char *pl_gzip_head_take(pl_gzip_head *head, uint8_t byte)
{
    if (head->part != PL_GZIP_SUM)
        head->crc = crc32_gzip_refl(head->crc, &byte, 1);
    switch (head->part) {
    case PL_GZIP_FIXED:
        return take_fixed(head, byte);
    case PL_GZIP_EXTRA_LENGTH:
        head->extra_bytes |= (uint32_t)byte << 8 * head->n;
        if (++head->n == 2)
            go_on(head);
        return NULL;
    case PL_GZIP_EXTRA:
        if (++head->n == head->extra_bytes)
            go_on(head);
        return NULL;
    case PL_GZIP_SUM:
        return take_sum(head, byte);
    default: /* a name or a comment, which ends with a zero byte */
        if (byte == 0)
            go_on(head);
        return NULL;
    }
}

const char *pl_zlib_head_take(pl_gzip_head *head, uint8_t byte)
{
    if (head->n++ == 0) {
        head->flags = byte;
        return (byte & 15) == DEFLATE && byte >> 4 <= LARGEST_WINDOW ? NULL : other_kind;
    }
    head->part = PL_GZIP_DATA;
    if ((head->flags << 8 | byte) % 31 != 0)
        return other_kind;
    return byte & DICTIONARY ? "needs a dictionary, which it does not bring" : NULL;
}
