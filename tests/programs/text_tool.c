/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines, CSV, tar files and samples, for tests/kernels. One command a line on stdin, one
 * answer a line on stdout: "ok N", where N is how many items and errors OUT has, or "refused CODE
 * why" if nothing could be. PATH@N is the first N bytes of a file; one
 * that is packed with gzip is unpacked. OUT gets what was read: lines
 * WINDOW LIMIT PATH OUT fields WINDOW LIMIT FLAGS DELIMITER PATH OUT csv WINDOW LIMIT FLAGS
 * DELIMITER NA COLUMNS SELECTED PATH OUT tar WINDOW PATH OUT samples WANTED PATH OUT utf8 PATH says
 * how many bytes are valid, and whether the next are cut off FLAGS are of h (header), e (skip empty
 * lines), q (quotes are plain), or "-"; DELIMITER is a number; NA is in hexadecimal or "-"; COLUMNS
 * are i l f d s with ":DEFAULT" (a number's bits, a string's bytes, in hexadecimal) or none, and
 * commas; SELECTED and WANTED have commas, or are "-".
 *
 * In OUT, "item A B" begins what was read at A (its offset) and B (its line), "bytes N" is followed
 * by N bytes and a line feed, "bits X" is a number, "bad CODE A B MESSAGE" is an error. Each reader
 * begins again halfway, at the place that it told: both halves must be as one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec/text/utf8.h"
#include "data/reader/csv_reader.h"
#include "data/reader/sample_reader.h"
#include "data/reader/text_reader.h"

enum { ITEMS_MAX = 64 };

static char *words[12];
static int n_words;
static pl_error error;
static pl_memory *memory;
static FILE *out;
static int n_put; /* items and errors in OUT */

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "text_tool: %s\n", what);
    exit(1);
}

/* PATH, or the file that PATH@N asks for. */
static const char *path_of(char *word)
{
    static char path[4096];
    char *mark = strchr(word, '@');
    if (!mark)
        return word;
    *mark = '\0';
    size_t n = strtoul(mark + 1, NULL, 10);
    char *bytes = malloc(n + 1);
    FILE *from = fopen(word, "rb");
    check(bytes && from && fread(bytes, 1, n, from) == n, "cannot cut a file");
    fclose(from);
    snprintf(path, sizeof path, "%s.cut", word);
    FILE *to = fopen(path, "wb");
    check(to && fwrite(bytes, 1, n, to) == n && fclose(to) == 0, "cannot write a file");
    free(bytes);
    return path;
}

static void put_item(uint64_t a, uint64_t b)
{
    n_put++;
    fprintf(out, "item %" PRIu64 " %" PRIu64 "\n", a, b);
}

static void put_bytes(const void *bytes, size_t n)
{
    fprintf(out, "bytes %zu\n", n);
    fwrite(bytes, 1, n, out);
    fputc('\n', out);
}

static void put_bad(int r, uint64_t a, uint64_t b)
{
    check(error.code == r && error.message[0], "a failure without its message");
    n_put++;
    fprintf(out, "bad %d %" PRIu64 " %" PRIu64 " %s\n", r, a, b, error.message);
    error = (pl_error){0};
}

/* Is it an error of one item, behind which reading goes on? */
static bool goes_on(int r)
{
    return r == PL_EFORMAT || r == -EMSGSIZE || r == -ENOTSUP || r == PL_ECORRUPT;
}

static int do_lines(void)
{
    pl_text_reader reader;
    pl_text_options options = {PL_PACKING_AUTO, strtoul(words[1], NULL, 10),
                               strtoul(words[2], NULL, 10)};
    const char *path = path_of(words[3]);
    int r = pl_text_reader_init(&reader, path, &options, memory, &error);
    if (r < 0)
        return r;
    out = fopen(words[4], "wb");
    for (int n = 0;; n++) {
        pl_string line;
        pl_text_place place = pl_text_reader_tell(&reader), told;
        if (n % 3 == 1 && r != PL_ECORRUPT) { /* as after a checkpoint */
            pl_text_reader_done(&reader);
            check(pl_text_reader_init(&reader, path, &options, memory, NULL) == 0 &&
                      pl_text_reader_seek(&reader, place, NULL) == 0,
                  "cannot go on");
        }
        r = pl_text_reader_next(&reader, &line, &told, &error);
        if (r < 0)
            put_bad(r, place.offset, place.line);
        if (r == 0 || (r < 0 && !goes_on(r)))
            break;
        if (r < 0)
            continue;
        check(told.offset == place.offset && told.line == place.line, "two places of one line");
        put_item(told.offset, told.line);
        put_bytes(line.data, line.n);
    }
    pl_text_reader_done(&reader);
    fclose(out);
    return 0;
}

/* ---- CSV ---- */

static size_t from_hex(const char *hex, char *to)
{
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        check(sscanf(hex + 2 * i, "%2x", &byte) == 1, "a bad command");
        to[i] = (char)byte;
    }
    return n;
}

static void put_text(const pl_csv_field *text)
{
    size_t n = pl_csv_text_bytes(text);
    char *bytes = malloc(n + 1);
    pl_csv_text_copy(text, bytes);
    put_bytes(bytes, n);
    free(bytes);
}

static pl_csv_options options_of(void)
{
    return (pl_csv_options){.packing = PL_PACKING_AUTO,
                            .window_bytes = strtoul(words[1], NULL, 10),
                            .limit_bytes = strtoul(words[2], NULL, 10),
                            .header = strchr(words[3], 'h') != NULL,
                            .skip_empty_lines = strchr(words[3], 'e') != NULL};
}

static int do_fields(void)
{
    pl_csv_field fields[ITEMS_MAX];
    pl_csv_options options = options_of();
    pl_csv_format format = {.delimiter = (char)atoi(words[4]),
                            .plain_quotes = strchr(words[3], 'q') != NULL};
    pl_csv_reader reader;
    int r = pl_csv_reader_init(&reader, path_of(words[5]), &format, &options, memory, &error);
    if (r < 0)
        return r;
    out = fopen(words[6], "wb");
    for (;;) {
        int64_t n_fields;
        pl_text_place place = pl_csv_reader_tell(&reader);
        r = pl_csv_reader_next_fields(&reader, fields, ITEMS_MAX, &n_fields, &error);
        if (r < 0)
            put_bad(r, place.offset, place.line);
        if (r == 0 || (r < 0 && !goes_on(r)))
            break;
        if (r < 0)
            continue;
        put_item(place.offset, place.line);
        for (int64_t i = 0; i < n_fields && i < ITEMS_MAX; i++)
            put_text(&fields[i]);
    }
    pl_csv_reader_done(&reader);
    fclose(out);
    return 0;
}

static pl_csv_column column_of(char *word)
{
    static const pl_dtype dtypes[128] = {
        ['i'] = PL_I32, ['l'] = PL_I64, ['f'] = PL_F32, ['d'] = PL_F64, ['s'] = PL_STRING};
    pl_csv_column column = {.dtype = dtypes[(unsigned char)*word], .required = word[1] != ':'};
    if (column.required)
        return column;
    column.bits = strtoull(word + 2, NULL, 16);
    if (column.dtype == PL_STRING) {
        char *text = malloc(strlen(word));
        column.text = (pl_string){text, from_hex(word + 2, text)};
    }
    return column;
}

static void put_values(const pl_csv_format *format, const pl_csv_value *values)
{
    for (int i = 0; i < format->n_columns; i++)
        if (format->columns[i].dtype == PL_STRING)
            put_text(&values[i].text);
        else
            fprintf(out, "bits %" PRIx64 "\n", values[i].bits);
}

static int read_csv(pl_csv_reader *reader, const char *path, const pl_csv_format *format,
                    const pl_csv_options *options)
{
    pl_csv_value values[ITEMS_MAX];
    for (int n = 0, r = 0;; n++) {
        pl_text_place before = pl_csv_reader_tell(reader), place = {0};
        if (n % 3 == 1 && r != PL_ECORRUPT) { /* as after a checkpoint */
            pl_csv_reader_done(reader);
            check(pl_csv_reader_init(reader, path, format, options, memory, NULL) == 0 &&
                      pl_csv_reader_seek(reader, before, NULL) == 0,
                  "cannot go on");
        }
        r = pl_csv_reader_next(reader, values, &place, &error);
        if (r < 0)
            put_bad(r, place.offset, place.line);
        if (r == 0 || (r < 0 && !goes_on(r)))
            return 0;
        if (r < 0)
            continue;
        put_item(place.offset, place.line);
        put_values(format, values);
    }
}

static int do_csv(void)
{
    pl_csv_column columns[ITEMS_MAX];
    int64_t selected[ITEMS_MAX];
    char na[256];
    pl_csv_format format = {.delimiter = (char)atoi(words[4]),
                            .plain_quotes = strchr(words[3], 'q') != NULL,
                            .columns = columns};
    if (strcmp(words[5], "-") != 0)
        format.na_value = (pl_string){na, from_hex(words[5], na)};
    for (char *word = strtok(words[6], ","); word; word = strtok(NULL, ","))
        columns[format.n_columns++] = column_of(word);
    if (strcmp(words[7], "-") != 0) {
        int n = 0;
        for (char *word = strtok(words[7], ","); word; word = strtok(NULL, ","))
            selected[n++] = atoll(word);
        format.selected = selected;
    }
    pl_csv_options options = options_of();
    pl_csv_reader reader;
    const char *path = path_of(words[8]);
    int r = pl_csv_reader_init(&reader, path, &format, &options, memory, &error);
    if (r == 0) {
        out = fopen(words[9], "wb");
        r = read_csv(&reader, path, &format, &options);
        fclose(out);
        pl_csv_reader_done(&reader);
    }
    for (int i = 0; i < format.n_columns; i++)
        free((void *)columns[i].text.data);
    return r;
}

/* ---- tar ---- */

static int do_tar(void)
{
    pl_tar_reader reader;
    uint64_t window = strtoul(words[1], NULL, 10);
    const char *path = path_of(words[2]);
    int r = pl_tar_reader_init(&reader, path, PL_PACKING_AUTO, window, memory, &error);
    if (r < 0)
        return r;
    out = fopen(words[3], "wb");
    for (int n = 0;; n++) {
        pl_tar_entry entry;
        r = pl_tar_reader_next(&reader, &entry, &error);
        if (r < 0)
            put_bad(r, 0, 0);
        if (r == 0 || (r < 0 && !goes_on(r)))
            break;
        if (r < 0)
            continue;
        put_item(entry.offset, (unsigned char)entry.type);
        put_bytes(entry.name, entry.n_name);
        char *data = malloc(entry.data_bytes + 1);
        if (entry.is_file && n % 4 != 3) {
            r = pl_tar_reader_read(&reader, data, &error);
            if (r < 0)
                put_bad(r, 0, 0);
            else
                put_bytes(data, entry.data_bytes);
        }
        free(data);
        if (n % 3 == 1 && r > -1) {
            uint64_t place = pl_tar_reader_tell(&reader);
            pl_tar_reader_done(&reader);
            check(pl_tar_reader_init(&reader, path, PL_PACKING_AUTO, window, memory, NULL) == 0,
                  "cannot go on");
            if (pl_tar_reader_seek(&reader, place, &error) < 0) {
                put_bad(error.code, 0, 0);
                break;
            }
        }
    }
    pl_tar_reader_done(&reader);
    fclose(out);
    return 0;
}

static int do_samples(void)
{
    const char *wanted[ITEMS_MAX];
    int n_wanted = 0;
    bool all = strcmp(words[1], "-") == 0;
    for (char *word = strtok(words[1], ","); word; word = strtok(NULL, ","))
        wanted[n_wanted++] = word;
    pl_sample_reader *reader;
    int r = pl_sample_reader_new(path_of(words[2]), PL_PACKING_AUTO, all ? NULL : wanted, n_wanted,
                                 memory, &reader, &error);
    if (r < 0)
        return r;
    out = fopen(words[3], "wb");
    for (;;) {
        pl_sample sample;
        uint64_t offset;
        r = pl_sample_reader_next(reader, &sample, &offset, &error);
        if (r < 0)
            put_bad(r, offset, 0);
        if (r == 0 || (r < 0 && !goes_on(r)))
            break;
        if (r < 0)
            continue;
        put_item(sample.offset, (uint64_t)sample.n_parts);
        put_bytes(sample.key, strlen(sample.key));
        for (int i = 0; i < sample.n_parts; i++) {
            put_bytes(sample.parts[i].extension, strlen(sample.parts[i].extension));
            put_bytes(sample.parts[i].data, sample.parts[i].data_bytes);
        }
    }
    pl_sample_reader_free(reader);
    fclose(out);
    return 0;
}

static void do_utf8(void)
{
    static char bytes[1 << 16];
    FILE *file = fopen(words[1], "rb");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    char *exact = malloc(n ? n : 1);
    memcpy(exact, bytes, n);
    bool cut;
    size_t valid = pl_utf8_valid_bytes(exact, n, &cut);
    printf("ok %zu %d\n", valid, cut);
    free(exact);
}

static void obey(char *line)
{
    n_words = 0;
    for (char *word = strtok(line, " \n"); word && n_words < 12; word = strtok(NULL, " \n"))
        words[n_words++] = word;
    if (strcmp(words[0], "utf8") == 0) {
        do_utf8();
        return;
    }
    n_put = 0;
    int r = strcmp(words[0], "lines") == 0     ? do_lines()
            : strcmp(words[0], "fields") == 0  ? do_fields()
            : strcmp(words[0], "csv") == 0     ? do_csv()
            : strcmp(words[0], "tar") == 0     ? do_tar()
            : strcmp(words[0], "samples") == 0 ? do_samples()
                                               : -EINVAL;
    if (r < 0)
        printf("refused %d %s\n", r, error.message);
    else
        printf("ok %d\n", n_put);
    check(pl_memory_claimed_bytes(memory) == 0, "memory was not given back");
}

int main(void)
{
    static char line[65536];
    check(pl_memory_new(&(pl_memory_options){.cap_bytes = 64 << 20}, &memory, &error) == 0,
          error.message);
    while (fgets(line, sizeof line, stdin))
        obey(line);
    pl_memory_unref(memory);
    return 0;
}
