/* SPDX-License-Identifier: Apache-2.0 */
/* See text_reader.h. */
#include "data/reader/text_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/size.h"

int pl_text_reader_init(pl_text_reader *reader, const char *path, const pl_text_options *options,
                        pl_memory *memory, pl_error *reterr)
{
    static const pl_text_options usual = {0};
    const pl_text_options *o = options ? options : &usual;
    pl_text_reader made = {.limit_bytes = o->limit_bytes ? o->limit_bytes : PL_TEXT_LIMIT_BYTES,
                           .line = 1};
    int r = pl_file_window_init(&made.window, path, o->packing, o->window_bytes, memory, reterr);
    if (r == 0)
        *reader = made;
    return r;
}

void pl_text_reader_done(pl_text_reader *reader)
{
    pl_file_window_done(&reader->window);
}

/* Skips everything up to the end of the line, or of the file. */
static int pass_over(pl_text_reader *reader, pl_error *reterr)
{
    pl_file_window *window = &reader->window;
    const char *feed;
    while (!(feed = memchr(window->at, '\n', window->n)) && !window->is_last) {
        pl_file_window_take(window, window->n);
        int r = pl_file_window_more(window, 1, reterr);
        if (r < 0)
            return r;
    }
    pl_file_window_take(window, feed ? (size_t)(feed + 1 - window->at) : window->n);
    reader->line++;
    return 0;
}

static int locate(const pl_text_reader *reader, pl_text_place place, pl_error *reterr, int code)
{
    pl_error_in_file(reterr, pl_file_window_path(&reader->window));
    pl_error_at_line(reterr, place.line, place.offset, -1);
    return code;
}

/* Skips a line that there is no room for, like one that is too long. */
static PL_COLD int refuse_large(pl_text_reader *reader, const pl_error *why, pl_error *reterr)
{
    pl_text_place place = pl_text_reader_tell(reader);
    int r = pass_over(reader, reterr);
    if (r < 0)
        return r;
    pl_error_set(reterr, why->code, "%s", pl_error_reason(why));
    return locate(reader, place, reterr, why->code);
}

static PL_COLD int refuse_long(pl_text_reader *reader, pl_error *reterr)
{
    pl_text_place place = pl_text_reader_tell(reader);
    int r = pass_over(reader, reterr);
    if (r < 0)
        return r;
    pl_error_set(reterr, -EMSGSIZE,
                 "the line is longer than %s: is it text? If so, raise the limit",
                 PL_SIZE(reader->limit_bytes));
    return locate(reader, place, reterr, -EMSGSIZE);
}

int pl_text_reader_next(pl_text_reader *reader, pl_string *ret_line, pl_text_place *ret_place,
                        pl_error *reterr)
{
    pl_file_window *window = &reader->window;
    pl_line line;
    while (!pl_line_next(window->at, window->n, window->is_last, &line)) {
        if (window->is_last)
            return 0;
        if (window->n > reader->limit_bytes + 1) /* a carriage return may not be part of it */
            return refuse_long(reader, reterr);
        pl_error why = {0};
        int r = pl_file_window_more(window, window->n + 1, &why);
        if (r == PL_EBUDGET)
            return refuse_large(reader, &why, reterr);
        if (r < 0)
            return pl_error_move(reterr, &why);
    }
    if (line.n > reader->limit_bytes)
        return refuse_long(reader, reterr);
    *ret_line = (pl_string){window->at, line.n};
    *ret_place = (pl_text_place){window->offset, reader->line++};
    pl_file_window_take(window, line.taken);
    return 1;
}

pl_text_place pl_text_reader_tell(const pl_text_reader *reader)
{
    return (pl_text_place){reader->window.offset, reader->line};
}

int pl_text_reader_seek(pl_text_reader *reader, pl_text_place place, pl_error *reterr)
{
    int r = pl_file_window_seek(&reader->window, place.offset, reterr);
    if (r == 0)
        reader->line = place.line;
    return r;
}
