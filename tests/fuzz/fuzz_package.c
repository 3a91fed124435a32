/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what is installed with a Python package: its folder's name, METADATA, WHEEL,
 * requirements with their markers, versions and ranges, torch/version.py and TensorFlow's
 * build_info.py. Fields are texts that end; versions are in one order, and ranges agree with it.
 *
 * The first byte chooses which; two versions, or a version and a range, have a line end between. */
#include "fuzz.h"
#include "preflight/packages.h"
#include "preflight/version.h"

static const pl_marker_environment environment = {.python_version = "3.11", .machine = "x86_64"};

static long n_taken, n_refused; /* 0 of either would make the test worthless */

static void note(bool taken)
{
    n_taken += taken;
    n_refused += !taken;
}

static void check_end(const char *text, size_t n)
{
    REQUIRE(memchr(text, '\0', n) != NULL);
}

static void read_requirement(const char *line)
{
    pl_requirement requirement;
    int r = pl_requirement_parse(line, &environment, &requirement);
    REQUIRE(r == 0 || r == 1 || r == PL_EFORMAT);
    note(r == 1);
    if (r != 1)
        return;
    check_end(requirement.name, sizeof requirement.name);
    check_end(requirement.range, sizeof requirement.range);
    REQUIRE(requirement.name[0] != '\0' && strchr(requirement.range, ';') == NULL);
    (void)pl_package_is_watched(requirement.name);
    r = pl_version_in("2.1.0rc1+cu126", requirement.range);
    REQUIRE(r == 0 || r == 1 || r == PL_EFORMAT);
}

static void read_metadata(const char *text)
{
    static const char *const fields[] = {"Name", "Version", "Tag", "Requires-Dist"};
    for (size_t i = 0; i < PL_COUNT_OF(fields); i++) {
        char value[96], *last = exact(text, strlen(text) + 1);
        const char *cursor = last, *before = NULL;
        while (pl_package_field(&cursor, fields[i], value, sizeof value)) {
            REQUIRE(cursor > (before ? before : last) || *cursor == '\0');
            REQUIRE(cursor != before); /* it moves on, or there were no end */
            before = cursor;
            check_end(value, sizeof value);
            REQUIRE(strchr(value, '\n') == NULL);
            read_requirement(value);
        }
        free(last);
    }
}

static void read_folder(const char *text)
{
    pl_package package = {0};
    bool taken = pl_package_parse_folder(text, &package);
    note(taken);
    if (!taken)
        return;
    check_end(package.name, sizeof package.name);
    check_end(package.version, sizeof package.version);
    REQUIRE(package.name[0] != '\0');
}

static void read_build(const char *text)
{
    pl_package package = {0};
    pl_package_parse_torch(text, &package);
    pl_package_parse_tensorflow(text, &package);
    note(package.cuda[0] != '\0');
    check_end(package.cuda, sizeof package.cuda);
    check_end(package.compute, sizeof package.compute);
}

/* `sign` and the version as a range: does the other one lie in it? */
static int is_in(const char *version, const char *sign, const char *other)
{
    char *range = NULL;
    REQUIRE(asprintf(&range, "%s%s", sign, other) >= 0);
    int r = pl_version_in(version, range);
    free(range);
    return r;
}

static void compare_versions(const char *a, const char *b)
{
    pl_version left, right;
    int r = pl_version_parse(a, &left);
    REQUIRE(r == 0 || r == PL_EFORMAT);
    note(r == 0);
    if (r < 0)
        return;
    check_end(left.local, sizeof left.local);
    REQUIRE(left.n_parts > 0 && left.n_parts <= PL_VERSION_PARTS);
    REQUIRE(pl_version_compare(&left, &left) == 0);
    REQUIRE(is_in(a, "==", a) == 1 && is_in(a, "!=", a) == 0 && is_in(a, "<=", a) == 1);
    REQUIRE(is_in(a, "<", a) == 0 && is_in(a, ">", a) == 0);
    if (pl_version_parse(b, &right) < 0)
        return;
    int order = pl_version_compare(&left, &right);
    REQUIRE(order == -pl_version_compare(&right, &left));
    REQUIRE(is_in(a, "<=", b) == (order <= 0) && is_in(a, ">=", b) == (order >= 0));
    REQUIRE(is_in(a, "==", b) + is_in(a, "!=", b) == 1);
    REQUIRE(order != 0 || (is_in(a, "<", b) == 0 && is_in(a, ">", b) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    char *text = calloc(1, n); /* what follows the first byte, and a NUL */
    REQUIRE(text != NULL);
    memcpy(text, data + 1, n - 1);
    char *second = strchr(text, '\n');
    switch (data[0] % 6) {
    case 0:
        read_metadata(text);
        break;
    case 1:
        read_requirement(text);
        break;
    case 2:
        note(pl_marker_holds(text, &environment));
        break;
    case 3:
        read_folder(text);
        break;
    case 4:
        read_build(text);
        break;
    default:
        if (second != NULL)
            *second++ = '\0';
        compare_versions(text, second != NULL ? second : "");
        if (second != NULL)
            (void)!pl_version_in(text, second);
    }
    free(text);
    return 0;
}

#ifndef PL_LIBFUZZER

/* As packages of today have them; '|' cuts an input in two for none. */
static const char *const good[] = {
    "\0Metadata-Version: 2.1\nName: numpy\nVersion: 1.26.4\nRequires-Dist: typing-extensions\n"
    "Requires-Dist: nvidia-cublas-cu12==12.1.3.1; platform_system == \"Linux\"\n\n",
    "\0Wheel-Version: 1.0\r\nTag: cp311-cp311-manylinux_2_17_x86_64\r\nTag: py3-none-any\r\n",
    "\1numpy (<2.0,>=1.21) ; python_version < \"3.12\" and sys_platform == 'linux'",
    "\1nvidia-cudnn-cu12[all]~=9.1.0 ; (platform_machine != 'arm64' or extra == \"x\")",
    "\2python_version not in '3.8 3.9' and (os_name == \"posix\" or 'a' in 'abc')",
    "\3torch-1.13.0a0+git.egg-info",
    "\3numpy-1.26.4.dist-info",
    "\4from typing import Optional\ncuda: Optional[str] = '12.6'\n",
    "\4build_info = ('cuda_version', '12.5.1'), ('cuda_compute_capabilities', ['sm_60', "
    "'compute_90'])\n",
    "\0052.4rc1.post2.dev3\n2.4",
    "\0051!1.13.0a0+git1\nv1!1.13.0",
    "\0052.21.3\n>=2.4 <3,!=2.21.*,~=2.20",
};

static size_t length_of(const char *input)
{
    return 1 + strlen(input + 1);
}

static void what_packages_hold_today_is_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(good); i++) {
        n_taken = 0;
        try_input((const uint8_t *)good[i], length_of(good[i]));
        assert_true(n_taken > 0);
    }
}

static void no_bytes_harm_whoever_reads_them(void **state)
{
    (void)state;
    static const char words[] = "()[]<>=!~;,.*'\"+-_@\n\r: 0123456789andorextpy\x80\xff";
    uint8_t input[512];
    srandom(1);
    n_taken = n_refused = 0;
    for (long i = 0; i < n_tries; i++) {
        const char *from = good[(size_t)random() % PL_COUNT_OF(good)];
        size_t n = length_of(from);
        memcpy(input, from, n);
        for (long k = random() % 4; k > 0; k--)
            input[(size_t)random() % n] = (uint8_t)words[(size_t)random() % (sizeof words - 1)];
        n -= random() % 2 ? (size_t)random() % n : 0;
        try_input(input, n);
    }
    assert_true(n_taken > n_tries / 8 && n_refused > n_tries / 8);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 20000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_packages_hold_today_is_taken),
        cmocka_unit_test(no_bytes_harm_whoever_reads_them),
    };
    return cmocka_run_group_tests_name("fuzz_package", tests, NULL, NULL);
}

#endif
