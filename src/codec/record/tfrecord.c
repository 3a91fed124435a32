/* SPDX-License-Identifier: Apache-2.0 */
/* See tfrecord.h. */
#include "codec/record/tfrecord.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "codec/record/crc32c.h"

enum { LENGTH_BYTES = 8 };

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are stored as they are");

static uint32_t u32_at(const uint8_t *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

static uint32_t sum_of(const void *bytes, size_t n)
{
    return pl_crc32c_mask(pl_crc32c(0, bytes, n));
}

/* At offset 0 it is more likely another kind of file. */
static int refuse_length(uint64_t offset, uint32_t stored, uint32_t true_sum, pl_error *reterr)
{
    if (offset == 0)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "it does not begin with a TFRecord (the checksum of the length at byte "
                            "0 is %08" PRIx32 ", not %08" PRIx32 "): another kind of file, packed "
                            "in a way that was not told, or corrupt",
                            stored, true_sum);
    return pl_error_set(reterr, PL_ECORRUPT,
                        "the length of the record at byte %" PRIu64 " is corrupt: its checksum is "
                        "%08" PRIx32 ", not %08" PRIx32 "; no record behind it can be found",
                        offset, stored, true_sum);
}

int pl_tfrecord_read_head(const void *head, uint64_t offset, uint64_t *ret_data_bytes,
                          pl_error *reterr)
{
    const uint8_t *at = head;
    uint64_t length;
    uint32_t stored = u32_at(at + LENGTH_BYTES), sum = sum_of(at, LENGTH_BYTES);
    memcpy(&length, at, sizeof length);
    if (PL_UNLIKELY(stored != sum))
        return refuse_length(offset, stored, sum, reterr);
    if (PL_UNLIKELY(length > UINT64_C(1) << 62))
        return pl_error_set(reterr, PL_ECORRUPT,
                            "the record at byte %" PRIu64 " has a length that cannot be true: "
                            "%" PRIu64 " bytes; no record behind it can be found",
                            offset, length);
    *ret_data_bytes = length;
    return 0;
}

int pl_tfrecord_check_foot(const void *foot, uint32_t crc, uint64_t offset, uint64_t data_bytes,
                           pl_error *reterr)
{
    uint32_t stored = u32_at(foot), sum = pl_crc32c_mask(crc);
    if (PL_LIKELY(stored == sum))
        return 0;
    return pl_error_set(reterr, PL_ECORRUPT,
                        "the data of the record at byte %" PRIu64 " (%" PRIu64
                        " bytes) is corrupt: "
                        "its checksum is %08" PRIx32 ", not %08" PRIx32,
                        offset, data_bytes, stored, sum);
}

int pl_tfrecord_refuse_cut(uint64_t offset, uint64_t record_bytes, uint64_t there_bytes,
                           pl_error *reterr)
{
    return pl_error_set(reterr, PL_ECORRUPT,
                        "it is cut off: the record at byte %" PRIu64 " takes %" PRIu64
                        " bytes%s, and %" PRIu64 " are left",
                        offset, record_bytes,
                        record_bytes == PL_TFRECORD_HEAD_BYTES ? " for its head alone" : "",
                        there_bytes);
}

void pl_tfrecord_write_head(uint64_t data_bytes, void *head)
{
    uint8_t *to = head;
    memcpy(to, &data_bytes, LENGTH_BYTES);
    uint32_t sum = sum_of(to, LENGTH_BYTES);
    memcpy(to + LENGTH_BYTES, &sum, sizeof sum);
}

void pl_tfrecord_write_foot(uint32_t crc, void *foot)
{
    uint32_t sum = pl_crc32c_mask(crc);
    memcpy(foot, &sum, sizeof sum);
}

int pl_tfrecord_find(const void *bytes, uint64_t n, uint64_t offset, pl_tfrecord *ret_record,
                     pl_error *reterr)
{
    uint64_t left = pl_sub_sat_u64(n, offset), data_bytes = 0;
    if (left == 0)
        return 0;
    if (left < PL_TFRECORD_HEAD_BYTES)
        return pl_tfrecord_refuse_cut(offset, PL_TFRECORD_HEAD_BYTES, left, reterr);
    const uint8_t *head = (const uint8_t *)bytes + offset;
    int r = pl_tfrecord_read_head(head, offset, &data_bytes, reterr);
    if (r < 0)
        return r;
    uint64_t record_bytes = data_bytes + PL_TFRECORD_FRAME_BYTES;
    if (record_bytes > left)
        return pl_tfrecord_refuse_cut(offset, record_bytes, left, reterr);
    *ret_record = (pl_tfrecord){
        .data = head + PL_TFRECORD_HEAD_BYTES,
        .data_bytes = data_bytes,
        .offset = offset,
        .next = offset + record_bytes,
    };
    return 1;
}

size_t pl_tfrecord_scan(const void *bytes, size_t n, size_t enough)
{
    const uint8_t *at = bytes;
    size_t done = 0;
    while (done < enough && n - done >= PL_TFRECORD_FRAME_BYTES) {
        const uint8_t *head = at + done, *data = head + PL_TFRECORD_HEAD_BYTES;
        uint64_t length;
        memcpy(&length, head, sizeof length);
        if (length > n - done - PL_TFRECORD_FRAME_BYTES ||
            u32_at(head + LENGTH_BYTES) != pl_crc32c_mask(pl_crc32c_word(length)) ||
            u32_at(data + length) != sum_of(data, length))
            break;
        done += length + PL_TFRECORD_FRAME_BYTES;
    }
    return done;
}

int pl_tfrecord_check(const pl_tfrecord *record, pl_error *reterr)
{
    uint32_t crc = pl_crc32c(0, record->data, record->data_bytes);
    return pl_tfrecord_check_foot(record->data + record->data_bytes, crc, record->offset,
                                  record->data_bytes, reterr);
}

uint8_t *pl_tfrecord_write(const void *data, uint64_t data_bytes, void *to)
{
    uint8_t *head = to, *foot = head + PL_TFRECORD_HEAD_BYTES + data_bytes;
    pl_tfrecord_write_head(data_bytes, head);
    if (data_bytes > 0)
        memcpy(head + PL_TFRECORD_HEAD_BYTES, data, data_bytes);
    pl_tfrecord_write_foot(pl_crc32c(0, head + PL_TFRECORD_HEAD_BYTES, data_bytes), foot);
    return foot + PL_TFRECORD_FOOT_BYTES;
}
