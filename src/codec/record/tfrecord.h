/* SPDX-License-Identifier: Apache-2.0 */
/* TFRecord's framing: records of any bytes, one after the other, each with its length and two
 * checksums.
 *
 *   record = head: length of the data (8 bytes), checksum of the length (4)
 *            data
 *            foot: checksum of the data (4)      all little-endian; masked CRC-32C checksums
 *
 * The two checksums are checked in two steps, because they mean different things. If that of the
 * length is wrong, the next record cannot be found, and the rest of the file is lost. If that of
 * the data is wrong, only this record is. A length is never trusted: it may be any number, even
 * with a correct checksum, so it is checked against the file before anybody allocates by it.
 *
 * Messages say what is wrong and at which byte; the caller adds the file. Never allocates; safe
 * from any thread. */
#ifndef PL_CODEC_RECORD_TFRECORD_H
#define PL_CODEC_RECORD_TFRECORD_H

#include "base/base.h"

enum {
    PL_TFRECORD_HEAD_BYTES = 12,
    PL_TFRECORD_FOOT_BYTES = 4,
    PL_TFRECORD_FRAME_BYTES = PL_TFRECORD_HEAD_BYTES + PL_TFRECORD_FOOT_BYTES,
};

/* ---- piece by piece, for readers with a window of the file ---- */

/* Reads a head at byte `offset` of the file. PL_ECORRUPT: nothing after it can be found. A length
 * over 2^62 is refused, even with a correct checksum, so that additions to it are safe. */
PL_MUST_CHECK int pl_tfrecord_read_head(const void *head, uint64_t offset, uint64_t *ret_data_bytes,
                                        pl_error *reterr);

/* Compares `crc`, the pl_crc32c() of the data, with the foot. PL_ECORRUPT if they differ; the next
 * record may be good. */
PL_MUST_CHECK int pl_tfrecord_check_foot(const void *foot, uint32_t crc, uint64_t offset,
                                         uint64_t data_bytes, pl_error *reterr);

/* Reports PL_ECORRUPT for a record of `record_bytes` of which only `there_bytes` are left. */
PL_MUST_CHECK int pl_tfrecord_refuse_cut(uint64_t offset, uint64_t record_bytes,
                                         uint64_t there_bytes, pl_error *reterr);

void pl_tfrecord_write_head(uint64_t data_bytes, void *head);
void pl_tfrecord_write_foot(uint32_t crc, void *foot);

/* ---- in memory ---- */

typedef struct pl_tfrecord {
    const uint8_t *data;
    uint64_t data_bytes;
    uint64_t offset; /* of the head */
    uint64_t next;   /* offset of the next record, or of the end */
} pl_tfrecord;

/* Finds the record at byte `offset` of `n`. 1; 0 at the end; PL_ECORRUPT for a bad length, or if
 * too few bytes are left: there is no next record then. Does not check the data. */
PL_MUST_CHECK int pl_tfrecord_find(const void *bytes, uint64_t n, uint64_t offset,
                                   pl_tfrecord *ret_record, pl_error *reterr);

/* Returns how many of the first bytes are whole records with correct checksums: up to the first bad
 * one, or the first that begins at byte `enough` or later. */
size_t pl_tfrecord_scan(const void *bytes, size_t n, size_t enough);

/* Checks the data. PL_ECORRUPT if the checksum differs; `next` stays valid. */
PL_MUST_CHECK int pl_tfrecord_check(const pl_tfrecord *record, pl_error *reterr);

/* Writes the record for `data_bytes` of data, and returns its end. It needs room for data_bytes +
 * PL_TFRECORD_FRAME_BYTES. */
uint8_t *pl_tfrecord_write(const void *data, uint64_t data_bytes, void *to);

#endif
