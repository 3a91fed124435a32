/* SPDX-License-Identifier: Apache-2.0 */
/* See csv_reader.h. */
#include "data/reader/csv_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/size.h"
#include "codec/text/utf8.h"
#include "data/reader/text_reader.h"

int pl_csv_reader_init(pl_csv_reader *reader, const char *path, const pl_csv_format *format,
                       const pl_csv_options *options, pl_memory *memory, pl_error *reterr)
{
    pl_csv_reader made = {.format = format, .line = 1};
    int r = pl_csv_check(format, reterr);
    if (r < 0)
        return r;
    if (options)
        made.options = *options;
    if (made.options.limit_bytes == 0)
        made.options.limit_bytes = PL_TEXT_LIMIT_BYTES;
    made.fields = calloc((size_t)format->n_columns + 1, sizeof *made.fields);
    if (!made.fields)
        return pl_error_set(reterr, -ENOMEM, "no memory to read '%s'", path);
    r = pl_file_window_init(&made.window, path, made.options.packing, made.options.window_bytes,
                            memory, reterr);
    if (r < 0) {
        free(made.fields);
        return r;
    }
    made.window.most_bytes = pl_add_sat_u64(made.options.limit_bytes, 1); /* one more: too long */
    *reader = made;
    return 0;
}

void pl_csv_reader_done(pl_csv_reader *reader)
{
    free(PL_TAKE(reader->fields));
    pl_file_window_done(&reader->window);
}

static void pass(pl_csv_reader *reader, const pl_csv_record *record)
{
    pl_file_window_take(&reader->window, record->taken);
    reader->line += record->n_lines;
}

/* Handles a record that does not end within the limit: continues after its first line. */
static PL_COLD int give_up(pl_csv_reader *reader, pl_csv_record *record, pl_error *reterr)
{
    pl_file_window *window = &reader->window;
    while (!pl_csv_give_up(window->at, window->n, window->is_last, record)) {
        /* All but one byte, which may be the first of a two-byte line end. */
        pl_file_window_take(window, window->n - 1);
        int r = pl_file_window_more(window, 2, reterr);
        if (r < 0)
            return r;
    }
    pass(reader, record);
    return 0;
}

static int locate(const pl_csv_reader *reader, pl_text_place place, pl_error *reterr, int code)
{
    pl_error_in_file(reterr, pl_file_window_path(&reader->window));
    pl_error_at_line(reterr, place.line, place.offset, -1);
    return code;
}

static PL_COLD int refuse_long(pl_csv_reader *reader, pl_csv_record *record, pl_error *reterr)
{
    pl_text_place place = pl_csv_reader_tell(reader);
    int r = give_up(reader, record, reterr);
    if (r < 0)
        return r;
    pl_error_set(reterr, -EMSGSIZE,
                 "the record does not end within %s: is a quote missing? If not, raise the limit",
                 PL_SIZE(reader->options.limit_bytes));
    return locate(reader, place, reterr, -EMSGSIZE);
}

static PL_COLD int refuse_large(pl_csv_reader *reader, pl_csv_record *record, const pl_error *why,
                                pl_error *reterr)
{
    pl_text_place place = pl_csv_reader_tell(reader);
    int r = give_up(reader, record, reterr);
    if (r < 0)
        return r;
    pl_error_set(reterr, why->code, "%s", pl_error_reason(why));
    return locate(reader, place, reterr, why->code);
}

/* Splits the next record: 1, 0 or negative, with the file added to the error. */
static int split_next(pl_csv_reader *reader, const pl_csv_format *format, pl_csv_record *record,
                      pl_error *reterr)
{
    pl_file_window *window = &reader->window;
    for (;;) {
        pl_error why;
        pl_error_init(&why); /* once for each record */
        record->place = pl_csv_reader_tell(reader);
        int r = pl_csv_split(format, window->at, window->n, window->is_last, record, &why);
        bool too_long = (r == 0 ? window->n : record->extent) > reader->options.limit_bytes;
        if (r == 0 && window->is_last)
            return 0;
        if (too_long)
            return refuse_long(reader, record, reterr);
        if (r == 0) {
            r = pl_file_window_more(window, window->n + 1, &why);
            if (r == PL_EBUDGET)
                return refuse_large(reader, record, &why, reterr);
            if (r < 0)
                return pl_error_move(reterr, &why);
            continue;
        }
        pass(reader, record);
        if (r > 0 && record->is_empty && reader->options.skip_empty_lines)
            continue;
        if (r < 0) {
            pl_error_in_file(&why, pl_file_window_path(window));
            pl_error_move(reterr, &why);
        }
        return r;
    }
}

static int pass_mark(pl_csv_reader *reader, pl_error *reterr)
{
    pl_file_window *window = &reader->window;
    if (window->offset > 0)
        return 0;
    int r = pl_file_window_more(window, 3, reterr);
    if (r == 0)
        pl_file_window_take(window, pl_utf8_mark_bytes(window->at, window->n));
    return r;
}

/* Skips everything before the first data record. Reports a malformed header, and skips it. */
static int begin(pl_csv_reader *reader, pl_error *reterr)
{
    pl_csv_record header = {.fields = reader->fields};
    int r = pass_mark(reader, reterr);
    if (r < 0)
        return r;
    if (reader->options.header)
        r = split_next(reader, reader->format, &header, reterr);
    reader->begun = true;
    return r < 0 ? r : 0;
}

int pl_csv_reader_next(pl_csv_reader *reader, pl_csv_value *values, pl_text_place *ret_place,
                       pl_error *reterr)
{
    pl_csv_record record = {.fields = reader->fields, .room = reader->format->n_columns};
    if (PL_UNLIKELY(!reader->begun)) {
        *ret_place = pl_csv_reader_tell(reader);
        int r = begin(reader, reterr);
        if (r < 0)
            return r;
    }
    int r = split_next(reader, reader->format, &record, reterr);
    *ret_place = record.place;
    if (r <= 0)
        return r;
    r = pl_csv_convert(reader->format, &record, values, reterr);
    if (r < 0)
        pl_error_in_file(reterr, pl_file_window_path(&reader->window));
    return r < 0 ? r : 1;
}

int pl_csv_reader_next_fields(pl_csv_reader *reader, pl_csv_field *fields, int64_t room,
                              int64_t *ret_n, pl_error *reterr)
{
    pl_csv_format all = *reader->format;
    pl_csv_record record = {.fields = fields, .room = room};
    all.selected = NULL;
    int r = reader->begun ? 0 : pass_mark(reader, reterr);
    reader->begun |= r == 0;
    if (r == 0)
        r = split_next(reader, &all, &record, reterr);
    if (r > 0)
        *ret_n = record.n_fields;
    return r;
}

pl_text_place pl_csv_reader_tell(const pl_csv_reader *reader)
{
    return (pl_text_place){reader->window.offset, reader->line};
}

int pl_csv_reader_seek(pl_csv_reader *reader, pl_text_place place, pl_error *reterr)
{
    int r = pl_file_window_seek(&reader->window, place.offset, reterr);
    if (r < 0)
        return r;
    reader->line = place.line;
    reader->begun = place.offset > 0;
    return 0;
}
