/* SPDX-License-Identifier: Apache-2.0 */
/* Computes CRC-32C, the checksum of TFRecord (and of iSCSI and ext4), with the processor's
 * instruction if there is one, detected at run time. Continues from an earlier sum: crc(crc(0, a),
 * b) is the sum of a followed by b. Never allocates; safe from any thread. */
#ifndef PL_CODEC_RECORD_CRC32C_H
#define PL_CODEC_RECORD_CRC32C_H

#include "base/base.h"

/* `crc` is the sum of the bytes before; 0 if there are none. */
uint32_t pl_crc32c(uint32_t crc, const void *bytes, size_t n);

/* Sums the 8 bytes of a word, lowest first. */
uint32_t pl_crc32c_word(uint64_t word);

/* Compute the same by table lookup, as on other processors; and without 512-bit products, as on
 * processors that lack them. Tests compare them. */
uint32_t pl_crc32c_by_table(uint32_t crc, const void *bytes, size_t n);
uint32_t pl_crc32c_by_lanes(uint32_t crc, const void *bytes, size_t n);

/* Masks a sum as TFRecord stores it: the sum of data followed by its own sum would be the same for
 * all data. */
static inline uint32_t pl_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
