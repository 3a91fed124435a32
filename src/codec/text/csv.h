/* SPDX-License-Identifier: Apache-2.0 */
/* Comma-separated values, as RFC 4180 and TensorFlow's CsvDataset have them.
 *   record   fields up to the end of a line: line feed, carriage return, or both; the last one may
 *            have none. An empty line is a record of one empty field
 *   field    bytes up to the next delimiter. One that begins with a quote goes on to its closing
 *            quote, whatever is between; a quote within it is written twice
 *   column   a field that is asked for: its dtype, and what stands for an empty one
 *
 *   n_fields = n_columns, unless columns are selected
 *
 * No state is kept between calls: whoever has no whole record in the window comes again with the
 * same bytes and more behind them. A record that is malformed costs that record: pl_csv_record says
 * where the next one begins, also on failure.
 *
 * Lines and columns are counted from 1 in messages, bytes from 0. They say what is wrong and where;
 * the caller says in which file. Borrows the bytes, allocates nothing; safe from any thread. */
#ifndef PL_CODEC_TEXT_CSV_H
#define PL_CODEC_TEXT_CSV_H

#include "base/base.h"
#include "codec/text/lines.h"
#include "plimsoll/tensor.h"

typedef struct pl_csv_column {
    pl_dtype dtype; /* PL_I32, PL_I64, PL_F32, PL_F64 or PL_STRING */
    bool required;  /* an empty field is an error; else it has the default */
    uint64_t bits;  /* the default: its bytes, lowest first */
    pl_string text; /* the default of a string */
} pl_csv_column;

typedef struct pl_csv_format {
    char delimiter;     /* no quote and no line end */
    bool plain_quotes;  /* a quote is a byte like any other */
    pl_string na_value; /* stands for nothing as well as an empty field does */
    const pl_csv_column *columns;
    const int64_t *selected; /* ascending, from 0: the column's field; NULL: all fields are asked
                                for */
    int n_columns;
} pl_csv_format;

/* -EINVAL with what is wrong about it. */
PL_MUST_CHECK int pl_csv_check(const pl_csv_format *format, pl_error *reterr);

/* Bytes between delimiters, or between quotes. */
typedef struct pl_csv_field {
    const char *at;
    size_t n;
    size_t n_doubled; /* quotes that are written twice: n - n_doubled bytes are meant */
} pl_csv_field;

typedef struct pl_csv_record {
    pl_csv_field *fields; /* the caller's: room for `room` of them */
    int64_t room;
    const char *begin;
    pl_text_place place;
    int64_t n_fields; /* that the record has, kept or not */
    int64_t n_kept;   /* those selected, as far as there was room */
    size_t taken;     /* its bytes, with its end: there the next record begins */
    size_t extent;    /* the same; but of one that nothing closes, all to the end */
    uint64_t n_lines; /* that the bytes taken end */
    bool is_empty;    /* an empty line */
} pl_csv_record;

/* Splits the record that begins at `bytes`, at record->place. 1; or 0: `n` bytes do not have its
 * end, it takes n + 1 of them at least; with `is_last` (nothing is behind them), there is none.
 * PL_EFORMAT, with `taken` and `n_lines` set: quotes where there may be none, or none where there
 * must be. Keeps the selected fields, or all; how many there are is not judged. */
PL_MUST_CHECK int pl_csv_split(const pl_csv_format *format, const char *bytes, size_t n,
                               bool is_last, pl_csv_record *record, pl_error *reterr);

/* A record that does not end within what its reader can hold, as it would with a quote too many:
 * the next one is taken to begin behind its first line. False if that has no end in `n` bytes. */
bool pl_csv_give_up(const char *bytes, size_t n, bool is_last, pl_csv_record *record);

/* What a field is. */
typedef struct pl_csv_value {
    uint64_t bits;     /* of a number: its bytes, lowest first, the rest 0 */
    pl_csv_field text; /* of a string */
} pl_csv_value;

/* The values of a record that was split with room for all columns: one for each. PL_EFORMAT: too
 * few fields or too many; a field that is required and empty, that is no number, or whose number
 * does not fit; values are then undefined. */
PL_MUST_CHECK int pl_csv_convert(const pl_csv_format *format, const pl_csv_record *record,
                                 pl_csv_value *values, pl_error *reterr);

static inline size_t pl_csv_text_bytes(const pl_csv_field *text)
{
    return text->n - text->n_doubled;
}

/* Copies what a field means: pl_csv_text_bytes() of them. */
void pl_csv_text_copy(const pl_csv_field *text, char *to);

#endif
