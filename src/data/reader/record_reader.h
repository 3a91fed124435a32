/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the records of a TFRecord file one by one.
 *   window  a buffer of fixed size that moves over the file; small records lie in it whole
 *   large   a record that does not fit the window: read into memory that the caller claims for it
 *   place   the position before a record: a checkpoint keeps it
 *
 * Every checksum is always checked. A bad checksum of the data costs that record; after a bad
 * length, or where a file is truncated or cannot be unpacked, nothing more can be read, and
 * pl_record_reader_is_lost() says so. The length of a large record is checked against the file
 * before it is returned.
 *
 * Claims its window from the account, and nothing else that grows. One thread at a time. */
#ifndef PL_DATA_READER_RECORD_READER_H
#define PL_DATA_READER_RECORD_READER_H

#include "base/base.h"
#include "codec/archive/inflate.h"
#include "tensor/memory.h"

/* Fits into a core's cache between reading and checking; measured in docs/records.md. */
#define PL_RECORD_WINDOW_BYTES     (512 * PL_KIB)
#define PL_RECORD_WINDOW_BYTES_MAX PL_MIB

typedef struct pl_record_reader pl_record_reader;

typedef struct pl_record_place {
    uint64_t offset; /* of the record's head, unpacked */
    uint64_t index;  /* of the record, from 0 */
} pl_record_place;

typedef struct pl_record {
    const uint8_t *data; /* valid until the next call; NULL: the record is large */
    uint64_t data_bytes;
    pl_record_place place;
} pl_record;

/* Returns the most bytes that a reader claims from the account. */
uint64_t pl_record_reader_cost_bytes(pl_packing packing, uint64_t window_bytes);

/* `window_bytes` 0: as above. PL_PACKING_AUTO: the first bytes of the file tell how it is packed.
 * PL_EBUDGET, -EINVAL, -ENOMEM; -ENOENT and so on. */
PL_MUST_CHECK int pl_record_reader_new(const char *path, pl_packing packing, uint64_t window_bytes,
                                       pl_memory *memory, pl_record_reader **ret_reader,
                                       pl_error *reterr);
void pl_record_reader_free(pl_record_reader *reader); /* NULL is allowed */

/* Finds the next record: 1, or 0 at the end. For a large one it gives only the length; read it with
 * pl_record_reader_read(), or the next call skips it. PL_ECORRUPT with the file and the byte;
 * *ret_record then identifies the record, as far as that is known. -EIO and so on. */
PL_MUST_CHECK int pl_record_reader_next(pl_record_reader *reader, pl_record *ret_record,
                                        pl_error *reterr);

/* Reads the large record just found into the caller's `data_bytes`. PL_ECORRUPT. */
PL_MUST_CHECK int pl_record_reader_read(pl_record_reader *reader, void *to, pl_error *reterr);

/* Skips `n` records, reading only their lengths. Reports how many: fewer at the end. */
PL_MUST_CHECK int pl_record_reader_skip(pl_record_reader *reader, uint64_t n, uint64_t *ret_n,
                                        pl_error *reterr);

/* After a failure: will all calls fail until a seek to another place? */
bool pl_record_reader_is_lost(const pl_record_reader *reader);

/* Returns the place before the next record. */
pl_record_place pl_record_reader_tell(const pl_record_reader *reader);

/* Moves to a place that pl_record_reader_tell() returned. A packed file is unpacked again up to
 * there. PL_ECORRUPT if the file is shorter. If no record begins there, the next call finds out. */
PL_MUST_CHECK int pl_record_reader_seek(pl_record_reader *reader, pl_record_place place,
                                        pl_error *reterr);

pl_packing pl_record_reader_packing(const pl_record_reader *reader); /* never AUTO */

#endif
