/* SPDX-License-Identifier: Apache-2.0 */
/* Splits records. Finds the bytes that can end a field (delimiter, line end, quote) 64 at a time:
 * one bit for each byte, and one instruction to find the next set bit. See csv.h. */
#include "codec/text/csv.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "codec/text/csv_marks.h"

/* A record being split. */
typedef struct scan {
    const pl_csv_format *format;
    pl_csv_marks marks;
    const char *begin, *end;
    bool is_last;
    pl_csv_record *record;
    pl_error *reterr;
} scan;

/* How a field ended. */
typedef enum stop {
    STOP_MORE,      /* the bytes end first */
    STOP_DELIMITER, /* another field follows */
    STOP_RECORD,    /* the record ended */
    STOP_BAD,
} stop;

int pl_csv_check(const pl_csv_format *format, pl_error *reterr)
{
    char d = format->delimiter;
    if (d == '"' || d == '\n' || d == '\r')
        return pl_error_set(reterr, -EINVAL, "a delimiter may be no quote and no line end");
    for (int i = 0; i < format->n_columns; i++) {
        pl_dtype dtype = format->columns[i].dtype;
        if (dtype != PL_I32 && dtype != PL_I64 && dtype != PL_F32 && dtype != PL_F64 &&
            dtype != PL_STRING)
            return pl_error_set(reterr, -EINVAL,
                                "column %d: a field can be int32, int64, float32, float64 or "
                                "string",
                                i + 1);
        if (!format->selected)
            continue;
        int64_t at = format->selected[i];
        if (at < 0 || at >= INT64_MAX || (i > 0 && at <= format->selected[i - 1]))
            return pl_error_set(reterr, -EINVAL,
                                "selected fields must ascend from 0: number %d is %" PRId64, i, at);
    }
    return 0;
}

/* ---- messages ---- */

/* Counts the lines that end between the record's beginning and `at`. */
static uint64_t lines_before(const char *begin, const char *at)
{
    uint64_t n = 0;
    for (const char *c = begin; c < at; c++)
        n += *c == '\n' || (*c == '\r' && (c + 1 == at || c[1] != '\n'));
    return n;
}

/* Reports an error at `at`. Returns STOP_BAD. */
static stop refuse(scan *s, const char *at, const char *what)
{
    const char *begin = s->begin;
    pl_error_set(s->reterr, PL_EFORMAT, "%s", what);
    pl_error_at_line(s->reterr, s->record->place.line + lines_before(begin, at),
                     s->record->place.offset + (uint64_t)(at - begin), s->record->n_fields + 1);
    return STOP_BAD;
}

/* ---- fields ---- */

/* Counts the field, and keeps it if it is selected. */
static inline void keep(scan *s, pl_csv_field field)
{
    pl_csv_record *record = s->record;
    const int64_t *selected = s->format->selected;
    if (record->n_kept < record->room &&
        (!selected || selected[record->n_kept] == record->n_fields))
        record->fields[record->n_kept++] = field;
    record->n_fields++;
}

/* Ends the record at a line end, or at the end of the file. A carriage return that is the last byte
 * of the window may be followed by a line feed. */
static inline stop end_record(scan *s, const char *at)
{
    pl_csv_record *record = s->record;
    if (at < s->end) {
        bool is_return = *at++ == '\r';
        if (is_return && at == s->end && !s->is_last)
            return STOP_MORE;
        at += is_return && at < s->end && *at == '\n';
        record->n_lines++;
    }
    record->taken = (size_t)(at - s->begin);
    return STOP_RECORD;
}

/* After an error, assumes that the record ends where its line does. */
static stop pass_over(scan *s, const char *at)
{
    for (;; at++) {
        at = pl_csv_marks_next(&s->marks, at);
        if (at == s->end && !s->is_last)
            return STOP_MORE;
        if (at == s->end || *at == '\n' || *at == '\r')
            return end_record(s, at) == STOP_MORE ? STOP_MORE : STOP_BAD;
    }
}

/* Takes a field that begins at *at, and moves *at past the byte that follows it. */
static inline stop take_plain(scan *s, const char **at)
{
    const char *begin = *at, *mark = pl_csv_marks_next(&s->marks, begin);
    if (mark == s->end && !s->is_last)
        return STOP_MORE;
    bool is_delimiter = mark < s->end && *mark == s->format->delimiter;
    if (!is_delimiter && mark < s->end && *mark == '"') {
        stop how = pass_over(s, mark + 1);
        return how == STOP_MORE
                   ? how
                   : refuse(s, mark, "a quote within a field that does not begin with one");
    }
    keep(s, (pl_csv_field){.at = begin, .n = (size_t)(mark - begin)});
    *at = mark + is_delimiter;
    return is_delimiter ? STOP_DELIMITER : end_record(s, mark);
}

/* Takes plain fields as long as another one follows: most fields. */
static inline const char *take_run(scan *s, const char *at)
{
    pl_csv_marks marks = s->marks;
    pl_csv_field *to = s->record->fields;
    const char delimiter = s->format->delimiter, quote = marks.quote;
    int64_t n = 0, room = s->record->room;
    for (; n < room; n++) {
        const char *mark = pl_csv_marks_next(&marks, at);
        if (mark == marks.end || *mark != delimiter || *at == quote)
            break;
        to[n] = (pl_csv_field){.at = at, .n = (size_t)(mark - at)};
        at = mark + 1;
    }
    if (at < marks.block) /* the next mark is beyond this block */
        pl_csv_marks_look(&marks, at);
    s->marks = marks;
    s->record->n_fields = s->record->n_kept = n;
    return at;
}

/* Returns the quote that closes the field that begins at `begin`; NULL: the bytes end first. Counts
 * the doubled quotes, and the lines. */
static const char *closing_quote(scan *s, const char *begin, size_t *ret_n_doubled)
{
    size_t n_doubled = 0;
    for (const char *at = begin;; at++) {
        at = pl_csv_marks_next(&s->marks, at);
        if (at == s->end)
            return NULL;
        bool at_end = at + 1 == s->end;
        if (*at == '\n' || (*at == '\r' && (at_end || at[1] != '\n')))
            s->record->n_lines++;
        if (*at != '"')
            continue;
        if (at_end && !s->is_last)
            return NULL;
        if (at_end || at[1] != '"') {
            *ret_n_doubled = n_doubled;
            return at;
        }
        n_doubled++;
        at++;
    }
}

static stop not_closed(scan *s, const char *quote)
{
    if (!s->is_last)
        return STOP_MORE;
    s->record->extent = (size_t)(s->end - s->begin);
    (void)pl_csv_give_up(s->begin, s->record->extent, true, s->record);
    return refuse(s, quote, "a quote that nothing closes before the end of the file");
}

static stop take_quoted(scan *s, const char **at)
{
    size_t n_doubled;
    const char *quote = *at, *close = closing_quote(s, quote + 1, &n_doubled);
    if (!close)
        return not_closed(s, quote);
    const char *next = close + 1;
    bool is_delimiter = next < s->end && *next == s->format->delimiter;
    if (next < s->end && !is_delimiter && *next != '\n' && *next != '\r') {
        stop how = pass_over(s, next);
        return how == STOP_MORE ? how
                                : refuse(s, close,
                                         "text behind a closing quote: a quote within a field that "
                                         "begins with one is written twice");
    }
    keep(s, (pl_csv_field){quote + 1, (size_t)(close - quote - 1), n_doubled});
    *at = next + is_delimiter;
    return is_delimiter ? STOP_DELIMITER : end_record(s, next);
}

/* ---- records ---- */

static stop split_one(scan *s, const char *at)
{
    stop how = STOP_DELIMITER;
    bool quotes = !s->format->plain_quotes;
    if (!s->format->selected)
        at = take_run(s, at);
    while (how == STOP_DELIMITER) {
        if (at == s->end && !s->is_last)
            return STOP_MORE;
        bool quoted = quotes && at < s->end && *at == '"';
        how = quoted ? take_quoted(s, &at) : take_plain(s, &at);
    }
    return how;
}

static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

int pl_csv_split(const pl_csv_format *format, const char *bytes, size_t n, bool is_last,
                 pl_csv_record *record, pl_error *reterr)
{
    scan s = {format, {0}, bytes, bytes + n, is_last, record, reterr};
    record->begin = bytes;
    record->n_fields = record->n_kept = 0;
    record->n_lines = 0;
    record->taken = 0;
    if (n == 0)
        return 0;
    record->is_empty = is_line_end(*bytes);
    pl_csv_marks_begin(&s.marks, bytes, s.end, format->delimiter, !format->plain_quotes);
    record->extent = 0;
    stop how = split_one(&s, bytes);
    if (record->extent == 0)
        record->extent = record->taken;
    return how == STOP_MORE ? 0 : how == STOP_RECORD ? 1 : PL_EFORMAT;
}

bool pl_csv_give_up(const char *bytes, size_t n, bool is_last, pl_csv_record *record)
{
    const char *end = bytes + n, *at = bytes;
    while (at < end && !is_line_end(*at))
        at++;
    if (!is_last && (at == end || (*at == '\r' && at + 1 == end)))
        return false;
    record->n_lines = at < end;
    at += at + 1 < end && at[0] == '\r' && at[1] == '\n';
    at += at < end;
    record->taken = (size_t)(at - bytes);
    return true;
}

void pl_csv_text_copy(const pl_csv_field *text, char *to)
{
    const char *at = text->at, *end = at + text->n;
    for (size_t left = text->n_doubled; left > 0; left--) {
        const char *quote = memchr(at, '"', (size_t)(end - at));
        to = mempcpy(to, at, (size_t)(quote + 1 - at));
        at = quote + 2;
    }
    if (at < end)
        memcpy(to, at, (size_t)(end - at));
}
