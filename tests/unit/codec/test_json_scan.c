/* SPDX-License-Identifier: Apache-2.0 */
/* What is JSON is taken and what is not is refused at the same byte, in whatever pieces it comes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "codec/text/json_scan.h"

static const struct text {
    const char *text;
    int fault_at; /* -1: it is good */
    bool lines;
} texts[] = {
    {"{}", -1, false},
    {" [1, -2.5e-3, 0, \"a\\u00e9\\\"\\\\\", true, false, null, {\"k\": []}] \n", -1, false},
    {"\"gr\xc3\xbcn \xe2\x82\xac \xf0\x9f\x98\x80\"", -1, false},
    {"\xef\xbb\xbf[1]", -1, false},
    {"12", -1, false},
    {"{}\n[]\n3\n", -1, true},
    {"{}\n\n[1] \r\n\"a\"", -1, true},
    {"{\"a\":\n1}", 5, true},
    {"[1]\n[1,\n2]\n", 7, true},
    {"{} {}\n", 3, true},
    {"1\n2 3\n", 4, true},
    {"[\n1\n]\n", -1, false},
    {"", -1, true},
    {"", 0, false},
    {"{}\n{}", 3, false},
    {"[1,]", 3, false},
    {"{\"a\":1,}", 7, false},
    {"{\"a\" 1}", 5, false},
    {"{1:2}", 1, false},
    {"[1 2]", 3, false},
    {"[1}", 2, false},
    {"{\"a\":1]", 6, false},
    {"[01]", 2, false},
    {"[1.]", 3, false},
    {"[-]", 2, false},
    {"[1e+]", 4, false},
    {"[truE]", 4, false},
    {"[NaN]", 1, false},
    {"[\"a\nb\"]", 3, false},
    {"[\"\\q\"]", 3, false},
    {"[\"\\u12g4\"]", 6, false},
    {"[\"\xff\"]", 2, false},
    {"[\"\xc3\x28\"]", 2, false},
    {"[\xc3\xa9]", 1, false},
    {"[\xc3\x28]", 1, false},
    {"\xef\xbb\x80", 0, false},
    {"\xef\xbb", 0, false},
    {"[1, 2", 5, false},
    {"\"abc", 4, false},
    {"-", 1, false},
};

static void scan_in_pieces(const struct text *text, size_t cut)
{
    pl_json_scan scan;
    size_t n = strlen(text->text);
    pl_json_scan_init(&scan, text->lines);
    bool good = pl_json_scan_go_on(&scan, text->text, cut) &&
                pl_json_scan_go_on(&scan, text->text + cut, n - cut);
    good = pl_json_scan_end(&scan) && good;
    assert_int_equal(good, text->fault_at < 0);
    if (good)
        return;
    assert_non_null(scan.fault);
    assert_int_equal(scan.offset, text->fault_at);
}

static void texts_are_judged_alike_in_any_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(texts); i++)
        for (size_t cut = 0; cut <= strlen(texts[i].text); cut++)
            scan_in_pieces(&texts[i], cut);
}

static void nesting_has_an_end(void **state)
{
    (void)state;
    char text[2 * PL_JSON_DEPTH_MAX + 2];
    pl_json_scan scan;
    memset(text, '[', PL_JSON_DEPTH_MAX + 1);
    memset(text + PL_JSON_DEPTH_MAX, ']', PL_JSON_DEPTH_MAX);
    pl_json_scan_init(&scan, false);
    assert_true(pl_json_scan_go_on(&scan, text, 2 * PL_JSON_DEPTH_MAX));
    assert_true(pl_json_scan_end(&scan));
    memset(text, '[', PL_JSON_DEPTH_MAX + 1);
    pl_json_scan_init(&scan, false);
    assert_false(pl_json_scan_go_on(&scan, text, PL_JSON_DEPTH_MAX + 1));
    assert_int_equal(scan.offset, PL_JSON_DEPTH_MAX);
}

static void lines_are_counted(void **state)
{
    (void)state;
    pl_json_scan scan;
    pl_json_scan_init(&scan, false);
    assert_false(pl_json_scan_go_on(&scan, "[1,\n2,\n?]", 9));
    assert_int_equal(scan.line, 3);
    assert_false(pl_json_scan_go_on(&scan, "[]", 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_judged_alike_in_any_pieces),
        cmocka_unit_test(nesting_has_an_end),
        cmocka_unit_test(lines_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
