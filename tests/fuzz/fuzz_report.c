/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what a run left behind, and all that is told of it: what `explain`, `runs` and `top`
 * print has no control character, is UTF-8, and the documents are whole JSON. By the first byte:
 *   0  the rest is a report.json
 *   1  the rest are patches for the ledger of a lively run, as in fuzz_ledger: u32 where, u8 n,
 *      n bytes; the ledger becomes a report
 *   2  the rest is the cells.jsonl of that run
 *   3  the rest is the crash.PID of that run, whose maps end at an empty line */
#include <fcntl.h>
#include <unistd.h>

#include "fuzz.h"

#include "../unit/report_fixture.h"
#include "codec/text/utf8.h"
#include "report/json_file.h"

static fixture run;
static pl_ledger *good; /* a copy, to undo patches from */
static long n_told;     /* 0 would make the test worthless */

static void remove_run(void)
{
    fixture_done(&run);
    free(good);
}

static void fill_crash(void)
{
    pl_crash *crash = fixture_crash(&run);
    fixture_frame(crash, "/tmp/ipykernel_4121/2.py", 2, "load");
    strcpy(crash->abort_message, "double free or corruption (out)");
    strcpy(crash->exception_type, "St9bad_alloc");
    crash->registers[PL_REGISTER_SP] = 0x7ffd00001000;
    crash->registers[PL_REGISTER_PC] = 0x400100;
    crash->maps_bytes = crash->stack_bytes = 64;
}

/* The same in every run: nothing is of now. */
static void set_clocks(void)
{
    pl_ledger_header *header = &run.ledger->header;
    int64_t shift = (int64_t)(1000 * PL_NS_PER_SEC - header->started_monotonic_ns);
    header->started_monotonic_ns += (uint64_t)shift;
    header->started_realtime_ns = UINT64_C(1700000000) * PL_NS_PER_SEC;
    header->ended_realtime_ns = header->started_realtime_ns + 100 * PL_NS_PER_SEC;
    for (size_t i = 0; i < PL_EVENTS; i++)
        if (run.ledger->events[i].time_ns != 0)
            run.ledger->events[i].time_ns = (1050 + i) * PL_NS_PER_SEC;
    for (size_t i = 0; i < PL_SAMPLES; i++)
        if (run.ledger->samples[i].time_ns != 0)
            run.ledger->samples[i].time_ns = 1000 * PL_NS_PER_SEC + i * PL_NS_PER_SEC / 10;
    run.ledger->crashes[0].time_ns = 1099 * PL_NS_PER_SEC;
}

static void make_run(void)
{
    REQUIRE(fixture_init(&run) == 0);
    atexit(remove_run);
    fixture_samples(&run, 8 * PL_GIB);
    fixture_event(&run, PL_EVENT_REFUSED, 4121, PL_GIB, "load");
    fixture_event(&run, PL_EVENT_STOPPED, 5000, PL_GIB, "worker");
    fixture_site(&run, 7, (int64_t)PL_GIB, "/home/user/model.py", 80, "forward");
    fixture_begin(&run, 1, "cell-1", "/tmp/ipykernel_4121/1.py", "import os\n");
    fixture_finish(&run);
    fixture_begin(&run, 2, "cell-2", "/tmp/ipykernel_4121/2.py", "x = 1\ny = load()\n");
    fill_crash();
    fixture_end(&run, SIGSEGV);
    set_clocks();
    good = malloc(sizeof *good);
    REQUIRE(good != NULL);
    memcpy(good, run.ledger, sizeof *good);
}

static void check_text(char *text, size_t n)
{
    REQUIRE(pl_utf8_valid_bytes(text, n, NULL) == n);
    for (const char *c = text; c < text + n; c++)
        REQUIRE(*c == '\n' || ((uint8_t)*c >= ' ' && *c != 0x7f));
    REQUIRE(memmem(text, n, "\u202e", 3) == NULL); /* which turns the direction of writing */
    n_told += n > 0;
    free(text);
}

static void tell(const json_t *document)
{
    char *text = NULL;
    size_t n = 0;
    for (int how = 0; how < 4; how++) {
        FILE *out = open_memstream(&text, &n);
        REQUIRE(out != NULL);
        if (how < 2)
            pl_report_text(document, out, how == 0 ? PL_REPORT_FULL : 0);
        else if (how == 2)
            pl_report_top_text(document, out, 0);
        else
            pl_report_runs_text(document, out);
        fclose(out);
        check_text(text, n);
    }
    json_t *runs = json_pack("[O]", document); /* as `runs` has it: one of a list */
    FILE *out = open_memstream(&text, &n);
    REQUIRE(runs != NULL && out != NULL);
    pl_report_runs_text(runs, out);
    fclose(out);
    check_text(text, n);
    json_decref(runs);
}

static void tell_bytes(const uint8_t *data, size_t n)
{
    json_t *report = NULL;
    pl_error error = {0};
    char *text = exact(data, n);
    int r = pl_json_file_parse(text, n, &report, &error);
    free(text);
    if (r < 0)
        check_message(r, &error);
    else
        tell(report);
    json_decref(report);
}

static void tell_run(void)
{
    json_t *report = NULL, *top = NULL;
    REQUIRE(pl_report_build(run.ledger, run.record.directory, &report, NULL) == 0);
    char *text = json_dumps(report, PL_REPORT_JSON_FLAGS);
    REQUIRE(text != NULL);
    free(text);
    tell(report);
    json_decref(report);
    int r = pl_report_top(&run.record, &top, NULL);
    REQUIRE(r == 0 || r == PL_ECORRUPT || r == PL_EVERSION);
    if (r == 0)
        tell(top);
    json_decref(top);
}

/* What pl_ledger_open() compares, at the ledger's very start, stays: the report is of what it
 * lets pass. */
static void patch_ledger(const uint8_t *data, size_t n)
{
    size_t first = offsetof(pl_ledger_header, reserve_bytes);
    memcpy(run.ledger, good, sizeof *good);
    while (n > 5) {
        size_t where = data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16, length = data[4];
        where = first + where % (sizeof *good - first);
        length = pl_min_u64(length, pl_min_u64(n - 5, sizeof *good - where));
        memcpy((char *)run.ledger + where, data + 5, length);
        data += 5 + length;
        n -= 5 + length;
    }
}

static void write_file(const char *name, const uint8_t *data, size_t n)
{
    char path[PATH_MAX];
    REQUIRE(pl_run_record_path(run.record.directory, name, path) == 0);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && pwrite(fd, data, n, 0) == (ssize_t)n);
    close(fd);
}

static void write_crash(const uint8_t *data, size_t n)
{
    const uint8_t *end = n > 0 ? memmem(data, n, "\n\n", 2) : NULL;
    size_t maps = end ? (size_t)(end - data) + 1 : n;
    memcpy(run.ledger, good, sizeof *good);
    run.ledger->crashes[0].maps_bytes = maps;
    run.ledger->crashes[0].stack_bytes = n - maps;
    write_file("crash.4121", data, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (good == NULL)
        make_run();
    if (n == 0)
        return 0;
    if (data[0] % 4 == 0) {
        tell_bytes(data + 1, n - 1);
        return 0;
    }
    if (data[0] % 4 == 1)
        patch_ledger(data + 1, n - 1);
    else if (data[0] % 4 == 2)
        write_file(PL_RECORD_CELLS, data + 1, n - 1);
    else
        write_crash(data + 1, n - 1);
    tell_run();
    return 0;
}

#ifndef PL_LIBFUZZER

static void put_report(uint8_t *input, size_t *ret_n)
{
    json_t *report = NULL;
    if (good == NULL)
        make_run();
    REQUIRE(pl_report_build(run.ledger, run.record.directory, &report, NULL) == 0);
    char *text = json_dumps(report, JSON_COMPACT);
    const char *name = strrchr(run.record.directory, '/') + 1; /* another one in each run */
    for (char *at = text; (at = strstr(at, name)) != NULL; at += strlen(name))
        memset(at, 'x', strlen(name));
    input[0] = 0;
    *ret_n = 1 + strlen(text);
    memcpy(input + 1, text, *ret_n - 1);
    free(text);
    json_decref(report);
}

static uint8_t input[1 << 20];

static void a_whole_run_is_told_in_every_form(void **state)
{
    (void)state;
    size_t n;
    put_report(input, &n);
    n_told = 0;
    try_input(input, n);
    assert_true(n_told >= 2);
    n_told = 0;
    try_input((const uint8_t *)"\1", 1);
    assert_true(n_told >= 4);
}

/* Values of another kind, text that a terminal obeys, and JSON that is cut off. */
static void a_report_that_was_changed_is_told_or_refused(void **state)
{
    (void)state;
    static const char *const words[] = {
        "null", "-1", "\"\\u001b[31m\"",     "[]",          "{}", "1e300", "\"\\u0000\"", "}",
        "]",    "\"", "9223372036854775807", "\"\\u202e\"",
    };
    static uint8_t whole[sizeof input];
    size_t n_whole;
    put_report(whole, &n_whole);
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        size_t n = n_whole;
        memcpy(input, whole, n);
        for (long k = random() % 4; k >= 0; k--) {
            const char *word = words[(size_t)random() % PL_COUNT_OF(words)];
            size_t at = 1 + (size_t)random() % (n - 64);
            uint8_t *colon = memchr(input + at, ':', n - at);
            uint8_t *end = colon ? memchr(colon, ',', n - (size_t)(colon - input)) : NULL;
            if (!end)
                continue;
            size_t length = strlen(word), rest = n - (size_t)(end - input);
            memmove(colon + 1 + length, end, rest);
            memcpy(colon + 1, word, length);
            n = (size_t)(colon - input) + 1 + length + rest;
        }
        try_input(input, n);
    }
}

static void a_record_that_was_damaged_is_told(void **state)
{
    (void)state;
    static const char cells[] = "\2{\"number\":2,\"id\":\"cell-2\",\"file\":\"/tmp/ipykernel_4121/"
                                "2.py\",\"source\":\"x = 1\\ny = load()\\n\"}\n";
    static const char maps[] = "\3"
                               "00400000-00500000 r-xp 00000000 08:01 1234   /usr/bin/python3.11\n"
                               "7ffd00000000-7ffd00100000 rw-p 00000000 00:00 0   [stack]\n\n"
                               "\0\1\100\0\0\0\0\0"
                               "stack of the thread";
    srandom(1);
    n_told = 0;
    for (long i = 0; i < n_tries / 20; i++) {
        bool crash = random() % 2;
        size_t n = crash ? sizeof maps - 1 : sizeof cells - 1;
        memcpy(input, crash ? maps : cells, n);
        for (long k = random() % 4; k > 0; k--)
            input[1 + (size_t)random() % (n - 1)] = (uint8_t)random();
        try_input(input, n);
        input[0] = 1;
        for (n = 1; n < 200; n++)
            input[n] = (uint8_t)(random() % 4 ? random() : -(random() % 2));
        for (size_t k = 1; k < n; k += 5 + 8)
            input[k + 4] = 8;
        try_input(input, n);
    }
    assert_true(n_told > n_tries / 20);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 1000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_run_is_told_in_every_form),
        cmocka_unit_test(a_report_that_was_changed_is_told_or_refused),
        cmocka_unit_test(a_record_that_was_damaged_is_told),
    };
    return cmocka_run_group_tests_name("fuzz_report", tests, NULL, NULL);
}

#endif
