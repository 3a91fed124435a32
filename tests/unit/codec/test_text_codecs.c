/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, CSV, numbers and tar headers, from blocks that have not a byte to spare. That Python
 * agrees is tested in tests/kernels (test_lines.py, test_csv.py, test_tar.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/archive/sample_name.h"
#include "codec/archive/tar.h"
#include "codec/text/csv.h"
#include "codec/text/excerpt.h"
#include "codec/text/lines.h"
#include "codec/text/number.h"
#include "codec/text/utf8.h"

static char *exact(const char *text, size_t n)
{
    char *block = malloc(n ? n : 1);
    assert_non_null(block);
    memcpy(block, text, n);
    return block;
}

/* ---- lines ---- */

static void a_line_needs_its_end_or_the_end_of_all(void **state)
{
    (void)state;
    const char *text = "ab\r\n\nc\r";
    pl_line line;
    for (size_t n = 0; n < 4; n++) {
        char *some = exact(text, n);
        assert_false(pl_line_next(some, n, false, &line));
        assert_int_equal(pl_line_next(some, n, true, &line), n > 0);
        assert_true(n == 0 || (line.taken == n && line.n == (n < 3 ? n : 2)));
        free(some);
    }
    assert_true(pl_line_next(text, 7, false, &line));
    assert_true(line.n == 2 && line.taken == 4);
    assert_true(pl_line_next(text + 4, 3, false, &line));
    assert_true(line.n == 0 && line.taken == 1);
    assert_true(pl_line_next(text + 5, 2, true, &line));
    assert_true(line.n == 1 && line.taken == 2);
}

static void utf8_is_looked_at_to_its_last_byte(void **state)
{
    (void)state;
    const char *text = "0123456789abcdef\xe2\x82\xac";
    for (size_t n = 0; n <= 19; n++) {
        bool cut;
        char *some = exact(text, n);
        size_t valid = pl_utf8_valid_bytes(some, n, &cut);
        assert_int_equal(valid, n < 17 ? n : n < 19 ? 16 : 19);
        assert_int_equal(cut, n == 17 || n == 18);
        free(some);
    }
    assert_int_equal(pl_utf8_valid_bytes("\xff", 1, NULL), 0);
    for (size_t n = 1; n < 50; n++)
        for (size_t bad = 0; bad < n; bad++) {
            char *some = malloc(n);
            memset(some, 'x', n);
            some[bad] = '\x80';
            assert_int_equal(pl_utf8_valid_bytes(some, n, NULL), bad);
            free(some);
        }
}

static void an_excerpt_is_short_and_printable(void **state)
{
    (void)state;
    char text[100];
    memset(text, 'x', sizeof text);
    text[1] = '\033';
    assert_string_equal(pl_excerpt_of(text, 3).text, "x?x");
    assert_string_equal(pl_excerpt_of(text, 0).text, "");
    assert_int_equal(strlen(pl_excerpt_of(text, 60).text), 60);
    assert_int_equal(strlen(pl_excerpt_of(text, 61).text), 63);
    assert_non_null(strstr(pl_excerpt_of(text, 61).text, "x..."));
}

/* ---- numbers ---- */

static double f64_of(const char *text)
{
    double value = -77;
    char *some = exact(text, strlen(text));
    assert_int_equal(pl_number_f64(some, strlen(text), &value), 0);
    free(some);
    return value;
}

static float f32_of(const char *text)
{
    float value = -77;
    char *some = exact(text, strlen(text));
    assert_int_equal(pl_number_f32(some, strlen(text), &value), 0);
    free(some);
    return value;
}

static void floats_are_those_of_strtod(void **state)
{
    (void)state;
    srandom(1);
    for (int i = 0; i < 30000; i++) {
        char text[64];
        uint64_t digits = (uint64_t)random() << 33 ^ (uint64_t)random() << 11 ^ (uint64_t)random();
        int n = snprintf(text, sizeof text, "%llu", (unsigned long long)(digits >> random() % 64));
        if (random() % 2) { /* a point somewhere */
            int at = (int)(random() % (n + 1));
            memmove(text + at + 1, text + at, (size_t)(n + 1 - at));
            text[at] = '.';
            n++;
        }
        snprintf(text + n, sizeof text - (size_t)n, "e%ld", random() % 80 - 40);
        double wanted = strtod(text, NULL), got = f64_of(text);
        assert_memory_equal(&wanted, &got, sizeof got);
        float narrow = strtof(text, NULL);
        if (isinf(narrow)) {
            assert_int_equal(pl_number_f32(text, strlen(text), &narrow), -ERANGE);
            continue;
        }
        float narrow_got = f32_of(text);
        assert_memory_equal(&narrow, &narrow_got, sizeof narrow);
    }
}

/* One in 4096 of these is halfway between two doubles as far as 64 bits go, and only what is below
 * them says to which side it belongs. */
static void what_is_below_64_bits_decides_ties(void **state)
{
    (void)state;
    srandom(2);
    for (int i = 0; i < 100000; i++) {
        char text[64];
        uint64_t digits = (uint64_t)random() << 32 ^ (uint64_t)random() << 16 ^ (uint64_t)random();
        snprintf(text, sizeof text, "%llue%ld", (unsigned long long)(digits % 9999999999999999999u),
                 random() % 50 - 25);
        double wanted = strtod(text, NULL), got;
        assert_int_equal(pl_number_f64(text, strlen(text), &got), 0);
        assert_memory_equal(&wanted, &got, sizeof got);
    }
}

static void numbers_need_no_byte_behind_them(void **state)
{
    (void)state;
    assert_true(f64_of("12345678") == 12345678 && f64_of("1234567.8") == 1234567.8);
    assert_true(f64_of("1e5") == 1e5 && f64_of("-0.5") == -0.5 && signbit(f64_of("-0")));
    int64_t whole;
    char *some = exact("-9223372036854775808", 20);
    assert_int_equal(pl_number_i64(some, 20, &whole), 0);
    assert_true(whole == INT64_MIN);
    assert_int_equal(pl_number_i64(some + 1, 19, &whole), -ERANGE);
    free(some);
    assert_int_equal(pl_number_i64("00000000000000000000000000012", 29, &whole), 0);
    assert_int_equal(whole, 12);
    assert_int_equal(pl_number_i64("18446744073709551617", 20, &whole), -ERANGE);
    assert_int_equal(pl_number_i64(NULL, 0, &whole), PL_EFORMAT);
}

static void what_fails_leaves_the_value_alone(void **state)
{
    (void)state;
    int32_t i = 7;
    int64_t l = 7;
    float f = 7;
    double d = 7;
    assert_int_equal(pl_number_i32("2147483648", 10, &i), -ERANGE);
    assert_int_equal(pl_number_i64("1x", 2, &l), PL_EFORMAT);
    assert_int_equal(pl_number_f32("1e39", 4, &f), -ERANGE);
    assert_int_equal(pl_number_f64("1\0"
                                   "2",
                                   3, &d),
                     PL_EFORMAT);
    assert_true(i == 7 && l == 7 && f == 7 && d == 7);
}

/* A language with a decimal comma, made for this test: few machines have one. */
static bool speak_german(void)
{
    char folder[] = "/tmp/plimsoll-locale-XXXXXX", command[256];
    if (!mkdtemp(folder))
        return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1",
             folder);
    setenv("LOCPATH", folder, 1);
    bool done = system(command) == 0 && setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 && done;
}

static void no_language_changes_numbers(void **state)
{
    (void)state;
    if (!speak_german())
        fail_msg("there is no language with a decimal comma: install locales");
    assert_true(strtod("1,5", NULL) == 1.5);
    assert_true(f64_of("1.5e-300") == 1.5e-300); /* the library's part */
    assert_true(f64_of("2.5") == 2.5);
    double value;
    assert_int_equal(pl_number_f64("1,5e-300", 8, &value), PL_EFORMAT);
    setlocale(LC_NUMERIC, "C");
}

/* ---- CSV ---- */

static void formats_that_are_none_are_refused(void **state)
{
    (void)state;
    const pl_csv_column number = {.dtype = PL_I32}, other = {.dtype = PL_U8};
    const pl_csv_column two[] = {number, number};
    const int64_t same[] = {3, 3}, below[] = {-1, 2}, good[] = {0, 9};
    pl_error error = {0};
    static const char bad[] = "\"\n\r";
    for (int i = 0; i < 3; i++)
        assert_int_equal(pl_csv_check(&(pl_csv_format){.delimiter = bad[i]}, &error), -EINVAL);
    pl_csv_format format = {.delimiter = ',', .columns = &other, .n_columns = 1};
    assert_int_equal(pl_csv_check(&format, &error), -EINVAL);
    assert_non_null(strstr(error.message, "column 1"));
    format = (pl_csv_format){.delimiter = '\t', .columns = two, .n_columns = 2, .selected = same};
    assert_int_equal(pl_csv_check(&format, &error), -EINVAL);
    format.selected = below;
    assert_int_equal(pl_csv_check(&format, &error), -EINVAL);
    format.selected = good;
    assert_int_equal(pl_csv_check(&format, &error), 0);
}

static void a_record_needs_its_end_or_the_end_of_all(void **state)
{
    (void)state;
    const char *text = "a,\"b\"\"\r\n\",c\r\nd";
    const pl_csv_format format = {.delimiter = ','};
    pl_csv_field fields[3];
    for (size_t n = 0; n < 13; n++) {
        pl_csv_record record = {.fields = fields, .room = 3};
        char *some = exact(text, n);
        assert_int_equal(pl_csv_split(&format, some, n, false, &record, NULL), 0);
        free(some);
    }
    pl_csv_record record = {.fields = fields, .room = 2};
    assert_int_equal(pl_csv_split(&format, text, 14, false, &record, NULL), 1);
    assert_true(record.taken == 13 && record.n_lines == 2);
    assert_true(record.n_fields == 3 && record.n_kept == 2); /* there was room for two */
    assert_true(fields[1].n == 5 && fields[1].n_doubled == 1);
    char copy[4];
    pl_csv_text_copy(&fields[1], copy);
    assert_memory_equal(copy, "b\"\r\n", 4);
}

static void a_field_may_be_as_long_as_it_likes(void **state)
{
    (void)state;
    const pl_csv_format format = {.delimiter = ','};
    char text[400];
    for (size_t first = 0; first < 130; first++)
        for (size_t second = 60; second < 70; second++) {
            pl_csv_field fields[3];
            pl_csv_record record = {.fields = fields, .room = 3};
            memset(text, 'x', sizeof text);
            text[first] = text[first + 1 + second] = ',';
            size_t n = first + second + 2 + 65;
            text[n] = '\n';
            char *some = exact(text, n + 1);
            assert_int_equal(pl_csv_split(&format, some, n + 1, false, &record, NULL), 1);
            assert_true(record.n_fields == 3 && record.taken == n + 1);
            assert_true(fields[0].n == first && fields[1].n == second && fields[2].n == 65);
            free(some);
        }
}

static void who_gives_up_goes_on_behind_the_first_line(void **state)
{
    (void)state;
    pl_csv_record record = {0};
    assert_false(pl_csv_give_up("abc", 3, false, &record));
    assert_false(pl_csv_give_up("abc\r", 4, false, &record));
    assert_true(pl_csv_give_up("abc\rd", 5, false, &record));
    assert_true(record.taken == 4 && record.n_lines == 1);
    assert_true(pl_csv_give_up("abc\r\n", 5, false, &record));
    assert_true(record.taken == 5 && record.n_lines == 1);
    assert_true(pl_csv_give_up("abc", 3, true, &record));
    assert_true(record.taken == 3 && record.n_lines == 0);
}

/* ---- tar ---- */

static void a_tar_says_how_many_bytes_it_needs(void **state)
{
    (void)state;
    pl_tar tar;
    pl_tar_entry entry;
    size_t need = 0;
    char block[PL_TAR_BLOCK_BYTES] = {0};
    pl_tar_init(&tar, PL_TAR_SIZE_UNKNOWN);
    assert_int_equal(pl_tar_next(&tar, NULL, 0, false, &entry, &need, NULL), 0);
    assert_int_equal(need, PL_TAR_BLOCK_BYTES);
    assert_int_equal(pl_tar_next(&tar, block, sizeof block, false, &entry, &need, NULL), 0);
    assert_int_equal(need, 0);
    pl_error error = {0};
    assert_int_equal(pl_tar_next(&tar, block, 100, true, &entry, &need, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "byte 0: the archive is cut off within a header"));
    assert_int_equal(pl_tar_next(&tar, NULL, 0, true, &entry, &need, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "byte 0: the archive has no end"));
}

static void names_of_samples_are_split_at_the_first_dot_of_the_last_part(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t n_key;
    } cases[] = {{"a.jpg", 1}, {"d.x/a.b.c", 5}, {"./a.b", 3}, {"a.", 1},        {"a", 0},
                 {".a", 0},    {"d.x/a", 0},     {"d/.a", 0},  {"__a__/b.c", 0}, {"__a.b__", 0},
                 {"__a.b", 3}, {"/a.b", 2},      {"", 0},      {"d/", 0},        {"__a_/b.c", 6}};
    for (size_t i = 0; i < PL_COUNT_OF(cases); i++) {
        pl_sample_name name;
        size_t n = strlen(cases[i].name);
        char *some = exact(cases[i].name, n);
        assert_int_equal(pl_sample_name_split(some, n, &name), cases[i].n_key > 0);
        assert_true(cases[i].n_key == 0 || name.n_key == cases[i].n_key);
        assert_true(cases[i].n_key == 0 || name.n_extension == n - name.n_key - 1);
        free(some);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_needs_its_end_or_the_end_of_all),
        cmocka_unit_test(utf8_is_looked_at_to_its_last_byte),
        cmocka_unit_test(an_excerpt_is_short_and_printable),
        cmocka_unit_test(floats_are_those_of_strtod),
        cmocka_unit_test(what_is_below_64_bits_decides_ties),
        cmocka_unit_test(numbers_need_no_byte_behind_them),
        cmocka_unit_test(what_fails_leaves_the_value_alone),
        cmocka_unit_test(no_language_changes_numbers),
        cmocka_unit_test(formats_that_are_none_are_refused),
        cmocka_unit_test(a_record_needs_its_end_or_the_end_of_all),
        cmocka_unit_test(a_field_may_be_as_long_as_it_likes),
        cmocka_unit_test(who_gives_up_goes_on_behind_the_first_line),
        cmocka_unit_test(a_tar_says_how_many_bytes_it_needs),
        cmocka_unit_test(names_of_samples_are_split_at_the_first_dot_of_the_last_part),
    };
    return cmocka_run_group_tests_name("text_codecs", tests, NULL, NULL);
}
