/* SPDX-License-Identifier: Apache-2.0 */
/* Splits comma-separated values, as in RFC 4180 and TensorFlow's CsvDataset.
 *   record   fields up to the end of a line: line feed, carriage return, or both; the last line may
 *            lack it. An empty line is a record of one empty field
 *   field    bytes up to the next delimiter. One that begins with a quote goes on to its closing
 *            quote, across any bytes; a quote within it is doubled
 *   column   a field that is requested: its dtype, and its default for an empty field
 *
 *   n_fields = n_columns, unless columns are selected
 *
 * Keeps no state between calls: a caller without a whole record in its window calls again with the
 * same bytes and more after them. A malformed record costs only that record: pl_csv_record says
 * where the next one begins, also on failure.
 *
 * Messages count lines and columns from 1, bytes from 0. They say what is wrong and where; the
 * caller adds the file. Borrows the bytes, allocates nothing; safe from any thread. */
#ifndef PL_CODEC_TEXT_CSV_H
#define PL_CODEC_TEXT_CSV_H

#include "base/base.h"
#include "codec/text/lines.h"
#include "plimsoll/tensor.h"

typedef struct pl_csv_column {
    pl_dtype dtype; /* PL_I32, PL_I64, PL_F32, PL_F64 or PL_STRING */
    bool required;  /* an empty field is an error; otherwise it has the default */
    uint64_t bits;  /* the default: its bytes, lowest first */
    pl_string text; /* the default of a string */
} pl_csv_column;

typedef struct pl_csv_format {
    char delimiter;     /* not a quote, not a line end */
    bool plain_quotes;  /* a quote is a byte like any other */
    pl_string na_value; /* means an empty field, like no bytes at all */
    const pl_csv_column *columns;
    const int64_t *selected; /* ascending, from 0: the field of each column; NULL: all fields */
    int n_columns;
} pl_csv_format;

/* Returns -EINVAL, with the reason, for an invalid format. */
PL_MUST_CHECK int pl_csv_check(const pl_csv_format *format, pl_error *reterr);

/* Bytes between delimiters, or between quotes. */
typedef struct pl_csv_field {
    const char *at;
    size_t n;
    size_t n_doubled; /* doubled quotes: the text has n - n_doubled bytes */
} pl_csv_field;

typedef struct pl_csv_record {
    pl_csv_field *fields; /* the caller's: `room` of them */
    int64_t room;
    const char *begin;
    pl_text_place place;
    int64_t n_fields; /* all fields of the record, kept or not */
    int64_t n_kept;   /* selected fields, as far as there was room */
    size_t taken;     /* its bytes including its end: the next record begins there */
    size_t extent;    /* the same; but for a quote that nothing closes, all bytes */
    uint64_t n_lines; /* lines that end within the bytes taken */
    bool is_empty;    /* an empty line */
} pl_csv_record;

/* Splits the record that begins at `bytes`, at record->place. Returns 1; or 0: `n` bytes do not
 * contain its end, and at least n + 1 are needed; with `is_last` (nothing follows them), there is
 * no record. PL_EFORMAT, with `taken` and `n_lines` set: a quote in the wrong place, or a missing
 * one. Keeps the selected fields, or all; does not check how many there are. */
PL_MUST_CHECK int pl_csv_split(const pl_csv_format *format, const char *bytes, size_t n,
                               bool is_last, pl_csv_record *record, pl_error *reterr);

/* Gives up on a record that does not end within the reader's limit, for example because of a
 * stray quote: the next one is assumed to begin after its first line. False if no line ends in
 * `n` bytes. */
bool pl_csv_give_up(const char *bytes, size_t n, bool is_last, pl_csv_record *record);

/* The value of a field. */
typedef struct pl_csv_value {
    uint64_t bits;     /* of a number: its bytes, lowest first, the rest 0 */
    pl_csv_field text; /* of a string */
} pl_csv_value;

/* Converts a record that was split with room for all columns: one value for each. PL_EFORMAT: too
 * few fields or too many; a field that is required but empty, is not a number, or whose number does
 * not fit; values are then undefined. */
PL_MUST_CHECK int pl_csv_convert(const pl_csv_format *format, const pl_csv_record *record,
                                 pl_csv_value *values, pl_error *reterr);

static inline size_t pl_csv_text_bytes(const pl_csv_field *text)
{
    return text->n - text->n_doubled;
}

/* Copies the text of a field without its quotes: pl_csv_text_bytes() bytes. */
void pl_csv_text_copy(const pl_csv_field *text, char *to);

#endif
