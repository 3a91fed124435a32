/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that text is UTF-8, and finds where it stops being so. */
#include <inttypes.h>
#include <string.h>

#include "codec/text/utf8.h"
#include "data/reader/text_reader.h"
#include "verify/file.h"

static uint64_t count_feeds(const char *bytes, size_t n)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += bytes[i] == '\n';
    return count;
}

static const char *hint(const pl_verify_file *file)
{
    const uint8_t *head = file->head;
    bool wide = file->n_head >= 2 &&
                ((head[0] == 0xff && head[1] == 0xfe) || (head[0] == 0xfe && head[1] == 0xff));
    return wide ? "; it begins as UTF-16 does: iconv -f UTF-16 -t UTF-8" : "";
}

static void report(pl_verify_file *file, uint64_t offset, uint64_t line, uint64_t column,
                   const char *at, bool cut)
{
    pl_verify_report(file, PL_VERIFY_ERROR, offset,
                     "line %" PRIu64 ", byte %" PRIu64 " of it: 0x%02x %s%s", line, column,
                     (uint8_t)*at, cut ? "begins a character that is cut off" : "is not UTF-8 here",
                     hint(file));
}

typedef struct place {
    uint64_t offset, line, line_begins;
} place;

/* Moves the place past the `n` bytes at `bytes`. */
static void move_on(place *p, const char *bytes, size_t n)
{
    const char *last = memrchr(bytes, '\n', n);
    p->line += count_feeds(bytes, n);
    if (last)
        p->line_begins = p->offset + (uint64_t)(last - bytes) + 1;
    p->offset += n;
}

/* Returns false, after reporting it, at the first bad sequence. *ret_n bytes were good. */
static bool check_piece(pl_verify_file *file, place *p, const char *bytes, size_t n, bool is_last,
                        size_t *ret_n)
{
    bool cut = false;
    size_t good = pl_utf8_valid_bytes(bytes, n, &cut);
    *ret_n = good;
    if (good == n || (cut && !is_last))
        return true;
    move_on(p, bytes, good);
    report(file, p->offset, p->line, p->offset - p->line_begins + 1, bytes + good, cut);
    return false;
}

static int check_window(pl_verify_file *file, pl_file_window *window, pl_error *reterr)
{
    place p = {.line = 1};
    size_t n;
    for (int r = 0;;) {
        if (r == 0)
            r = pl_file_window_more(window, window->n + 1, reterr);
        if (r == 0)
            r = pl_verify_go_on(file, reterr);
        if (r < 0 || window->n == 0)
            return r;
        if (!check_piece(file, &p, window->at, window->n, window->is_last, &n))
            return 0;
        move_on(&p, window->at, n);
        pl_file_window_take(window, n);
        if (window->is_last)
            return 0;
    }
}

/* Measures the lengths of lines, for a plan. */
static int measure_lines(pl_verify_file *file, pl_error *reterr)
{
    pl_text_reader reader;
    pl_text_options options = {.packing = PL_PACKING_AUTO};
    pl_text_place where;
    pl_string line;
    int r = pl_text_reader_init(&reader, file->path, &options, file->memory, reterr);
    if (r < 0)
        return r;
    while ((r = pl_text_reader_next(&reader, &line, &where, reterr)) > 0 &&
           (r = pl_verify_go_on(file, reterr)) == 0)
        pl_verify_count(file, line.n);
    pl_text_reader_done(&reader);
    return r;
}

static int check_stream(pl_verify_file *file, pl_error *reterr)
{
    pl_file_window window;
    int r = pl_file_window_init(&window, file->path, PL_PACKING_AUTO, 0, file->memory, reterr);
    if (r < 0)
        return r;
    r = check_window(file, &window, reterr);
    pl_file_window_done(&window);
    return r;
}

int pl_verify_text(pl_verify_file *file, pl_error *reterr)
{
    if (!file->want_size_only && file->is_whole && !file->is_packed) {
        size_t n;
        check_piece(file, &(place){.line = 1}, (const char *)file->head, file->n_head, true, &n);
        return 0;
    }
    pl_error why = {0};
    int r = file->want_size_only ? measure_lines(file, &why) : check_stream(file, &why);
    return r < 0 ? pl_verify_report_error(file, PL_VERIFY_NO_OFFSET, &why, reterr) : 0;
}
