/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the records of a CSV file one by one: see codec/text/csv.h for the format.
 *
 * Records lie in a window that moves over the file; it grows for a longer record, up to a limit. A
 * malformed record costs only that record. A UTF-8 byte order mark at the beginning is skipped. One
 * thread at a time. */
#ifndef PL_DATA_READER_CSV_READER_H
#define PL_DATA_READER_CSV_READER_H

#include "codec/text/csv.h"
#include "data/reader/file_window.h"

typedef struct pl_csv_options {
    pl_packing packing;    /* 0: none */
    uint64_t window_bytes; /* 0: PL_FILE_WINDOW_BYTES */
    uint64_t limit_bytes;  /* of a record; 0: PL_TEXT_LIMIT_BYTES */
    bool header;           /* skip the first record: it is a header */
    bool skip_empty_lines; /* TensorFlow does not: it reads an empty line as one empty field */
} pl_csv_options;

typedef struct pl_csv_reader {
    pl_file_window window;
    const pl_csv_format *format; /* borrowed */
    pl_csv_options options;
    pl_csv_field *fields;
    uint64_t line; /* of the next record */
    bool begun;    /* byte order mark and header are skipped */
} pl_csv_reader;

/* Borrows `path`, `format` and `memory`; `options` may be NULL. -EINVAL for an invalid format,
 * -ENOMEM, PL_EBUDGET; -ENOENT and so on. */
PL_MUST_CHECK int pl_csv_reader_init(pl_csv_reader *reader, const char *path,
                                     const pl_csv_format *format, const pl_csv_options *options,
                                     pl_memory *memory, pl_error *reterr);
void pl_csv_reader_done(pl_csv_reader *reader);

/* Returns 1 with the place of the next record and its values, one for each column, valid until the
 * next call; or 0 at the end. PL_EFORMAT: the record is malformed. -EMSGSIZE: it is too long, for
 * example because a quote is missing; PL_EBUDGET: there is no room for it; the next call then
 * continues after its first line. PL_ECORRUPT, -EIO and so on: the rest of the file cannot be
 * unpacked or read; the next call returns 0. The place is set on failure too. */
PL_MUST_CHECK int pl_csv_reader_next(pl_csv_reader *reader, pl_csv_value *values,
                                     pl_text_place *ret_place, pl_error *reterr);

/* Does the same with the fields as they are, the first `room` of them: for the names in a header,
 * which this call does not skip. *ret_n is how many there are. */
PL_MUST_CHECK int pl_csv_reader_next_fields(pl_csv_reader *reader, pl_csv_field *fields,
                                            int64_t room, int64_t *ret_n, pl_error *reterr);

/* The place before the next record, and a way back to such a place. */
pl_text_place pl_csv_reader_tell(const pl_csv_reader *reader);
PL_MUST_CHECK int pl_csv_reader_seek(pl_csv_reader *reader, pl_text_place place, pl_error *reterr);

#endif
