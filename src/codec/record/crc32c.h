/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C, the checksum of TFRecord (and of iSCSI and ext4), with the processor's instruction for
 * it where there is one: asked for when it runs. Goes on from
 * where it was: crc(crc(0, a), b) is the sum of a and b behind each other.
 * Never allocates; safe from any thread. */
#ifndef PL_CODEC_RECORD_CRC32C_H
#define PL_CODEC_RECORD_CRC32C_H

#include "base/base.h"

/* `crc` is that of the bytes before; 0 where there are none. */
uint32_t pl_crc32c(uint32_t crc, const void *bytes, size_t n);

/* Of the 8 bytes of a word, lowest first. */
uint32_t pl_crc32c_word(uint64_t word);

/* The same by table lookup: what other processors do, and what tests hold against it; and without
 * products of 512 bits, as processors do it that have none. */
uint32_t pl_crc32c_by_table(uint32_t crc, const void *bytes, size_t n);
uint32_t pl_crc32c_by_lanes(uint32_t crc, const void *bytes, size_t n);

/* As TFRecord stores it: the sum of data that holds its own sum would be the same for all data. */
static inline uint32_t pl_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
