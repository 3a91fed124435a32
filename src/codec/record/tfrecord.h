/* SPDX-License-Identifier: Apache-2.0 */
/* TFRecord's framing: records of any bytes behind each other, each with its length and two sums.
 *
 *   record = head: length of the data (8 bytes), sum of these (4)
 *            data
 *            foot: sum of the data (4)           all little-endian; a sum is a masked CRC-32C
 *
 * The two sums are two steps, because they say different things. Where the length's is wrong the
 * next record cannot be found: what follows is lost. Where the data's is wrong only this record is.
 * A length is never trusted: it may be any number, with a right sum as well, so it is held against
 * the bytes that there are before anybody allocates by it.
 *
 * Messages say what is wrong and at which byte; the caller says in which file. Never allocates;
 * safe from any thread. */
#ifndef PL_CODEC_RECORD_TFRECORD_H
#define PL_CODEC_RECORD_TFRECORD_H

#include "base/base.h"

enum {
    PL_TFRECORD_HEAD_BYTES = 12,
    PL_TFRECORD_FOOT_BYTES = 4,
    PL_TFRECORD_FRAME_BYTES = PL_TFRECORD_HEAD_BYTES + PL_TFRECORD_FOOT_BYTES,
};

/* ---- piece by piece, for whoever has no more than a window of the file ---- */

/* Of a head at byte `offset` of the file. PL_ECORRUPT: nothing behind it can be found. A length
 * over 2^62 is refused, whatever its sum, so that adding to it is safe. */
PL_MUST_CHECK int pl_tfrecord_read_head(const void *head, uint64_t offset, uint64_t *ret_data_bytes,
                                        pl_error *reterr);

/* `crc` is pl_crc32c() of the data. PL_ECORRUPT: another; the next record may be good. */
PL_MUST_CHECK int pl_tfrecord_check_foot(const void *foot, uint32_t crc, uint64_t offset,
                                         uint64_t data_bytes, pl_error *reterr);

/* PL_ECORRUPT, and says so, for a record of whose `record_bytes` only `there_bytes` are left. */
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

/* The record at byte `offset` of `n`. 1; 0 at the end; PL_ECORRUPT for a bad length, or where there
 * are fewer bytes: there is no next one then. The data is not looked at. */
PL_MUST_CHECK int pl_tfrecord_find(const void *bytes, uint64_t n, uint64_t offset,
                                   pl_tfrecord *ret_record, pl_error *reterr);

/* How many of the first bytes are whole records, all of whose sums are right: up to the first that
 * is not so, or the first that begins at byte `enough` or behind. */
size_t pl_tfrecord_scan(const void *bytes, size_t n, size_t enough);

/* The data's sum. PL_ECORRUPT: another; `next` is as good as before. */
PL_MUST_CHECK int pl_tfrecord_check(const pl_tfrecord *record, pl_error *reterr);

/* Writes the record that `data_bytes` of data make, and returns where it ends: the room for it has
 * data_bytes + PL_TFRECORD_FRAME_BYTES. */
uint8_t *pl_tfrecord_write(const void *data, uint64_t data_bytes, void *to);

#endif
