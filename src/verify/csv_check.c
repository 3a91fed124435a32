/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a CSV: every record has as many fields as the first one, numbers stay numbers, and all
 * text is UTF-8.
 *   header   the first record; whether it is a header or data makes no difference here
 *   sample   the records up to number SAMPLE_RECORDS, after the first
 *   numeric  a column whose non-empty fields in the sample are all numbers, or all but one in
 *            STRAY_OF: that one is a stray */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"
#include "codec/text/excerpt.h"
#include "codec/text/number.h"
#include "codec/text/utf8.h"
#include "data/reader/csv_reader.h"
#include "verify/file.h"

/* A column of tickets of which only every fourth one is not a number (Titanic's) is text; 1 of 17
 * is a mistake, or a mark for a missing value, which a reader of numbers cannot read either. */
enum { SAMPLE_RECORDS = 64, STRAY_OF = 17, MOST_COLUMNS = 65536, WORD_BYTES = 64 };

typedef enum column_kind { COLUMN_EMPTY, COLUMN_NUMBER, COLUMN_TEXT } column_kind;

typedef struct column {
    uint8_t kind;               /* column_kind, known after the sample */
    uint8_t n_numbers, n_words; /* in the sample */
    char word[WORD_BYTES];      /* the first one, as reported */
    pl_text_place place;        /* of its record */
} column;

typedef struct csv_check {
    pl_verify_file *file;
    pl_csv_reader reader;
    pl_csv_field *fields;
    column *columns;
    int64_t n_columns;
    uint64_t n_records;
} csv_check;

static bool is_number(const pl_csv_field *field)
{
    double value;
    return pl_number_f64(field->at, field->n, &value) != PL_EFORMAT;
}

static void check_numbers(csv_check *check, pl_text_place place, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const pl_csv_field *field = &check->fields[i];
        uint8_t *kind = &check->columns[i].kind;
        if (field->n == 0 || *kind == COLUMN_TEXT)
            continue;
        if (is_number(field) || *kind == COLUMN_EMPTY)
            *kind = is_number(field) ? COLUMN_NUMBER : COLUMN_TEXT;
        else
            pl_verify_report(check->file, PL_VERIFY_WARNING, place.offset,
                             "line %" PRIu64 ": field %" PRId64
                             " is '%s', where the first %d records have numbers",
                             place.line, i + 1, pl_excerpt_of(field->at, field->n).text,
                             SAMPLE_RECORDS);
    }
}

static void sample_record(csv_check *check, pl_text_place place, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const pl_csv_field *field = &check->fields[i];
        column *at = &check->columns[i];
        if (field->n == 0)
            continue;
        bool number = is_number(field);
        at->n_numbers += number;
        at->n_words += !number;
        if (number || at->n_words > 1)
            continue;
        snprintf(at->word, sizeof at->word, "%s", pl_excerpt_of(field->at, field->n).text);
        at->place = place;
    }
}

/* Decides the kinds of the columns at the end of the sample. */
static void end_sample(csv_check *check)
{
    for (int64_t i = 0; i < check->n_columns; i++) {
        column *at = &check->columns[i];
        int n = at->n_numbers + at->n_words;
        bool number = at->n_numbers > 0 && at->n_words * STRAY_OF <= n;
        at->kind = n == 0 ? COLUMN_EMPTY : number ? COLUMN_NUMBER : COLUMN_TEXT;
        if (number && at->n_words > 0)
            pl_verify_report(check->file, PL_VERIFY_WARNING, at->place.offset,
                             "line %" PRIu64 ": field %" PRId64
                             " is '%s', where %d of %d records have numbers",
                             at->place.line, i + 1, at->word, at->n_numbers, n);
    }
}

static void check_utf8(csv_check *check, pl_text_place place, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const pl_csv_field *field = &check->fields[i];
        if (PL_UNLIKELY(pl_utf8_valid_bytes(field->at, field->n, NULL) < field->n)) {
            pl_verify_report(check->file, PL_VERIFY_ERROR, place.offset,
                             "line %" PRIu64 ": field %" PRId64 " is not UTF-8", place.line, i + 1);
            return;
        }
    }
}

static void check_record(csv_check *check, pl_text_place place, int64_t n, uint64_t bytes)
{
    int64_t n_there = n < check->n_columns ? n : check->n_columns;
    bool is_first = check->n_records++ == 0;
    pl_verify_count(check->file, bytes);
    check_utf8(check, place, n_there);
    if (n != check->n_columns)
        pl_verify_report(check->file, PL_VERIFY_ERROR, place.offset,
                         "line %" PRIu64 ": %" PRId64 " field%s, the first record has %" PRId64,
                         place.line, n, n == 1 ? "" : "s", check->n_columns);
    else if (!is_first && check->n_records <= SAMPLE_RECORDS)
        sample_record(check, place, n);
    else if (!is_first)
        check_numbers(check, place, n);
    if (check->n_records == SAMPLE_RECORDS)
        end_sample(check);
}

/* The first record gives the number of fields, so it is read twice. */
static int count_columns(csv_check *check, pl_error *reterr)
{
    pl_csv_field none;
    int r = pl_csv_reader_next_fields(&check->reader, &none, 0, &check->n_columns, reterr);
    if (r <= 0)
        return r;
    if (check->n_columns > MOST_COLUMNS)
        return pl_error_set(reterr, PL_EFORMAT,
                            "the first record has %" PRId64 " fields: more than %d are not checked",
                            check->n_columns, MOST_COLUMNS);
    check->fields = calloc((size_t)check->n_columns, sizeof *check->fields);
    check->columns = calloc((size_t)check->n_columns, sizeof *check->columns);
    if (!check->fields || !check->columns)
        return pl_error_set(reterr, -ENOMEM, "no memory for the columns of '%s'",
                            check->file->path);
    return pl_csv_reader_seek(&check->reader, (pl_text_place){.line = 1}, reterr);
}

/* The reader's advice for a record that is too long is for callers who can set another limit. */
static int report_error(csv_check *check, pl_text_place place, const pl_error *why,
                        pl_error *reterr)
{
    if (why->code != -EMSGSIZE)
        return pl_verify_report_error(check->file, place.offset, why, reterr);
    pl_verify_report(check->file, PL_VERIFY_ERROR, place.offset,
                     "line %" PRIu64 ": the record does not end within %s, and a longer one is not "
                     "looked at: is a quote missing? If not, --jobs 1 looks at up to 16 MiB",
                     place.line, PL_SIZE(check->file->limit_bytes));
    return 0;
}

/* Returns 1 to go on, 0 at the end. A malformed record costs only itself. */
static int check_next(csv_check *check, pl_error *reterr)
{
    pl_text_place place = pl_csv_reader_tell(&check->reader);
    pl_error why = {0};
    int64_t n;
    int r = pl_csv_reader_next_fields(&check->reader, check->fields, check->n_columns, &n, &why);
    if (r > 0)
        check_record(check, place, n, pl_csv_reader_tell(&check->reader).offset - place.offset);
    if (r >= 0)
        return r;
    r = report_error(check, place, &why, reterr);
    return r < 0 ? r : 1;
}

static int check_all(csv_check *check, pl_error *reterr)
{
    pl_error why = {0};
    int r = count_columns(check, &why);
    if (r < 0)
        return report_error(check, (pl_text_place){.line = 1}, &why, reterr);
    while ((r = check_next(check, reterr)) > 0)
        if ((r = pl_verify_go_on(check->file, reterr)) < 0)
            break;
    if (r == 0 && check->columns && check->n_records < SAMPLE_RECORDS)
        end_sample(check);
    return r;
}

int pl_verify_csv(pl_verify_file *file, pl_error *reterr)
{
    const char *head = (const char *)file->head;
    pl_csv_format format = {.delimiter = pl_verify_delimiter(head, file->n_head)};
    pl_csv_options options = {
        .packing = PL_PACKING_AUTO, .limit_bytes = file->limit_bytes, .skip_empty_lines = true};
    csv_check check = {.file = file};
    pl_error why = {0};
    int r = pl_csv_reader_init(&check.reader, file->path, &format, &options, file->memory, &why);
    if (r < 0)
        return pl_verify_report_error(file, PL_VERIFY_NO_OFFSET, &why, reterr);
    r = check_all(&check, reterr);
    pl_csv_reader_done(&check.reader);
    free(check.fields);
    free(check.columns);
    return r;
}
