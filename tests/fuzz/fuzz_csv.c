/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as CSV: records follow each other to the end, the same whatever the window; their
 * fields lie within them; what is refused is told. The first byte says how large a window is, the
 * second one the format. */
#include "fuzz.h"

#include "codec/text/csv.h"

enum { COLUMNS = 5 };

static long n_records, n_refused, n_values; /* 0 of any would make the test worthless */

static const pl_csv_column columns[COLUMNS] = {
    {.dtype = PL_I32, .required = true},
    {.dtype = PL_F32, .bits = 1},
    {.dtype = PL_STRING},
    {.dtype = PL_F64},
    {.dtype = PL_I64, .required = true},
};

static pl_csv_format format_of(uint8_t how)
{
    static const int64_t selected[COLUMNS] = {0, 1, 3, 4, 6};
    return (pl_csv_format){.delimiter = how % 4 == 0 ? ';' : ',',
                           .plain_quotes = how / 4 % 4 == 0,
                           .na_value = {"n\"", how / 16 % 2 ? 2 : 0},
                           .columns = columns,
                           .selected = how / 32 % 2 ? selected : NULL,
                           .n_columns = how / 64 + 2};
}

/* Is nothing in a field that would have ended it? */
static bool is_one(const pl_csv_field *field, const pl_csv_record *record, char delimiter)
{
    if (field->at > record->begin && field->at[-1] == '"')
        return true;
    return !memchr(field->at, delimiter, field->n) && !memchr(field->at, '\n', field->n) &&
           !memchr(field->at, '\r', field->n);
}

static void check_fields(const pl_csv_record *record, char delimiter)
{
    for (int64_t i = 0; i < record->n_kept; i++) {
        const pl_csv_field *field = &record->fields[i];
        REQUIRE(field->at >= record->begin &&
                field->at + field->n <= record->begin + record->taken);
        REQUIRE(2 * field->n_doubled <= field->n && is_one(field, record, delimiter));
        char *text = malloc(pl_csv_text_bytes(field) + 1);
        REQUIRE(text != NULL);
        text[pl_csv_text_bytes(field)] = 'x';
        pl_csv_text_copy(field, text);
        REQUIRE(text[pl_csv_text_bytes(field)] == 'x');
        free(text);
    }
}

static void convert(const pl_csv_format *format, const pl_csv_record *record)
{
    pl_csv_value values[COLUMNS];
    pl_error error = {0};
    int r = pl_csv_convert(format, record, values, &error);
    n_values += r == 0;
    if (r == 0)
        return;
    REQUIRE(r == PL_EFORMAT);
    check_message(r, &error);
}

/* The record at `bytes`, as whoever has a window that grows by `step` finds it. */
static int split_by(const pl_csv_format *format, const char *bytes, size_t n, size_t step,
                    pl_csv_record *record)
{
    for (size_t seen = 0;; seen += step) {
        bool is_last = seen >= n;
        size_t now = is_last ? n : seen;
        char *window = exact(bytes, now);
        int r = pl_csv_split(format, window, now, is_last, record, NULL);
        free(window);
        if (r != 0 || is_last)
            return r;
    }
}

static size_t take_one(const pl_csv_format *format, const char *bytes, size_t n, size_t step)
{
    pl_csv_field fields[COLUMNS], others[COLUMNS];
    pl_csv_record record = {.fields = fields, .room = format->n_columns, .place = {7, 3}};
    pl_csv_record same = {.fields = others, .room = format->n_columns};
    pl_error error = {0};
    int r = pl_csv_split(format, bytes, n, true, &record, &error);
    REQUIRE(r == 1 || r == PL_EFORMAT);
    REQUIRE(split_by(format, bytes, n, step, &same) == r);
    REQUIRE(record.taken == same.taken && record.n_lines == same.n_lines);
    REQUIRE(record.taken > 0 && record.taken <= n && record.taken <= record.extent);
    n_records++;
    if (r < 0) {
        n_refused++;
        check_message(r, &error);
        return record.taken;
    }
    REQUIRE(record.n_fields == same.n_fields && record.n_kept == same.n_kept);
    REQUIRE(record.n_kept <= record.n_fields && record.n_kept <= record.room);
    check_fields(&record, format->delimiter);
    convert(format, &record);
    return record.taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2 || n > 4096)
        return 0;
    pl_csv_format format = format_of(data[1]);
    REQUIRE(pl_csv_check(&format, NULL) == 0);
    char *text = exact(data + 2, n - 2);
    for (size_t at = 0; at < n - 2;)
        at += take_one(&format, text + at, n - 2 - at, 1 + data[0] % 80);
    free(text);
    return 0;
}

#ifndef PL_LIBFUZZER

static const char *const words[] = {
    ",",
    ",",
    ",",
    "\n",
    "\r\n",
    "\r",
    "\"",
    "\"\"",
    ";",
    "1",
    "-17",
    "2147483648",
    "1.5",
    "1e5",
    "1e-400",
    "1e999",
    "0.1234567890123456789",
    "nan",
    "inf",
    "text",
    "\"q,q\"",
    "\"a\"\"b\"",
    "\"two\nlines\"",
    "\0",
    " ",
    "n\"",
    "\"n\"\"\"",
    "1,2.5,x,4,5\n",
    "1,2,x,4,5,6,7\r\n",
    "some text that is longer than a block of sixty-four bytes, and has a comma\n",
};

static void no_bytes_harm_whoever_splits_them(void **state)
{
    (void)state;
    static uint8_t input[2048];
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        size_t n = 2;
        input[0] = (uint8_t)random();
        input[1] = (uint8_t)random();
        for (long left = random() % 20; left > 0; left--) {
            const char *word = words[(size_t)random() % (sizeof words / sizeof *words)];
            size_t n_word = *word ? strlen(word) : 1;
            memcpy(input + n, word, n_word);
            n += n_word;
        }
        try_input(input, n);
    }
    assert_true(n_tries < 1000 || n_records > n_tries);
    assert_true(n_tries < 1000 || n_refused > n_tries / 10);
    assert_true(n_tries < 1000 || n_values > n_tries / 20);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 60000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_harm_whoever_splits_them),
    };
    return cmocka_run_group_tests_name("fuzz_csv", tests, NULL, NULL);
}

#endif
