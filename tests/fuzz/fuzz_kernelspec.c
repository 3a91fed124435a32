/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a kernel.json: a kernelspec whose words and problems can be asked for, or a message;
 * no byte of the file reaches a terminal raw. Programs that it names are looked for, and not run.
 */
#include "fuzz.h"
#include "jupyter/kernelspec.h"
#include "jupyter/spec_file.h"
#include "json/document.h"

static long n_taken, n_twins;

static void check_problems(const pl_kernelspec *kernel)
{
    pl_error problems[PL_KERNELSPEC_PROBLEMS] = {0};
    size_t n = pl_kernelspec_problems(kernel, problems);
    REQUIRE(n <= PL_KERNELSPEC_PROBLEMS);
    for (size_t i = 0; i < n; i++)
        REQUIRE(problems[i].code < 0 && problems[i].message[0] != '\0');
}

static void use(json_t *spec)
{
    char name[] = "python3", folder[] = "/nonexistent/kernels/python3";
    pl_kernelspec kernel = {.name = name, .folder = folder, .spec = spec};
    REQUIRE(pl_kernelspec_display_name(&kernel) && pl_kernelspec_language(&kernel));
    REQUIRE(pl_kernelspec_budget(&kernel) && pl_kernelspec_original(&kernel));
    REQUIRE(pl_kernelspec_word(&kernel, 0) != NULL);
    size_t command = pl_kernelspec_command(&kernel);
    REQUIRE(command == 0 || strcmp(pl_kernelspec_word(&kernel, command - 1), "--") == 0);
    check_problems(&kernel);
    n_taken++;
    n_twins += pl_kernelspec_is_twin(&kernel);
    char *text = pl_json_dump(spec, JSON_INDENT(1));
    json_t *again = NULL;
    REQUIRE(text != NULL && pl_spec_parse(text, strlen(text), "again", &again, NULL) == 0);
    REQUIRE(json_equal(spec, again));
    json_decref(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    json_t *spec = NULL;
    pl_error error = {0};
    char *text = exact(data, n);
    int r = pl_spec_parse(text, n, "kernel.json", &spec, &error);
    REQUIRE(r == 0 || r == PL_ECORRUPT);
    if (r < 0)
        check_message(r, &error);
    else
        use(spec);
    json_decref(spec);
    free(text);
    return 0;
}

#ifndef PL_LIBFUZZER

static const char *const good[] = {
    "{\"argv\": [\"python3\", \"-m\", \"ipykernel_launcher\", \"-f\", \"{connection_file}\"], "
    "\"display_name\": \"Python 3\", \"language\": \"python\", \"metadata\": {\"debugger\": true}}",
    "{\"argv\": [\"/usr/bin/plimsoll\", \"run\", \"--budget\", \"4G\", \"--\", "
    "\"/usr/bin/python3\", "
    "\"-m\", \"ipykernel_launcher\"], \"env\": {\"A\": \"1\"}, \"metadata\": {\"plimsoll\": "
    "{\"twin_of\": \"python3\", \"original\": \"/usr/share/jupyter/kernels/python3\"}}}",
};

static void kernelspecs_and_twins_are_taken(void **state)
{
    (void)state;
    n_taken = n_twins = 0;
    for (size_t i = 0; i < PL_COUNT_OF(good); i++)
        try_input((const uint8_t *)good[i], strlen(good[i]));
    assert_int_equal(n_taken, 2);
    assert_int_equal(n_twins, 1);
}

static void an_escape_in_the_file_is_not_in_the_message(void **state)
{
    (void)state;
    static const char bad[] = "{\"argv\": [\"x\"], \x1b[31m}";
    try_input((const uint8_t *)bad, strlen(bad));
}

static void no_bytes_harm_whoever_reads_them(void **state)
{
    (void)state;
    static const char words[] = "{}[]\",:\\0\x1b\x80\xff";
    uint8_t input[512];
    srandom(1);
    n_taken = 0;
    for (long i = 0; i < n_tries; i++) {
        const char *from = good[(size_t)random() % PL_COUNT_OF(good)];
        size_t n = strlen(from);
        memcpy(input, from, n);
        for (long k = random() % 3; k > 0; k--)
            input[(size_t)random() % n] =
                random() % 2 ? (uint8_t)random() : (uint8_t)words[(size_t)random() % sizeof words];
        try_input(input, n);
    }
    assert_true(n_taken > n_tries / 8 && n_taken < n_tries);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 5000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernelspecs_and_twins_are_taken),
        cmocka_unit_test(an_escape_in_the_file_is_not_in_the_message),
        cmocka_unit_test(no_bytes_harm_whoever_reads_them),
    };
    return cmocka_run_group_tests_name("fuzz_kernelspec", tests, NULL, NULL);
}

#endif
