/* SPDX-License-Identifier: Apache-2.0 */
/* Versions, ranges, markers and requirements of Python packages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "preflight/marker.h"
#include "preflight/version.h"

static void versions_have_the_order_of_pep_440(void **state)
{
    (void)state;
    static const char *const rising[] = {
        "0.9",       "1.0.dev1", "1.0a1", "1.0a2.dev1", "1.0a2",    "1.0b1",     "1.0rc1", "1.0",
        "1.0.post1", "1.0.1",    "1.2",   "1.10",       "9.1.0.70", "9.10.2.21", "2024.1", "1!0.1",
    };
    for (size_t i = 0; i < PL_COUNT_OF(rising); i++) {
        for (size_t j = 0; j < PL_COUNT_OF(rising); j++) {
            pl_version a, b;
            assert_int_equal(pl_version_parse(rising[i], &a), 0);
            assert_int_equal(pl_version_parse(rising[j], &b), 0);
            int r = pl_version_compare(&a, &b);
            assert_int_equal((r > 0) - (r < 0), (i > j) - (i < j));
        }
    }
}

static void ways_to_write_a_version_are_one(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"1.0", "1"},           {"1.0", "1.0.0"},         {"1.0a1", "1.0.alpha-1"},
        {"1.0rc1", "1.0c1"},    {"1.0rc1", "v1.0_pre1"},  {"1.0.post2", "1.0-rev2"},
        {"2.1.0", "2.1.0+cpu"}, {"1.0.post0", "1.0post"},
    };
    for (size_t i = 0; i < PL_COUNT_OF(pairs); i++) {
        pl_version a, b;
        assert_int_equal(pl_version_parse(pairs[i][0], &a), 0);
        assert_int_equal(pl_version_parse(pairs[i][1], &b), 0);
        assert_int_equal(pl_version_compare(&a, &b), 0);
    }
}

static void what_is_no_version_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",   "x",          "1.",          "1..2", "1.0 ", "1.0+",         "1.2.x",
        "-1", "1.0garbage", "99999999999", "1!",   "==1",  "1.2.3.4.5.6.7"};
    pl_version untouched;
    memset(&untouched, 7, sizeof untouched);
    for (size_t i = 0; i < PL_COUNT_OF(texts); i++) {
        pl_version version = untouched;
        assert_int_equal(pl_version_parse(texts[i], &version), PL_EFORMAT);
        assert_memory_equal(&version, &untouched, sizeof version);
    }
}

static void a_version_is_in_a_range_or_not(void **state)
{
    (void)state;
    static const struct {
        const char *version, *range;
        int is_in;
    } cases[] = {
        {"3.11", "", 1},
        {"3.11", ">=3.10 <3.14", 1},
        {"3.9", ">=3.10,<3.14", 0},
        {"3.14", ">=3.10 <3.14", 0},
        {"3.10", " >= 3.10 , < 3.14 ", 1},
        {"2.21.3", "==2.21.*", 1},
        {"2.2", "==2.21.*", 0},
        {"2.21", "==2.21.*", 1},
        {"2.1", "==2.*", 1},
        {"2.4.0", "==2.4.0", 1},
        {"2.4.0+cpu", "==2.4.0", 1},
        {"2.4.0+cpu", "==2.4.0+cu118", 0},
        {"2.4", "!=2.4.*", 0},
        {"2.5", "!=2.4.*", 1},
        {"3.9.7", "!=3.9.7", 0},
        {"1.4.5", "~=1.4.2", 1},
        {"1.5.0", "~=1.4.2", 0},
        {"1.9", "~=1.4", 1},
        {"2.0", "~=1.4", 0},
        {"1.4.1", "~=1.4.2", 0},
        {"2.3.0rc1", "<2.3", 0},
        {"2.2.9", "<2.3", 1},
        {"2.3.0rc1", "<2.3rc2", 1},
        {"2.3.0rc1", ">=2.3", 0},
        {"2.3.0", ">2.3", 0},
        {"2.3.post1", ">2.3", 0},
        {"2.3.post2", ">2.3.post1", 1},
        {"2.3.1+cpu", ">2.3", 1},
        {"2.3.1", "<=2.3", 0},
        {"1.0", "===1.0", 1},
        {"nonsense", ">=1", PL_EFORMAT},
        {"1.0", "1.0", PL_EFORMAT},
        {"1.0", ">=", PL_EFORMAT},
        {"1.0", ">=1.*", PL_EFORMAT},
        {"1.0", "~=1", PL_EFORMAT},
        {"1.0", ">=1;<2", PL_EFORMAT},
        {"0.1", ">=1 nonsense", PL_EFORMAT},
    };
    for (size_t i = 0; i < PL_COUNT_OF(cases); i++)
        if (pl_version_in(cases[i].version, cases[i].range) != cases[i].is_in)
            fail_msg("'%s' in '%s' is not %d", cases[i].version, cases[i].range, cases[i].is_in);
}

static const pl_marker_environment here = {.python_version = "3.11", .machine = "x86_64"};

static void a_marker_holds_or_not(void **state)
{
    (void)state;
    static const struct {
        const char *marker;
        bool holds;
    } cases[] = {
        {"python_version < '3.12'", true},
        {"python_version<\"3.9\"", false},
        {"python_version == '3.11.*'", true},
        {"python_full_version >= '3.10.0'", true},
        {"platform_system == 'Linux' and platform_machine == 'x86_64'", true},
        {"platform_machine == 'aarch64' or sys_platform == 'linux'", true},
        {"sys_platform == 'win32' or os_name == 'nt'", false},
        {"sys_platform != 'darwin'", true},
        {"(sys_platform == 'win32' or os_name == 'posix') and python_version > '3'", true},
        {"os_name == 'posix' or os_name == 'posix' and os_name == 'nt'", true},
        {"platform_machine in 'x86_64 AMD64'", true},
        {"platform_machine not in 'x86_64 AMD64'", false},
        {"python_version in '3.10 3.11'", true},
        {"python_version not in '3.8, 3.9'", true},
        {"python_version not in '3.10, 3.11'", false},
        {"extra == 'gpu'", false},
        {"extra == ''", true},
        {"implementation_name == 'cpython'", true},
        {"platform_python_implementation == 'PyPy'", false},
        {"platform_release == '6.1'", false},
        {"", false},
        {"python_version", false},
        {"python_version <", false},
        {"python_version < '3.12", false},
        {"python_version < '3.12' and", false},
        {"python_version < '3.12' nonsense", false},
        {"(python_version < '3.12'", false},
        {"python_version < 'x'", false},
        {"sys_platform < 'x'", false},
        {"'3.10' <= python_version", false}, /* nobody writes it so; it does not count */
        {"((((((((((((((((((os_name == 'posix'))))))))))))))))))", false},
        {"((((os_name == 'posix'))))", true},
    };
    for (size_t i = 0; i < PL_COUNT_OF(cases); i++)
        if (pl_marker_holds(cases[i].marker, &here) != cases[i].holds)
            fail_msg("'%s' is not %d", cases[i].marker, cases[i].holds);
}

static void a_requirement_has_a_name_and_a_range(void **state)
{
    (void)state;
    static const struct {
        const char *line, *name, *range;
    } cases[] = {
        {"numpy", "numpy", ""},
        {"NumPy (<2.0,>=1.21)", "numpy", "<2.0,>=1.21"},
        {"jax_cuda12.plugin >= 0.4 ; python_version > '3'", "jax-cuda12-plugin", ">= 0.4"},
        {"jax[cuda12, tpu]==0.5", "jax", "==0.5"},
        {"  torch==2.1.0+cpu", "torch", "==2.1.0+cpu"},
    };
    for (size_t i = 0; i < PL_COUNT_OF(cases); i++) {
        pl_requirement requirement;
        assert_int_equal(pl_requirement_parse(cases[i].line, &here, &requirement), 1);
        assert_string_equal(requirement.name, cases[i].name);
        assert_string_equal(requirement.range, cases[i].range);
    }
}

static void what_is_no_requirement_here_is_left_out(void **state)
{
    (void)state;
    char line[400];
    pl_requirement requirement;
    memset(line, 'a', sizeof line);
    line[sizeof line - 1] = '\0';
    assert_int_equal(pl_requirement_parse("x; extra == 'y'", &here, &requirement), 0);
    assert_int_equal(pl_requirement_parse("", &here, &requirement), PL_EFORMAT);
    assert_int_equal(pl_requirement_parse("x @ https://a/b.whl", &here, &requirement), PL_EFORMAT);
    assert_int_equal(pl_requirement_parse(line, &here, &requirement), PL_EFORMAT);
    assert_int_equal(pl_requirement_parse("[x]", &here, &requirement), PL_EFORMAT);
    memcpy(line, "torch ==", 8);
    assert_int_equal(pl_requirement_parse(line, &here, &requirement), PL_EFORMAT);
    assert_int_equal(pl_requirement_parse("x[unclosed", &here, &requirement), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_have_the_order_of_pep_440),
        cmocka_unit_test(ways_to_write_a_version_are_one),
        cmocka_unit_test(what_is_no_version_is_refused),
        cmocka_unit_test(a_version_is_in_a_range_or_not),
        cmocka_unit_test(a_marker_holds_or_not),
        cmocka_unit_test(a_requirement_has_a_name_and_a_range),
        cmocka_unit_test(what_is_no_requirement_here_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
