/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a TFRecord file, one after the other.
 *   window  a buffer of fixed size that the file passes through; records lie in it whole
 *   large   a record that does not fit the window: read into memory that the caller claims for it
 *   place   before which record a reader stands: what a checkpoint keeps
 *
 * Every sum is checked, always. A bad sum of the data costs that record; after a bad length, or
 * where a file is cut off or cannot be unpacked, nothing more can be had:
 * pl_record_reader_is_lost() tells. A large record's length is held against the file before anybody
 * hears of it.
 *
 * Takes its window from the account, and nothing else that grows. One thread at a time. */
#ifndef PL_DATA_READER_RECORD_READER_H
#define PL_DATA_READER_RECORD_READER_H

#include "base/base.h"
#include "codec/archive/inflate.h"
#include "tensor/memory.h"

/* Stays in a core's cache between reading and summing; measured in docs/records.md. */
#define PL_RECORD_WINDOW_BYTES     (512 * PL_KIB)
#define PL_RECORD_WINDOW_BYTES_MAX PL_MIB

typedef struct pl_record_reader pl_record_reader;

typedef struct pl_record_place {
    uint64_t offset; /* of the record's head, unpacked */
    uint64_t index;  /* of the record, from 0 */
} pl_record_place;

typedef struct pl_record {
    const uint8_t *data; /* until the next call; NULL: it is large */
    uint64_t data_bytes;
    pl_record_place place;
} pl_record;

/* What a reader takes of the account at most. */
uint64_t pl_record_reader_cost_bytes(pl_packing packing, uint64_t window_bytes);

/* `window_bytes` 0: as above. A file that is packed in a way that was not told (PL_PACKING_AUTO) is
 * known by how it begins. PL_EBUDGET, -EINVAL, -ENOMEM; -ENOENT and so on. */
PL_MUST_CHECK int pl_record_reader_new(const char *path, pl_packing packing, uint64_t window_bytes,
                                       pl_memory *memory, pl_record_reader **ret_reader,
                                       pl_error *reterr);
void pl_record_reader_free(pl_record_reader *reader); /* NULL is allowed */

/* The next record: 1, or 0 at the end. Of a large one only its length is known then: it is read by
 * pl_record_reader_read(), or passed over by the next call. PL_ECORRUPT with the file and the byte;
 * *ret_record then says which one it was, as far as that is known. -EIO and so on. */
PL_MUST_CHECK int pl_record_reader_next(pl_record_reader *reader, pl_record *ret_record,
                                        pl_error *reterr);

/* The large record that was just found, into `data_bytes` of the caller's. PL_ECORRUPT. */
PL_MUST_CHECK int pl_record_reader_read(pl_record_reader *reader, void *to, pl_error *reterr);

/* Passes over `n` records, looking at their lengths only. Says over how many: fewer at the end. */
PL_MUST_CHECK int pl_record_reader_skip(pl_record_reader *reader, uint64_t n, uint64_t *ret_n,
                                        pl_error *reterr);

/* After a failure: will all calls fail, until another place is gone to? */
bool pl_record_reader_is_lost(const pl_record_reader *reader);

/* Before the next record. */
pl_record_place pl_record_reader_tell(const pl_record_reader *reader);

/* To a place that was told. In a packed file all before it is unpacked again. PL_ECORRUPT if the
 * file ends before it. Where there is no record at that place, the next call finds out. */
PL_MUST_CHECK int pl_record_reader_seek(pl_record_reader *reader, pl_record_place place,
                                        pl_error *reterr);

pl_packing pl_record_reader_packing(const pl_record_reader *reader); /* never AUTO */

#endif
