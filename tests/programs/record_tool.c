/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes records and Examples, for tests/kernels. One command a line on stdin, one answer
 * a line on stdout: "ok ..." or "refused CODE why". A list of byte strings, as a file, is each
 * one's length (8 bytes) and its bytes. read PACKING WINDOW PATH OUT  all records of a file: OUT is
 * the list of the good ones; says how many were good, how many bad, and what the first error was
 *   write PATH OUT                a list of byte strings as a file of records
 *   example PATH OUT              an Example or SequenceExample as text: a line per entry, in
 * order, the part, the name, and values; all bytes in hex rewrite PATH OUT              reads an
 * Example and writes it again; "rewrite2" a sequence */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/record/example.h"
#include "codec/record/tfrecord.h"
#include "data/reader/record_reader.h"

enum { ENTRIES_MAX = 256 };

static char *words[8];
static pl_error error;
static pl_memory *memory;

static uint8_t *read_all(const char *path, size_t *ret_n)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    *ret_n = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*ret_n ? *ret_n : 1); /* not a byte too many */
    if (fread(bytes, 1, *ret_n, file) != *ret_n)
        exit(1);
    fclose(file);
    return bytes;
}

static FILE *create(const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

/* ---- records ---- */

static pl_packing packing_of(const char *name)
{
    for (pl_packing packing = PL_PACKING_NONE; packing <= PL_PACKING_AUTO; packing++)
        if (strcmp(pl_packing_name(packing), name) == 0)
            return packing;
    exit(1);
}

/* One record; 1, 0 at the end, -1 for a bad one. */
static int copy_record(pl_record_reader *reader, FILE *out, pl_error *reterr)
{
    pl_record record;
    int r = pl_record_reader_next(reader, &record, reterr);
    if (r <= 0)
        return r;
    uint8_t *own = NULL;
    if (!record.data) {
        own = malloc(record.data_bytes);
        r = pl_record_reader_read(reader, own, reterr) < 0 ? -1 : 1;
    }
    if (r > 0) {
        fwrite(&record.data_bytes, sizeof record.data_bytes, 1, out);
        fwrite(own ? own : record.data, 1, record.data_bytes, out);
    }
    free(own);
    return r;
}

static int do_read(void)
{
    pl_record_reader *reader;
    int n_good = 0, n_bad = 0;
    int r = pl_record_reader_new(words[3], packing_of(words[1]), strtoull(words[2], NULL, 10),
                                 memory, &reader, &error);
    if (r < 0)
        return r;
    FILE *out = create(words[4]);
    pl_error first = {0};
    do {
        pl_error why = {0};
        r = copy_record(reader, out, &why);
        n_good += r > 0;
        n_bad += r < 0;
        if (r < 0 && n_bad == 1)
            first = why;
    } while (r != 0 && !pl_record_reader_is_lost(reader));
    fclose(out);
    printf("ok %d %d %s %s", n_good, n_bad, pl_record_reader_is_lost(reader) ? "lost" : "end",
           first.message);
    pl_record_reader_free(reader);
    return 0;
}

static int do_write(void)
{
    size_t n;
    uint8_t *bytes = read_all(words[1], &n);
    FILE *out = create(words[2]);
    for (size_t at = 0; at < n;) {
        uint64_t length;
        memcpy(&length, bytes + at, sizeof length);
        uint8_t *record = malloc(length + PL_TFRECORD_FRAME_BYTES);
        pl_tfrecord_write(bytes + at + sizeof length, length, record);
        fwrite(record, 1, length + PL_TFRECORD_FRAME_BYTES, out);
        free(record);
        at += length + sizeof length;
    }
    fclose(out);
    free(bytes);
    printf("ok");
    return 0;
}

/* ---- Examples ---- */

static void print_hex(FILE *out, const void *bytes, size_t n)
{
    fputc(' ', out);
    fputc('x', out); /* so that nothing is something */
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%02x", ((const uint8_t *)bytes)[i]);
}

/* Its values, in memory of the caller's. */
static pl_feature_values values_of(const pl_feature *feature, pl_string name)
{
    pl_feature_values values = {.name = name, .kind = feature->kind, .n_values = feature->n_values};
    size_t n_bytes = feature->kind == PL_FEATURE_BYTES ? feature->n_values * sizeof(pl_string)
                                                       : feature->n_bytes;
    void *to = malloc(n_bytes ? n_bytes : 1);
    values.bytes = to; /* or floats, or int64s: a union */
    if (feature->kind == PL_FEATURE_FLOATS)
        pl_feature_copy_floats(feature, to);
    if (feature->kind == PL_FEATURE_INT64S)
        pl_feature_copy_int64s(feature, to);
    pl_feature_cursor cursor = pl_feature_begin(feature);
    for (pl_string *next = to; feature->kind == PL_FEATURE_BYTES; next++)
        if ((uint64_t)(next - (pl_string *)to) == feature->n_values ||
            !pl_feature_next_bytes(&cursor, next))
            break;
    return values;
}

static void print_values(FILE *out, const pl_feature_values *values)
{
    fprintf(out, " %s", pl_feature_kind_name(values->kind));
    for (uint64_t i = 0; i < values->n_values; i++)
        if (values->kind == PL_FEATURE_FLOATS)
            print_hex(out, &values->floats[i], sizeof(float));
        else if (values->kind == PL_FEATURE_INT64S)
            fprintf(out, " %" PRId64, values->int64s[i]);
        else
            print_hex(out, values->bytes[i].data, values->bytes[i].n);
}

/* Everything in a record. */
typedef struct contents {
    pl_feature_values features[ENTRIES_MAX];
    pl_feature_steps lists[ENTRIES_MAX];
    pl_example_values values;
} contents;

static int load_features(const uint8_t *record, size_t n, contents *to)
{
    pl_example example = pl_example_begin(record, n, PL_EXAMPLE_FEATURES);
    pl_example_entry entry;
    pl_feature feature;
    int r;
    while ((r = pl_example_next(&example, &entry, &error)) > 0) {
        r = pl_feature_of(&entry, &feature, &error);
        if (r < 0 || to->values.n_features == ENTRIES_MAX)
            return r;
        to->features[to->values.n_features++] =
            values_of(&feature, (pl_string){entry.name, entry.name_bytes});
    }
    return r;
}

static int load_lists(const uint8_t *record, size_t n, contents *to)
{
    pl_example example = pl_example_begin(record, n, PL_EXAMPLE_LISTS);
    pl_example_entry entry;
    pl_feature_list list;
    int r;
    while ((r = pl_example_next(&example, &entry, &error)) > 0) {
        r = pl_feature_list_of(&entry, &list, &error);
        if (r < 0 || to->values.n_lists == ENTRIES_MAX)
            return r;
        uint64_t n_steps = list.n_steps;
        pl_feature_values *steps = calloc(n_steps + 1, sizeof *steps);
        for (uint64_t i = 0; i < n_steps; i++) {
            pl_feature feature;
            if ((r = pl_feature_list_next(&list, &feature, &error)) < 0)
                return r;
            steps[i] = values_of(&feature, (pl_string){0});
        }
        to->lists[to->values.n_lists++] =
            (pl_feature_steps){{entry.name, entry.name_bytes}, n_steps, steps};
    }
    return r;
}

static int load(const uint8_t *record, size_t n, contents *to)
{
    *to = (contents){0};
    to->values.features = to->features;
    to->values.lists = to->lists;
    int r = load_features(record, n, to);
    return r < 0 ? r : load_lists(record, n, to);
}

static void print_contents(FILE *out, const contents *from)
{
    for (uint64_t i = 0; i < from->values.n_features; i++) {
        fputs("feature", out);
        print_hex(out, from->features[i].name.data, from->features[i].name.n);
        print_values(out, &from->features[i]);
        fputc('\n', out);
    }
    for (uint64_t i = 0; i < from->values.n_lists; i++) {
        fputs("list", out);
        print_hex(out, from->lists[i].name.data, from->lists[i].name.n);
        for (uint64_t k = 0; k < from->lists[i].n_steps; k++) {
            fputs(" step", out);
            print_values(out, &from->lists[i].steps[k]);
        }
        fputc('\n', out);
    }
}

/* What it allocates is gone with the program, which a test runs for some records. */
static int do_example(bool again, bool is_sequence)
{
    static contents all;
    size_t n;
    uint64_t n_bytes;
    uint8_t *record = read_all(words[1], &n);
    int r = load(record, n, &all);
    if (r < 0)
        return r;
    FILE *out = create(words[2]);
    all.values.is_sequence = is_sequence;
    if (again && (r = pl_example_bytes(&all.values, &n_bytes, &error)) == 0) {
        uint8_t *to = malloc(n_bytes);
        if (pl_example_write(&all.values, to) != to + n_bytes)
            exit(1);
        fwrite(to, 1, n_bytes, out);
    } else {
        print_contents(out, &all);
    }
    fclose(out);
    printf("ok");
    return r;
}

int main(void)
{
    static char line[4096];
    if (pl_memory_new(NULL, &memory, &error) < 0)
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        int n_words = 0, r;
        for (char *next = strtok(line, " \n"); next && n_words < 8; next = strtok(NULL, " \n"))
            words[n_words++] = next;
        if (strcmp(words[0], "read") == 0)
            r = do_read();
        else if (strcmp(words[0], "write") == 0)
            r = do_write();
        else if (strcmp(words[0], "example") == 0)
            r = do_example(false, false);
        else
            r = do_example(true, strcmp(words[0], "rewrite2") == 0);
        if (r < 0)
            printf("refused %s %s", pl_error_name(r), error.message);
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
