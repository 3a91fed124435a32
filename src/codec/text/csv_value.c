/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the fields of a record. See csv.h. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "codec/text/csv.h"
#include "codec/text/excerpt.h"
#include "codec/text/number.h"
#include "tensor/dtype.h"

typedef struct place {
    uint64_t offset, line;
    int64_t column;
} place;

/* Returns the place of a column's field. A record can span several lines, within quotes. */
static place place_of(const pl_csv_format *format, const pl_csv_record *record, int column)
{
    const char *at = record->fields[column].at;
    place p = {record->place.offset + (uint64_t)(at - record->begin), record->place.line,
               (format->selected ? format->selected[column] : column) + 1};
    for (const char *c = record->begin; c < at; c++)
        p.line += *c == '\n' || (*c == '\r' && c[1] != '\n');
    return p;
}

static PL_COLD int refuse_missing(const pl_csv_format *format, const pl_csv_record *record,
                                  int column, pl_error *reterr)
{
    place p = place_of(format, record, column);
    pl_error_set(reterr, PL_EFORMAT, "nothing is there, and the column has no default");
    pl_error_at_line(reterr, p.line, p.offset, p.column);
    return PL_EFORMAT;
}

static PL_COLD int refuse_number(const pl_csv_format *format, const pl_csv_record *record,
                                 int column, int code, pl_error *reterr)
{
    const pl_csv_field *field = &record->fields[column];
    place p = place_of(format, record, column);
    if (code == PL_EFORMAT || code == -ERANGE)
        code =
            pl_error_set(reterr, PL_EFORMAT, "'%s' %s %s", pl_excerpt_of(field->at, field->n).text,
                         code == -ERANGE ? "does not fit" : "is no",
                         pl_dtype_info_of(format->columns[column].dtype)->name);
    else
        pl_error_set(reterr, code, "%s", pl_error_text(code));
    pl_error_at_line(reterr, p.line, p.offset, p.column);
    return code;
}

static PL_COLD int refuse_count(const pl_csv_format *format, const pl_csv_record *record,
                                pl_error *reterr)
{
    int64_t wanted =
        format->selected ? format->selected[format->n_columns - 1] + 1 : format->n_columns;
    pl_error_set(reterr, PL_EFORMAT, "%s%" PRId64 " field%s, where %s%" PRId64 " %s expected",
                 record->is_empty ? "an empty line: " : "", record->n_fields,
                 record->n_fields == 1 ? "" : "s", format->selected ? "at least " : "", wanted,
                 wanted == 1 ? "is" : "are");
    pl_error_at_line(reterr, record->place.line, record->place.offset, -1);
    return PL_EFORMAT;
}

/* Is it the text for an empty field? Quotes around the field do not count. */
static bool is_na(const pl_csv_format *format, const pl_csv_field *field)
{
    const pl_string *na = &format->na_value;
    if (PL_LIKELY(pl_csv_text_bytes(field) != na->n))
        return false;
    if (field->n_doubled == 0)
        return na->n > 0 && memcmp(field->at, na->data, na->n) == 0;
    const char *wanted = na->data, *at = field->at;
    for (size_t i = 0; i < na->n; i++, at++) {
        if (*at != wanted[i])
            return false;
        at += *at == '"';
    }
    return true;
}

static int read_number(pl_dtype dtype, const pl_csv_field *field, uint64_t *ret_bits)
{
    uint64_t bits = 0; /* little-endian, like all of the runtime: the lower bytes */
    int r = PL_EFORMAT;
    switch (dtype) {
    case PL_I32:
        r = pl_number_i32(field->at, field->n, (int32_t *)&bits);
        break;
    case PL_I64:
        r = pl_number_i64(field->at, field->n, (int64_t *)&bits);
        break;
    case PL_F32:
        r = pl_number_f32(field->at, field->n, (float *)&bits);
        break;
    case PL_F64:
        r = pl_number_f64(field->at, field->n, (double *)&bits);
        break;
    default:
        break;
    }
    *ret_bits = bits;
    return r;
}

static int convert_one(const pl_csv_format *format, const pl_csv_record *record, int column,
                       pl_csv_value *value, pl_error *reterr)
{
    const pl_csv_column *wanted = &format->columns[column];
    const pl_csv_field *field = &record->fields[column];
    if (field->n == 0 || is_na(format, field)) {
        if (wanted->required)
            return refuse_missing(format, record, column, reterr);
        value->bits = wanted->bits;
        value->text = (pl_csv_field){.at = wanted->text.data, .n = wanted->text.n};
        return 0;
    }
    if (wanted->dtype == PL_STRING) {
        value->text = *field;
        return 0;
    }
    int r = read_number(wanted->dtype, field, &value->bits);
    return PL_LIKELY(r == 0) ? 0 : refuse_number(format, record, column, r, reterr);
}

int pl_csv_convert(const pl_csv_format *format, const pl_csv_record *record, pl_csv_value *values,
                   pl_error *reterr)
{
    int64_t n = format->n_columns;
    if (record->n_kept < n || (!format->selected && record->n_fields != n))
        return refuse_count(format, record, reterr);
    for (int i = 0; i < n; i++) {
        int r = convert_one(format, record, i, &values[i], reterr);
        if (r < 0)
            return r;
    }
    return 0;
}
