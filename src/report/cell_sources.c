/* SPDX-License-Identifier: Apache-2.0 */
/* See cell_sources.h. Every useful line is kept as jansson parsed it, indexed by the file that it
 * names and by its cell's id. */
#include "report/cell_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/cell.h"
#include "report/json.h"
#include "report/json_file.h"
#include "supervise/run_record.h"

/* END_BYTES are read from each end of a large file. A line may be long: a source of 64 KiB with
 * every byte escaped is 384 KiB. */
enum { END_BYTES = 16 << 20, MAX_LINE_BYTES = 1 << 20, MAX_FILES = 1 << 16 };

struct pl_cell_sources {
    const struct pl_ledger *ledger;
    json_t *by_file; /* tail of the name -> its line, with the last number and the source */
    json_t *by_id;   /* end of a cell's id -> the line of its last run */
    bool failed;     /* no memory */
};

/* Returns the part of a file name that a frame keeps: its tail, in whole characters. */
static const char *kept_tail(const char *file)
{
    size_t room = sizeof((pl_python_frame *)NULL)->file - 1, n = strlen(file);
    if (n <= room)
        return file;
    file += n - room;
    while (((unsigned char)*file & 0xc0) == 0x80)
        file++;
    return file;
}

/* Returns the part of an id that the ledger keeps, as valid UTF-8. */
static void kept_id(const char *id, char kept[sizeof((pl_cell *)NULL)->id])
{
    size_t room = sizeof((pl_cell *)NULL)->id;
    pl_json_clean(pl_cell_kept_id(id), room - 1, kept, room);
}

static void set(pl_cell_sources *cells, json_t *object, const char *key, json_t *value)
{
    if (json_object_set(object, key, value) < 0)
        cells->failed = true;
}

static void add(pl_cell_sources *cells, json_t *line)
{
    const char *file = json_string_value(json_object_get(line, "file"));
    const char *id = json_string_value(json_object_get(line, "id"));
    json_int_t number = json_integer_value(json_object_get(line, "number"));
    if (file == NULL || number < 1 || number > UINT32_MAX)
        return;
    json_t *known = json_object_get(cells->by_file, kept_tail(file));
    if (known == NULL && json_object_size(cells->by_file) >= MAX_FILES)
        return;
    if (known == NULL) {
        set(cells, cells->by_file, kept_tail(file), line);
    } else {
        set(cells, known, "number", json_object_get(line, "number"));
        if (json_is_string(json_object_get(line, "source")))
            set(cells, known, "source", json_object_get(line, "source"));
        line = known;
    }
    char key[sizeof((pl_cell *)NULL)->id];
    kept_id(id != NULL ? id : "", key);
    if (key[0] != '\0')
        set(cells, cells->by_id, key, line);
}

static void parse_line(pl_cell_sources *cells, const char *text, size_t n)
{
    if (n == 0 || n > MAX_LINE_BYTES)
        return;
    json_t *line = NULL;
    int r = pl_json_file_parse(text, n, &line, NULL);
    if (r == 0)
        add(cells, line);
    else if (r == -ENOMEM)
        cells->failed = true;
    json_decref(line);
}

/* Only whole lines count: text after the last newline is still being written, or was torn. A part
 * of the file may begin inside a line; its first piece does not parse as an object and is
 * skipped. */
static void parse(pl_cell_sources *cells, const char *text, size_t n)
{
    const char *end = text + n, *line = text, *newline;
    while (line < end && !cells->failed &&
           (newline = memchr(line, '\n', (size_t)(end - line))) != NULL) {
        parse_line(cells, line, (size_t)(newline - line));
        line = newline + 1;
    }
}

static int parse_part(pl_cell_sources *cells, int fd, off_t from, size_t n)
{
    char *text = malloc(n);
    if (text == NULL)
        return -ENOMEM;
    size_t n_read = 0;
    ssize_t got;
    while (n_read < n && (got = pread(fd, text + n_read, n - n_read, from + (off_t)n_read)) > 0)
        n_read += (size_t)got;
    parse(cells, text, n_read);
    free(text);
    return cells->failed ? -ENOMEM : 0;
}

static int parse_file(pl_cell_sources *cells, int fd, off_t file_bytes)
{
    off_t head = file_bytes <= 2 * (off_t)END_BYTES ? file_bytes : END_BYTES;
    int r = head > 0 ? parse_part(cells, fd, 0, (size_t)head) : 0;
    if (r == 0 && head < file_bytes)
        r = parse_part(cells, fd, file_bytes - END_BYTES, END_BYTES);
    return r;
}

static int read_sources(pl_cell_sources *cells, const char *record_directory)
{
    char path[PATH_MAX];
    if (pl_run_record_path(record_directory, PL_RECORD_CELLS, path) < 0)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    struct stat st;
    int r = 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        r = parse_file(cells, fd, st.st_size);
    close(fd);
    return r;
}

int pl_cell_sources_load(const struct pl_ledger *ledger, const char *record_directory,
                         pl_cell_sources **ret_cells)
{
    pl_cell_sources *cells = calloc(1, sizeof(*cells));
    if (cells == NULL)
        return -ENOMEM;
    cells->ledger = ledger;
    cells->by_file = json_object();
    cells->by_id = json_object();
    int r = cells->by_file != NULL && cells->by_id != NULL ? read_sources(cells, record_directory)
                                                           : -ENOMEM;
    if (r == 0)
        *ret_cells = PL_TAKE(cells);
    pl_cell_sources_free(cells);
    return r;
}

void pl_cell_sources_free(pl_cell_sources *cells)
{
    if (cells == NULL)
        return;
    json_decref(cells->by_file);
    json_decref(cells->by_id);
    free(cells);
}

uint32_t pl_cell_sources_number(const pl_cell_sources *cells, const char *file)
{
    if (cells == NULL || file[0] == '\0')
        return 0;
    const json_t *known = json_object_get(cells->by_file, kept_tail(file));
    if (known != NULL)
        return (uint32_t)json_integer_value(json_object_get(known, "number"));
    return pl_cell_number_of(cells->ledger, file);
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t\f\r");
}

/* Copies one line, without the blanks around it, cut between characters. */
static void copy_line(const char *line, char *text, size_t size)
{
    line = skip_blanks(line);
    size_t n = strcspn(line, "\n");
    while (n > 0 && strchr(" \t\f\r", line[n - 1]) != NULL)
        n--;
    pl_json_clean(line, n, text, size);
}

static const char *source_of(const json_t *object, const char *key)
{
    const char *source = json_string_value(json_object_get(json_object_get(object, key), "source"));
    return source != NULL ? source : "";
}

void pl_cell_sources_line(const pl_cell_sources *cells, const char *file, uint64_t line,
                          char text[PL_CELLS_TEXT_BYTES])
{
    const char *source = cells != NULL ? source_of(cells->by_file, kept_tail(file)) : "";
    text[0] = '\0';
    for (uint64_t i = 1; i < line && source != NULL; i++) {
        source = strchr(source, '\n');
        source = source != NULL ? source + 1 : NULL;
    }
    if (source != NULL && line > 0)
        copy_line(source, text, PL_CELLS_TEXT_BYTES);
}

void pl_cell_sources_title(const pl_cell_sources *cells, const char *id,
                           char text[PL_CELLS_TITLE_BYTES])
{
    char key[sizeof((pl_cell *)NULL)->id];
    kept_id(id, key);
    const char *source = cells != NULL ? source_of(cells->by_id, key) : "";
    text[0] = '\0';
    while (source != NULL) {
        const char *line = skip_blanks(source);
        if (line[0] != '\0' && line[0] != '\n' && line[0] != '#') {
            copy_line(line, text, PL_CELLS_TITLE_BYTES);
            return;
        }
        source = strchr(line, '\n');
        source = source != NULL ? source + 1 : NULL;
    }
}
