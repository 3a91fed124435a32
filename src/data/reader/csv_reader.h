/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a CSV file, one after the other: see codec/text/csv.h for what a record is.
 *
 * Records lie in a window that the file passes through; for a longer one it is made larger, up to a
 * limit. What is wrong with a record costs that record. A mark of UTF-8 at the beginning is passed
 * over. One thread at a time. */
#ifndef PL_DATA_READER_CSV_READER_H
#define PL_DATA_READER_CSV_READER_H

#include "codec/text/csv.h"
#include "data/reader/file_window.h"

typedef struct pl_csv_options {
    pl_packing packing;    /* 0: none */
    uint64_t window_bytes; /* 0: PL_FILE_WINDOW_BYTES */
    uint64_t limit_bytes;  /* of a record; 0: PL_TEXT_LIMIT_BYTES */
    bool header;           /* the first record is not data: passed over */
    bool skip_empty_lines; /* TensorFlow does not: an empty line is a field, empty */
} pl_csv_options;

typedef struct pl_csv_reader {
    pl_file_window window;
    const pl_csv_format *format; /* borrowed */
    pl_csv_options options;
    pl_csv_field *fields;
    uint64_t line; /* of the next record */
    bool begun;    /* mark and header are passed */
} pl_csv_reader;

/* `path`, `format` and `memory` are borrowed; `options` may be NULL. -EINVAL for a format that is
 * none, -ENOMEM, PL_EBUDGET; -ENOENT and so on. */
PL_MUST_CHECK int pl_csv_reader_init(pl_csv_reader *reader, const char *path,
                                     const pl_csv_format *format, const pl_csv_options *options,
                                     pl_memory *memory, pl_error *reterr);
void pl_csv_reader_done(pl_csv_reader *reader);

/* 1 and the next record's values, one for each column, good until the next call, and where it is;
 * or 0 at the end. PL_EFORMAT: it is malformed. -EMSGSIZE: it is too long, as it is when a quote is
 * missing; PL_EBUDGET: there is no room for it; then the next call goes on behind its first line.
 * PL_ECORRUPT, -EIO and so on: the file cannot be unpacked or read any further; the next call is at
 * the end. The place is set on failure as well. */
PL_MUST_CHECK int pl_csv_reader_next(pl_csv_reader *reader, pl_csv_value *values,
                                     pl_text_place *ret_place, pl_error *reterr);

/* The same with the fields as they are, the first `room` of them: for names in a header, which is
 * not passed over here. *ret_n is how many there are. */
PL_MUST_CHECK int pl_csv_reader_next_fields(pl_csv_reader *reader, pl_csv_field *fields,
                                            int64_t room, int64_t *ret_n, pl_error *reterr);

/* Before the next record; to a place that was told. */
pl_text_place pl_csv_reader_tell(const pl_csv_reader *reader);
PL_MUST_CHECK int pl_csv_reader_seek(pl_csv_reader *reader, pl_text_place place, pl_error *reterr);

#endif
