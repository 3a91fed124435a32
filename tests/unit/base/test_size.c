/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that people write are understood exactly, or refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/size.h"

static uint64_t parsed(const char *text, uint64_t whole_bytes)
{
    uint64_t bytes = 12345;
    pl_error error = {0};
    if (pl_size_parse(text, whole_bytes, &bytes, &error) < 0)
        fail_msg("'%s': %s", text, error.message);
    return bytes;
}

static void sizes_are_powers_of_1024(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"1", 1},
        {"1536", 1536},
        {"12B", 12},
        {"4k", 4096},
        {"4K", 4096},
        {"4KB", 4096},
        {"4kib", 4096},
        {"512M", 512 * PL_MIB},
        {"1.5G", 3 * PL_GIB / 2},
        {"2GiB", 2 * PL_GIB},
        {"0.5k", 512},
        {"1.0000M", PL_MIB},
        {"1T", PL_GIB << 10},
        {"1P", PL_GIB << 20},
        {"1.1G", 1181116006},
        {"8E", UINT64_C(1) << 63},
        {"9223372036854775808", UINT64_C(1) << 63},
        {"007", 7},
    };
    for (size_t i = 0; i < PL_COUNT_OF(cases); i++)
        if (parsed(cases[i].text, 0) != cases[i].bytes)
            fail_msg("'%s' was taken for %llu", cases[i].text,
                     (unsigned long long)parsed(cases[i].text, 0));
}

static void a_share_is_of_the_whole(void **state)
{
    (void)state;
    assert_int_equal(parsed("80%", 1000), 800);
    assert_int_equal(parsed("12.5%", 1000), 125);
    assert_int_equal(parsed("100%", UINT64_C(1) << 63), UINT64_C(1) << 63);
    assert_int_equal(parsed("2k", 1000), 2048);
}

static void what_is_no_size_is_refused_and_nothing_is_written(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        " ",
        "1 ",
        " 1",
        "1 G",
        "-1",
        "+1",
        "0",
        "0G",
        "0.0M",
        "1.5",
        "1.5B",
        "1.",
        ".5G",
        "1.G",
        "1..2",
        "G",
        "1X",
        "1Gi",
        "1GiX",
        "1GG",
        "1BB",
        "0x10",
        "1e9",
        "inf",
        "nan",
        "max",
        "1,5G",
        "%",
        "80%",
        "80%%",
        "9E",
        "8.01E",
        "16E",
        "1\n",
        "9223372036854775809",
        "²",
        "1K1",
        "0.1B",
        "1i",
        "0.0001K",
        "99999999999999999999999999",
        "0.00000000000000000000000000000000000000000000000000000000000000000000001G",
    };
    for (size_t i = 0; i < PL_COUNT_OF(texts); i++) {
        uint64_t bytes = 12345;
        pl_error error = {0};
        if (pl_size_parse(texts[i], 0, &bytes, &error) != PL_EFORMAT)
            fail_msg("'%s' was taken for %llu", texts[i], (unsigned long long)bytes);
        assert_int_equal(bytes, 12345);
        assert_int_equal(error.code, PL_EFORMAT);
    }
}

static void a_share_over_the_whole_is_refused(void **state)
{
    (void)state;
    uint64_t bytes;
    assert_int_equal(pl_size_parse("101%", 1000, &bytes, NULL), PL_EFORMAT);
    assert_int_equal(pl_size_parse("100.5%", 1000, &bytes, NULL), PL_EFORMAT);
    assert_int_equal(pl_size_parse("0%", 1000, &bytes, NULL), PL_EFORMAT);
}

static void the_message_shows_the_text_and_the_forms(void **state)
{
    (void)state;
    uint64_t bytes;
    pl_error error = {0};
    assert_int_equal(pl_size_parse("lots", 0, &bytes, &error), PL_EFORMAT);
    assert_non_null(strstr(error.message, "'lots'"));
    assert_non_null(strstr(error.message, "1.5G"));
    assert_null(strstr(error.message, "80%"));
    assert_int_equal(pl_size_parse("lots", 1000, &bytes, &error), PL_EFORMAT);
    assert_non_null(strstr(error.message, "80%"));
}

static void formatted_sizes_have_one_decimal_from_kib_on(void **state)
{
    (void)state;
    assert_string_equal(PL_SIZE(0), "0 B");
    assert_string_equal(PL_SIZE(980), "980 B");
    assert_string_equal(PL_SIZE(1023), "1023 B");
    assert_string_equal(PL_SIZE(1024), "1.0 KiB");
    assert_string_equal(PL_SIZE(1536), "1.5 KiB");
    assert_string_equal(PL_SIZE(512 * PL_MIB), "512.0 MiB");
    assert_string_equal(PL_SIZE(8375186227), "7.8 GiB");
    assert_string_equal(PL_SIZE(UINT64_C(1) << 63), "8.0 EiB");
    assert_string_equal(PL_SIZE(UINT64_MAX), "16.0 EiB");
}

static void rounding_moves_to_the_next_unit(void **state)
{
    (void)state;
    assert_string_equal(PL_SIZE(PL_MIB - 53), "1023.9 KiB");
    assert_string_equal(PL_SIZE(PL_MIB - 1), "1.0 MiB");
    assert_string_equal(PL_SIZE(PL_GIB - 1), "1.0 GiB");
}

static void what_is_rounded_up_is_enough(void **state)
{
    (void)state;
    assert_string_equal(PL_SIZE_UP(980), "980 B");
    assert_string_equal(PL_SIZE_UP(1024), "1.0 KiB");
    assert_string_equal(PL_SIZE_UP(1025), "1.1 KiB");
    assert_string_equal(PL_SIZE_UP(PL_MIB - 53), "1.0 MiB");
    for (uint64_t bytes = 1024; bytes < PL_GIB; bytes += bytes / 7 + 1) {
        char text[PL_SIZE_TEXT_BYTES];
        uint64_t parsed;
        pl_size_format_up(bytes, text);
        memmove(strchr(text, ' '), strchr(text, ' ') + 1, strlen(strchr(text, ' ')));
        assert_int_equal(pl_size_parse(text, 0, &parsed, NULL), 0);
        assert_true(parsed >= bytes && parsed <= bytes + bytes / 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_powers_of_1024),
        cmocka_unit_test(a_share_is_of_the_whole),
        cmocka_unit_test(what_is_no_size_is_refused_and_nothing_is_written),
        cmocka_unit_test(a_share_over_the_whole_is_refused),
        cmocka_unit_test(the_message_shows_the_text_and_the_forms),
        cmocka_unit_test(formatted_sizes_have_one_decimal_from_kib_on),
        cmocka_unit_test(rounding_moves_to_the_next_unit),
        cmocka_unit_test(what_is_rounded_up_is_enough),
    };
    return cmocka_run_group_tests_name("size", tests, NULL, NULL);
}
