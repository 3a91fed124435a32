/* SPDX-License-Identifier: Apache-2.0 */
/* Corrupt records: whatever bytes a ledger, a crash file or a report.json holds, the report is made
 * or refused, and nothing crashes. Seeds are fixed; PLIMSOLL_FUZZ_ROUNDS asks for more of them.
 * Most useful under ASan and UBSan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>

#include "report_fixture.h"

static uint64_t random_state;

/* xorshift64*: the same numbers everywhere. */
static uint64_t random_u64(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}

static int n_rounds(int normal)
{
    const char *asked = getenv("PLIMSOLL_FUZZ_ROUNDS");
    return asked != NULL ? atoi(asked) : normal;
}

/* A run with something in every table, so that damage has something to hit. */
static void fill(fixture *f)
{
    fixture_samples(f, 8 * PL_GIB);
    fixture_event(f, PL_EVENT_REFUSED, 4121, PL_GIB, "load");
    fixture_event(f, PL_EVENT_STOPPED, 5000, PL_GIB, "worker");
    fixture_event(f, PL_EVENT_MARK, 4121, 0, "mark");
    fixture_site(f, 7, (int64_t)PL_GIB, "/home/user/model.py", 80, "forward");
    bool is_new;
    pl_site *site = pl_ledger_site(f->ledger, 9, 4121, &is_new);
    site->n_frames = 2;
    site->frames[0].module = pl_ledger_module(f->ledger, "/proc/self/exe");
    site->frames[0].offset = 0x1000;
    pl_site_add(site, (int64_t)PL_MIB, 1);
    for (int i = 1; i < 40; i++) {
        char file[64], id[16];
        snprintf(file, sizeof(file), "/tmp/ipykernel_4121/%d.py", i / 2);
        snprintf(id, sizeof(id), "cell-%d", i / 3);
        fixture_begin(f, i, id, file, i % 2 == 0 ? "import os\nx = load()\n" : NULL);
        fixture_site(f, 1000 + (uint64_t)i, (int64_t)PL_MIB * i, file, (uint32_t)i % 4, "load");
        if (i < 39)
            fixture_finish(f);
    }
    pl_crash *crash = fixture_crash(f);
    fixture_frame(crash, "/tmp/ipykernel_4121/19.py", 2, "load");
    fixture_frame(crash, "/tmp/ipykernel_4121/18.py", 1, "<module>");
    crash->maps_bytes = 4096;
    crash->stack_bytes = 4096;
}

static void overwrite(void *place, size_t n, size_t n_words)
{
    for (size_t i = 0; i < n_words; i++) {
        uint64_t word = random_u64();
        word = word % 4 == 0 ? UINT64_MAX : word % 4 == 1 ? word % 1024 : word;
        memcpy((char *)place + random_u64() % (n / 8) * 8, &word, sizeof(word));
    }
}

/* Damages the tables, and the header behind what pl_ledger_open() checks. */
static void damage(pl_ledger *ledger)
{
    size_t head = offsetof(pl_ledger_header, reserve_bytes);
    overwrite((char *)&ledger->header + head, sizeof(ledger->header) - head, random_u64() % 64);
    overwrite(&ledger->sum, sizeof(ledger->sum), random_u64() % 8);
    overwrite(ledger->slots, sizeof(ledger->slots), random_u64() % 1024);
    overwrite(ledger->events, sizeof(pl_event) * 16, random_u64() % 64);
    overwrite(ledger->samples, sizeof(ledger->samples), random_u64() % 1024);
    overwrite(ledger->sites, sizeof(ledger->sites), random_u64() % 4096);
    overwrite(ledger->modules, sizeof(ledger->modules), random_u64() % 256);
    overwrite(ledger->cells, sizeof(ledger->cells), random_u64() % 1024);
    overwrite(ledger->crashes, sizeof(ledger->crashes), random_u64() % 256);
}

static void write_noise(const char *directory, const char *name)
{
    char path[PATH_MAX];
    assert_int_equal(pl_run_record_path(directory, name, path), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("1000-2000 rw-p 00000000 00:00 0 /dev/shm/x\n", file);
    for (int i = 0; i < 1000; i++)
        putc((int)(random_u64() & 0xff), file);
    fclose(file);
}

static void print_everything(const json_t *report)
{
    for (unsigned flags = 0; flags < 4; flags++)
        free(fixture_text(report, flags));
}

static void print_top(const json_t *document)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    pl_report_top_text(document, out, 0);
    fclose(out);
    assert_null(strchr(text, '\033'));
    free(text);
}

/* The state of the run now, whatever its ledger holds. */
static void show_top(const fixture *f)
{
    json_t *document = NULL;
    assert_int_equal(pl_report_top(&f->record, &document, NULL), 0);
    char *dump = json_dumps(document, 0);
    assert_non_null(dump);
    free(dump);
    print_top(document);
    json_decref(document);
}

static void a_damaged_ledger_gives_a_report_that_is_valid_json(void **state)
{
    (void)state;
    for (int round = 0; round < n_rounds(40); round++) {
        random_state = (uint64_t)round * 2 + 1;
        fixture f;
        assert_int_equal(fixture_init(&f), 0);
        fill(&f);
        if (round % 2 == 0)
            fixture_end(&f, (int)random_u64());
        write_noise(f.record.directory, "crash.4121");
        write_noise(f.record.directory, PL_RECORD_HANG);
        damage(f.ledger);
        json_t *report = NULL;
        assert_int_equal(pl_report_load(&f.record, &report, NULL), 0);
        char *dump = json_dumps(report, 0);
        assert_non_null(dump);
        free(dump);
        print_everything(report);
        json_decref(report);
        show_top(&f);
        fixture_done(&f);
    }
}

/* Damages cells.jsonl: bytes changed, cut out and cut off. */
static void damage_sources(const fixture *f)
{
    char path[PATH_MAX], text[16384];
    assert_int_equal(pl_run_record_path(f->record.directory, PL_RECORD_CELLS, path), 0);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof(text), file);
    for (uint64_t i = random_u64() % 64; i > 0; i--)
        text[random_u64() % n] = i % 2 == 0 ? (char)random_u64() : "{}[]\"\\\n0"[random_u64() % 8];
    size_t from = random_u64() % n, length = random_u64() % (n - from);
    memmove(text + from, text + from + length, n - from - length);
    rewind(file);
    fwrite(text, 1, n, file);
    fclose(file);
    assert_int_equal(truncate(path, (off_t)(n - random_u64() % n)), 0);
}

static void damaged_sources_of_cells_give_a_report_that_is_valid_json(void **state)
{
    (void)state;
    for (int round = 0; round < n_rounds(200); round++) {
        random_state = (uint64_t)round * 2 + 1;
        fixture f;
        assert_int_equal(fixture_init(&f), 0);
        fill(&f);
        fixture_end(&f, SIGSEGV);
        damage_sources(&f);
        json_t *report = NULL;
        assert_int_equal(pl_report_build(f.ledger, f.record.directory, &report, NULL), 0);
        char *dump = json_dumps(report, 0);
        assert_non_null(dump);
        free(dump);
        print_everything(report);
        json_decref(report);
        show_top(&f);
        fixture_done(&f);
    }
}

static void a_ledger_of_noise_is_survived(void **state)
{
    (void)state;
    for (int round = 0; round < n_rounds(4); round++) {
        random_state = (uint64_t)round * 2 + 1;
        fixture f;
        assert_int_equal(fixture_init(&f), 0);
        size_t head = offsetof(pl_ledger_header, reserve_bytes);
        for (size_t i = head; i + 8 <= sizeof(*f.ledger); i += 8) {
            uint64_t word = random_u64();
            memcpy((char *)f.ledger + i, &word, sizeof(word));
        }
        json_t *report = NULL;
        assert_int_equal(pl_report_load(&f.record, &report, NULL), 0);
        print_everything(report);
        json_decref(report);
        show_top(&f);
        fixture_done(&f);
    }
}

/* Puts a value of another type, or nothing, in the place of one member, at any depth. */
static void disturb(json_t *value)
{
    if (json_is_object(value) && json_object_size(value) > 0) {
        size_t chosen = random_u64() % json_object_size(value), i = 0;
        const char *key;
        json_t *member;
        void *next;
        json_object_foreach_safe(value, next, key, member)
        {
            if (i++ != chosen)
                continue;
            if (random_u64() % 3 != 0 && (json_is_object(member) || json_is_array(member)))
                disturb(member);
            else if (random_u64() % 2 == 0)
                json_object_del(value, key);
            else
                json_object_set_new(value, key,
                                    random_u64() % 2 == 0 ? json_integer((json_int_t)random_u64())
                                                          : json_string("\033[31m\001"));
            return;
        }
    } else if (json_is_array(value) && json_array_size(value) > 0) {
        size_t chosen = random_u64() % json_array_size(value);
        if (random_u64() % 2 == 0)
            disturb(json_array_get(value, chosen));
        else
            json_array_set_new(value, chosen, json_null());
    }
}

static void a_report_with_wrong_types_prints_without_control_characters(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(fixture_init(&f), 0);
    fill(&f);
    fixture_end(&f, SIGSEGV);
    json_t *report = NULL;
    assert_int_equal(pl_report_build(f.ledger, f.record.directory, &report, NULL), 0);
    for (int round = 0; round < n_rounds(400); round++) {
        random_state = (uint64_t)round * 2 + 1;
        json_t *copy = json_deep_copy(report);
        for (uint64_t i = random_u64() % 8; i < 8; i++)
            disturb(copy);
        char *text = fixture_text(copy, PL_REPORT_FULL);
        assert_null(strchr(text, '\033'));
        free(text);
        print_everything(copy);
        print_top(copy);
        json_decref(copy);
    }
    json_decref(report);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_ledger_gives_a_report_that_is_valid_json),
        cmocka_unit_test(damaged_sources_of_cells_give_a_report_that_is_valid_json),
        cmocka_unit_test(a_ledger_of_noise_is_survived),
        cmocka_unit_test(a_report_with_wrong_types_prints_without_control_characters),
    };
    return cmocka_run_group_tests_name("report fuzz", tests, NULL, NULL);
}
