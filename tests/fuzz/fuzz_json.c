/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as JSON: the answer is the same in whatever pieces they come, and jansson's. Of the
 * first byte, the lowest bit says whether there may be several values, the rest how long a piece
 * is. */
#include <jansson.h>

#include "codec/text/json_scan.h"
#include "fuzz.h"

enum { TEXT_MAX = 4096 };

static long n_taken, n_refused; /* 0 of either would make the test worthless */

static bool scan_by(const char *text, size_t n, size_t step, bool lines, pl_json_scan *scan)
{
    pl_json_scan_init(scan, lines);
    bool good = true;
    for (size_t at = 0; good && at < n; at += step) {
        size_t now = n - at < step ? n - at : step;
        char *piece = exact(text + at, now);
        good = pl_json_scan_go_on(scan, piece, now);
        free(piece);
    }
    return pl_json_scan_end(scan) && good;
}

/* What jansson refuses, and RFC 8259 does not: numbers that a double does not hold, escapes that
 * are no characters; depth is a matter of taste. */
static bool may_differ(const json_error_t *why, const char *text, size_t n)
{
    enum json_error_code code = json_error_code(why);
    bool has_mark = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
    return has_mark || code == json_error_numeric_overflow || code == json_error_stack_overflow ||
           code == json_error_null_byte_in_key || memmem(text, n, "\\u", 2) != NULL;
}

static void compare_to_jansson(const char *text, size_t n, const pl_json_scan *scan)
{
    json_error_t why;
    if (memchr(text, '\0', n))
        return; /* jansson takes one behind a number for the end */
    json_t *value = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (value)
        REQUIRE(!scan->fault || scan->depth == PL_JSON_DEPTH_MAX);
    else
        REQUIRE(scan->fault || may_differ(&why, text, n));
    json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static pl_json_scan whole, pieces;
    if (n == 0 || n > TEXT_MAX)
        return 0;
    const char *text = (const char *)data + 1;
    bool lines = data[0] % 2;
    n--;
    bool good = scan_by(text, n, TEXT_MAX, lines, &whole);
    REQUIRE(good == (whole.fault == NULL) && whole.offset <= n && whole.line >= 1);
    REQUIRE(scan_by(text, n, 1u + data[0] / 2, lines, &pieces) == good);
    REQUIRE(pieces.fault == whole.fault && pieces.offset == whole.offset);
    REQUIRE(pieces.line == whole.line && (!good || whole.offset == n));
    n_taken += good;
    n_refused += !good;
    if (!lines)
        compare_to_jansson(text, n, &whole);
    return 0;
}

#ifndef PL_LIBFUZZER

static const char *const words[] = {
    "{",     "}",     "[",      "]",      ",",   ":",     "\"",           "\"k\": ",
    "true",  "false", "null",   "0",      "-",   "12",    "1.5e-3",       "01",
    "1e999", "\n",    " ",      "\\u00e", "\\n", "\\ud8", "\"\xc3\xa9\"", "\xe2\x82",
    "[1]",   "{}",    "\"a\",", "NaN",    "\t",  "\x1f",  "[[[[[[[[[[[[", "{\"k\": [1, 2]}",
};

static size_t add_words(char *to)
{
    size_t n = 0;
    for (long left = random() % 10; left >= 0; left--) {
        const char *word = words[(size_t)random() % (sizeof words / sizeof *words)];
        memcpy(to + n, word, strlen(word));
        n += strlen(word);
    }
    return n;
}

/* A value that is whole. Returns its bytes. */
static size_t add_value(char *to, int depth)
{
    static const char *const leaves[] = {"1", "-2.5e7", "\"t\\u00e9xt\"", "true", "null", "\"\""};
    if (depth == 0 || random() % 3 == 0)
        return (size_t)(stpcpy(to, leaves[random() % 6]) - to);
    bool object = random() % 2;
    char *at = to;
    *at++ = object ? '{' : '[';
    for (long i = 0, n = random() % 4; i < n; i++) {
        at = stpcpy(at, i ? ", " : "");
        at = stpcpy(at, object ? "\"k\":" : "");
        at += add_value(at, depth - 1);
    }
    *at++ = object ? '}' : ']';
    return (size_t)(at - to);
}

static void no_bytes_harm_whoever_scans_them(void **state)
{
    (void)state;
    static uint8_t input[TEXT_MAX];
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        char *text = (char *)input + 1;
        size_t n = random() % 3 ? add_value(text, 4) : add_words(text);
        if (random() % 4 == 0)
            text[(size_t)random() % n] = (char)random();
        input[0] = (uint8_t)random();
        try_input(input, 1 + n);
    }
    assert_true(n_tries < 1000 || n_taken > n_tries / 4);
    assert_true(n_tries < 1000 || n_refused > n_tries / 4);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 50000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_harm_whoever_scans_them),
    };
    return cmocka_run_group_tests_name("fuzz_json", tests, NULL, NULL);
}

#endif
