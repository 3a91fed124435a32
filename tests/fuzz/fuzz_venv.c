/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the files that say where a Python is: pyvenv.cfg, .pth files and .python-version.
 * The first byte chooses which. */
#include "fuzz.h"
#include "preflight/interpreter.h"

static long n_values;

static void read_config(const char *text)
{
    static const char *const keys[] = {"home", "include-system-site-packages", "version",
                                       "version_info"};
    char value[64];
    pl_interpreter *interpreter = calloc(1, sizeof *interpreter);
    REQUIRE(interpreter != NULL);
    for (size_t i = 0; i < PL_COUNT_OF(keys); i++) {
        if (!pl_venv_value(text, keys[i], value, sizeof value))
            continue;
        size_t n = strnlen(value, sizeof value);
        REQUIRE(n < sizeof value && strpbrk(value, "\r\n") == NULL);
        REQUIRE(n == 0 || (value[0] != ' ' && value[n - 1] != ' '));
        n_values++;
        if (pl_interpreter_take_version(interpreter, value))
            REQUIRE(strspn(interpreter->version, "0123456789.") == strlen(interpreter->version) &&
                    strchr(interpreter->version, '.') != NULL);
    }
    free(interpreter);
}

static void read_pth(char *text, size_t n)
{
    char path[PATH_MAX], *cursor = text;
    size_t n_folders = 0;
    while (pl_pth_next(&cursor, "/usr/lib/python3/dist-packages", path)) {
        REQUIRE(path[0] == '/' && strpbrk(path, "\r\n") == NULL);
        REQUIRE(++n_folders <= n);
        n_values++;
    }
    REQUIRE(!pl_pth_next(&cursor, "/", path));
}

static void read_version(const char *text)
{
    char version[PL_PYENV_VERSION_BYTES];
    if (!pl_pyenv_version(text, version))
        return;
    REQUIRE(version[0] != '\0' && strpbrk(version, "/ \t\r\n:") == NULL);
    REQUIRE(strcmp(version, ".") != 0 && strcmp(version, "..") != 0);
    n_values++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    char *text = calloc(1, n); /* what follows the first byte, and a NUL */
    REQUIRE(text != NULL);
    memcpy(text, data + 1, n - 1);
    if (data[0] % 3 == 0)
        read_config(text);
    else if (data[0] % 3 == 1)
        read_pth(text, n);
    else
        read_version(text);
    free(text);
    return 0;
}

#ifndef PL_LIBFUZZER

static const char *const good[] = {
    "\0home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.2\n",
    "\0implementation = CPython\r\nversion_info = 3.13.0.final.0\r\nHOME=/opt/python/bin \t\r\n",
    "\1/opt/site\n# a comment\nimport sys; sys.path.append('x')\n\nrelative/folder\r\n../up\n",
    "\2 3.11.2:3.12\n",
};

static size_t length_of(const char *input)
{
    return 1 + strlen(input + 1);
}

static void what_tools_write_is_understood(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(good); i++) {
        n_values = 0;
        try_input((const uint8_t *)good[i], length_of(good[i]));
        assert_true(n_values > 0);
    }
}

static void a_version_never_leads_out_of_its_folder(void **state)
{
    (void)state;
    static const char *const bad[] = {"../../../tmp", "/tmp", "..", ".", "", "a/b", "3.11/../../x"};
    char version[PL_PYENV_VERSION_BYTES];
    for (size_t i = 0; i < PL_COUNT_OF(bad); i++)
        assert_false(pl_pyenv_version(bad[i], version));
    assert_true(pl_pyenv_version("3.11.2\n", version));
}

static void no_bytes_harm_whoever_reads_them(void **state)
{
    (void)state;
    static const char words[] = "= \t\r\n/.:#homeversion0123456789\x80\xff";
    uint8_t input[512];
    srandom(1);
    n_values = 0;
    for (long i = 0; i < n_tries; i++) {
        const char *from = good[(size_t)random() % PL_COUNT_OF(good)];
        size_t n = length_of(from);
        memcpy(input, from, n);
        for (long k = random() % 6; k > 0; k--)
            input[(size_t)random() % n] = (uint8_t)words[(size_t)random() % (sizeof words - 1)];
        n -= random() % 2 ? (size_t)random() % n : 0;
        try_input(input, n);
    }
    assert_true(n_values > n_tries);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 20000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_tools_write_is_understood),
        cmocka_unit_test(a_version_never_leads_out_of_its_folder),
        cmocka_unit_test(no_bytes_harm_whoever_reads_them),
    };
    return cmocka_run_group_tests_name("fuzz_venv", tests, NULL, NULL);
}

#endif
