/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as text: all of them are in some line, whatever the window; where UTF-8 stops being
 * valid, it is valid up to there and not one byte further. The first byte says how large a window
 * is. */
#include "fuzz.h"

#include "codec/text/lines.h"
#include "codec/text/utf8.h"

static long n_lines, n_bad_utf8; /* 0 of either would make the test worthless */

/* The line at `bytes`, as whoever has a window that grows by `step` finds it. */
static bool next_by(const char *bytes, size_t n, size_t step, pl_line *ret_line)
{
    for (size_t seen = 0;; seen += step) {
        bool is_last = seen >= n;
        size_t now = is_last ? n : seen;
        char *window = exact(bytes, now);
        bool found = pl_line_next(window, now, is_last, ret_line);
        free(window);
        if (found || is_last)
            return found;
    }
}

static void split(const char *bytes, size_t n, size_t step)
{
    while (n > 0) {
        pl_line line, same;
        REQUIRE(pl_line_next(bytes, n, true, &line) && next_by(bytes, n, step, &same));
        REQUIRE(line.n == same.n && line.taken == same.taken);
        REQUIRE(line.taken > 0 && line.taken <= n && line.n <= line.taken);
        REQUIRE(!memchr(bytes, '\n', line.n));
        REQUIRE(line.taken == n || bytes[line.taken - 1] == '\n');
        bytes += line.taken;
        n -= line.taken;
        n_lines++;
    }
    pl_line none;
    REQUIRE(!pl_line_next(bytes, 0, true, &none) && !pl_line_next(bytes, 0, false, &none));
}

static void check_utf8(const char *bytes, size_t n)
{
    bool cut, cut_again;
    size_t valid = pl_utf8_valid_bytes(bytes, n, &cut);
    REQUIRE(valid <= n && !(valid == n && cut));
    REQUIRE(pl_utf8_valid_bytes(bytes, valid, &cut_again) == valid && !cut_again);
    if (valid == n)
        return;
    n_bad_utf8++;
    size_t again = pl_utf8_valid_bytes(bytes + valid, n - valid, &cut_again);
    REQUIRE(again == 0 && cut == cut_again && (!cut || n - valid < 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0 || n > 4096)
        return 0;
    char *text = exact(data + 1, n - 1);
    split(text, n - 1, 1 + data[0] % 32);
    check_utf8(text, n - 1);
    free(text);
    return 0;
}

#ifndef PL_LIBFUZZER

static void no_bytes_harm_whoever_splits_them(void **state)
{
    (void)state;
    static const char *const words[] = {"\n",   "\r\n", "\r",           "a",
                                        "\0",   "word", "\xc3\xa9",     "\xe2\x82\xac",
                                        "\xe2", "\xff", "\xf0\x9f\x98", "0123456789abcdef"};
    static uint8_t input[256];
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        size_t n = 1;
        input[0] = (uint8_t)random();
        for (long left = random() % 12; left > 0; left--) {
            const char *word = words[(size_t)random() % (sizeof words / sizeof *words)];
            size_t n_word = *word ? strlen(word) : 1;
            memcpy(input + n, word, n_word);
            n += n_word;
        }
        try_input(input, n);
    }
    assert_true(n_tries < 1000 || n_lines > n_tries);
    assert_true(n_tries < 1000 || n_bad_utf8 > n_tries / 10);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 300000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_harm_whoever_splits_them),
    };
    return cmocka_run_group_tests_name("fuzz_lines", tests, NULL, NULL);
}

#endif
