/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the lines of a quarantine's manifest: each says nothing, or which file goes back
 * where, and neither name leads out of its folder. Nothing is moved. */
#include "fuzz.h"
#include "verify/quarantine_private.h"

static long n_entries; /* 0 would make the test worthless */

static void check_entry(const pl_quarantine_entry *entry)
{
    char again[PATH_MAX];
    REQUIRE(memchr(entry->path, '\0', sizeof entry->path) != NULL);
    REQUIRE(memchr(entry->name, '\0', sizeof entry->name) != NULL);
    REQUIRE(entry->path[0] == '/' && strchr(entry->name, '/') == NULL);
    REQUIRE(strspn(entry->name, "0123456789") >= 6);
    const char *last = strrchr(entry->path, '/') + 1;
    REQUIRE(last[0] != '\0' && strcmp(last, ".") != 0 && strcmp(last, "..") != 0);
    /* What is read can be written, and says the same then. */
    json_t *line = json_object();
    REQUIRE(json_object_set_new(line, pl_quarantine_path_key(entry->path),
                                pl_quarantine_path_to_json(entry->path)) == 0);
    REQUIRE(pl_quarantine_path_from_json(line, again) && strcmp(again, entry->path) == 0);
    json_decref(line);
    n_entries++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    pl_quarantine_entry *entry = malloc(sizeof *entry);
    char *text = exact(data, n);
    REQUIRE(entry != NULL);
    for (char *line = text, *end = text + n, *feed; line < end; line = feed + 1) {
        feed = memchr(line, '\n', (size_t)(end - line));
        feed = feed ? feed : end;
        if (pl_quarantine_parse(line, (size_t)(feed - line), entry))
            check_entry(entry);
    }
    free(text);
    free(entry);
    return 0;
}

#ifndef PL_LIBFUZZER

static const char good[] =
    "{\"from\":\"/data/set/a.jpg\",\"to\":\"000001-a.jpg\",\"reason\":\"truncated\"}\n"
    "{\"from_hex\":\"2f646174612fff2e6a7067\",\"to\":\"000002-file\",\"reason\":\"\"}\n";

static void both_kinds_of_paths_are_read(void **state)
{
    (void)state;
    n_entries = 0;
    try_input((const uint8_t *)good, sizeof good - 1);
    assert_int_equal(n_entries, 2);
}

static void what_leads_out_of_a_folder_is_not_believed(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"from\":\"/data/a\",\"to\":\"../000001-a\"}",
        "{\"from\":\"/data/a\",\"to\":\"000001-/../a\"}",
        "{\"from\":\"/data/a\",\"to\":\"manifest.jsonl\"}",
        "{\"from\":\"data/a\",\"to\":\"000001-a\"}",
        "{\"from\":\"/data/..\",\"to\":\"000001-a\"}",
        "{\"from\":\"/data/\",\"to\":\"000001-a\"}",
        "{\"from_hex\":\"2f6\",\"to\":\"000001-a\"}",
        "{\"from_hex\":\"2f612f620063\",\"to\":\"000001-a\"}", /* a NUL in it */
        "{\"from_hex\":\"2g\",\"to\":\"000001-a\"}",
        "[]",
    };
    n_entries = 0;
    for (size_t i = 0; i < PL_COUNT_OF(bad); i++)
        try_input((const uint8_t *)bad[i], strlen(bad[i]));
    assert_int_equal(n_entries, 0);
}

static void no_bytes_harm_whoever_reads_them(void **state)
{
    (void)state;
    static const char words[] = "{}\",:\\/.0fF-\n\x80\xff";
    uint8_t input[sizeof good];
    srandom(1);
    n_entries = 0;
    for (long i = 0; i < n_tries; i++) {
        size_t n = sizeof good - 1;
        memcpy(input, good, n);
        for (long k = random() % 4; k > 0; k--)
            input[(size_t)random() % n] = (uint8_t)words[(size_t)random() % sizeof words];
        try_input(input, n);
    }
    assert_true(n_entries > n_tries / 8 && n_entries < 2 * n_tries);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 5000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_kinds_of_paths_are_read),
        cmocka_unit_test(what_leads_out_of_a_folder_is_not_believed),
        cmocka_unit_test(no_bytes_harm_whoever_reads_them),
    };
    return cmocka_run_group_tests_name("fuzz_quarantine", tests, NULL, NULL);
}

#endif
