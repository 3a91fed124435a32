/* SPDX-License-Identifier: Apache-2.0 */
/* A notebook's cells in the report and in `plimsoll top`: their places, sources, tables and the few
 * lines that the next kernel shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>

#include "report/cell_sources.h"
#include "report_fixture.h"

#define FIRST  "/tmp/ipykernel_4121/1111.py"
#define SECOND "/tmp/ipykernel_4121/2222.py"
#define THIRD  "/tmp/ipykernel_4121/3333.py"

static json_t *top(const fixture *f)
{
    json_t *document = NULL;
    pl_error error = {0};
    if (pl_report_top(&f->record, &document, &error) < 0)
        fail_msg("%s", error.message);
    return document;
}

#define ASSERT_DOES_NOT_SAY(text, part)                                                            \
    do {                                                                                           \
        if (strstr((text), (part)) != NULL)                                                        \
            fail_msg("'%s' is in '%s'", (part), (text));                                           \
    } while (0)

static const json_t *ran_at_the_end(const json_t *report)
{
    return json_object_get(json_object_get(report, "notebook"), "cell");
}

/* The text of the brief's line with this label; NULL when it has none. */
static const char *brief_line(const json_t *report, const char *label)
{
    const json_t *brief = json_object_get(report, "brief");
    for (size_t i = 0; i < json_array_size(brief); i++)
        if (strcmp(text_of(json_array_get(brief, i), "label"), label) == 0)
            return text_of(json_array_get(brief, i), "text");
    return NULL;
}

static pl_cell_sources *load_cells(const fixture *f)
{
    pl_cell_sources *cells = NULL;
    assert_int_equal(pl_cell_sources_load(f->ledger, f->record.directory, &cells), 0);
    return cells;
}

/* Appends bytes to cells.jsonl as they are. */
static void append(const fixture *f, const char *bytes, size_t n)
{
    char path[PATH_MAX];
    assert_int_equal(pl_run_record_path(f->record.directory, PL_RECORD_CELLS, path), 0);
    FILE *out = fopen(path, "a");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(out);
}

#define APPEND(f, text) append((f), (text), strlen(text))

static void a_crash_in_a_cell_is_told_with_its_number_line_and_source(void **state)
{
    fixture *f = *state;
    fixture_begin(f, 3, "c-3", FIRST, "import ctypes\n\n  ctypes.string_at(0)  # fatal \n");
    pl_crash *crash = fixture_crash(f);
    fixture_frame(crash, "/usr/lib/python3.11/ctypes/__init__.py", 519, "string_at");
    fixture_frame(crash, FIRST, 3, "<module>");
    fixture_end(f, SIGSEGV);
    json_t *report = build(f);
    ASSERT_SAYS(text_of(report, "summary"),
                "crashed: segmentation fault in the kernel (pid 4121) at In [3] line 3");
    const json_t *frame = json_array_get(json_object_get(report, "python"), 1);
    assert_int_equal(number_of(frame, "cell"), 3);
    assert_string_equal(text_of(frame, "source"), "ctypes.string_at(0)  # fatal");
    assert_string_equal(text_of(frame, "file"), FIRST);
    assert_null(json_object_get(json_array_get(json_object_get(report, "python"), 0), "cell"));
    const json_t *cell = ran_at_the_end(report);
    assert_int_equal(number_of(cell, "number"), 3);
    assert_int_equal(number_of(cell, "line"), 3);
    assert_string_equal(text_of(cell, "id"), "c-3");
    assert_string_equal(brief_line(report, "cell"), "In [3] line 3: ctypes.string_at(0)  # fatal");
    assert_non_null(brief_line(report, "peak"));
    ASSERT_SAYS(brief_line(report, "more"), "%plimsoll explain ");

    char *text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "  In [3] line 3\n      ctypes.string_at(0)  # fatal\n");
    ASSERT_DOES_NOT_SAY(text, FIRST);
    free(text);
    json_decref(report);
}

static void the_short_text_is_the_brief(void **state)
{
    fixture *f = *state;
    fixture_begin(f, 3, "c-3", FIRST, "while True: pass\n");
    f->ledger->cells[atomic_load(&f->ledger->sum.cell) - 1].started_ns -= 40 * PL_NS_PER_SEC;
    atomic_store(&f->ledger->sum.peak_resident_bytes, PL_GIB);
    fixture_end(f, SIGKILL);
    json_t *report = build(f);
    char expected[1024 + PATH_MAX];
    snprintf(expected, sizeof(expected),
             "plimsoll: killed: SIGKILL from outside ended the kernel (pid 4121); memory had no "
             "part in it\n"
             "  cell:  In [3], which begins: while True: pass, running for 40 s\n"
             "  peak:  1.0 GiB resident of 10.0 GiB (cgroup v2 /user.slice)\n"
             "  next:  ask who sent it: a restart from the notebook, a user, a batch system's time "
             "limit, a container being stopped\n"
             "  more:  plimsoll explain %s\n",
             f->record.directory);
    char *text = fixture_text(report, 0);
    assert_string_equal(text, expected);
    free(text);
    json_decref(report);
}

static void a_kernel_that_was_shut_down_has_no_brief(void **state)
{
    fixture *f = *state;
    fixture_begin(f, 3, "c-3", FIRST, "pass\n");
    fixture_finish(f);
    fixture_event(f, PL_EVENT_DIED, 5000, 0, "worker");
    fixture_end(f, 0);
    json_t *report = build(f);
    assert_null(json_object_get(report, "brief"));
    assert_null(ran_at_the_end(report));
    assert_string_equal(text_of(json_object_get(report, "notebook"), "kernel"),
                        "/run/user/kernel-1.json");
    json_decref(report);
}

static void what_is_known_of_the_notebook_is_told(void **state)
{
    fixture *f = *state;
    strcpy(f->ledger->header.kernel, "/run/k.json");
    strcpy(f->ledger->header.notebook, "work/plot.ipynb");
    strcpy(f->ledger->header.previous, "20261116-031522-4121");
    json_t *report = build(f);
    const json_t *notebook = json_object_get(report, "notebook");
    assert_string_equal(text_of(notebook, "path"), "work/plot.ipynb");
    assert_string_equal(text_of(notebook, "previous"), "20261116-031522-4121");
    json_decref(report);
    f->ledger->header.kernel[0] = '\0';
    report = build(f);
    assert_null(json_object_get(report, "notebook"));
    assert_null(json_object_get(report, "cells"));
    json_decref(report);
}

static void a_function_from_another_cell_leads_back_to_the_line_that_called_it(void **state)
{
    fixture *f = *state;
    fixture_source(f, 1, "a", FIRST, "def load():\n    return crash()\n");
    fixture_source(f, 5, "c", THIRD, "def run_all(): ...\n");
    fixture_begin(f, 2, "b", SECOND, "x = 1\ny = helper()\n");
    pl_crash *crash = fixture_crash(f);
    fixture_frame(crash, FIRST, 2, "load");
    fixture_frame(crash, SECOND, 1, "helper");
    fixture_frame(crash, SECOND, 2, "<cell line: 1>");
    fixture_frame(crash, THIRD, 1, "run_all");
    fixture_end(f, SIGSEGV);
    json_t *report = build(f);
    ASSERT_SAYS(text_of(report, "summary"), " at In [1] line 2 in load()");
    assert_string_equal(brief_line(report, "cell"), "In [2] line 2: y = helper()");
    char *text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "  In [2] line 2\n"); /* not "in <cell line: 1>" */
    free(text);
    json_decref(report);
}

static void a_refusal_in_an_earlier_cell_is_not_where_the_last_one_was(void **state)
{
    fixture *f = *state;
    pl_event event = {.kind = PL_EVENT_REFUSED, .pid = 4121, .bytes = PL_GIB, .where.line = 1};
    strcpy(event.where.file, FIRST);
    fixture_begin(f, 3, "a", FIRST, "big()\n");
    pl_ledger_event(f->ledger, &event);
    fixture_finish(f);
    fixture_begin(f, 4, "a", FIRST, NULL); /* the same cell, another run */
    fixture_end(f, 1 << 8);
    json_t *report = build(f);
    assert_null(json_object_get(ran_at_the_end(report), "line"));
    json_decref(report);

    pl_ledger_event(f->ledger, &event);
    report = build(f);
    ASSERT_SAYS(text_of(report, "summary"), "asked for 1.0 GiB at In [4] line 1");
    assert_int_equal(number_of(ran_at_the_end(report), "line"), 1);
    assert_string_equal(brief_line(report, "cell"), "In [4] line 1: big()");
    ASSERT_SAYS(brief_line(report, "next"), "allow more with %plimsoll budget SIZE");
    ASSERT_DOES_NOT_SAY(brief_line(report, "next"), "--");
    const json_t *refusal = json_array_get(json_object_get(report, "refusals"), 0);
    assert_int_equal(number_of(json_object_get(refusal, "python"), "cell"), 4);
    json_decref(report);
}

static void the_ledger_names_a_cell_whose_source_was_not_written(void **state)
{
    fixture *f = *state;
    assert_int_equal(pl_cell_begin(f->ledger, "a", 7), 0);
    pl_cell_set_file(f->ledger, FIRST);
    fixture_site(f, 9, (int64_t)PL_GIB, FIRST, 2, "load");
    fixture_end(f, SIGKILL);
    json_t *report = build(f);
    const json_t *site = json_array_get(json_object_get(report, "sites"), 0);
    assert_string_equal(text_of(site, "place"), "In [7] line 2 in load()");
    assert_int_equal(number_of(site, "cell"), 7);
    assert_null(json_object_get(json_object_get(site, "python"), "source"));
    assert_string_equal(brief_line(report, "cell"), "In [7]");
    json_decref(report);
}

static void every_version_of_a_cell_is_known_by_its_file(void **state)
{
    fixture *f = *state;
    fixture_source(f, 1, "a", FIRST, "old()\n");
    fixture_source(f, 2, "a", SECOND, "new()\n");
    fixture_source(f, 3, "a", SECOND, NULL);
    pl_cell_sources *cells = load_cells(f);
    char text[PL_CELLS_TEXT_BYTES], title[PL_CELLS_TITLE_BYTES];
    assert_int_equal(pl_cell_sources_number(cells, FIRST), 1);
    assert_int_equal(pl_cell_sources_number(cells, SECOND), 3);
    assert_int_equal(pl_cell_sources_number(cells, THIRD), 0);
    pl_cell_sources_line(cells, FIRST, 1, text);
    assert_string_equal(text, "old()");
    pl_cell_sources_line(cells, SECOND, 1, text);
    assert_string_equal(text, "new()");
    pl_cell_sources_title(cells, "a", title);
    assert_string_equal(title, "new()");
    pl_cell_sources_line(cells, SECOND, 2, text);
    assert_string_equal(text, "");
    pl_cell_sources_line(cells, SECOND, UINT64_MAX, text);
    assert_string_equal(text, "");
    pl_cell_sources_line(cells, SECOND, 0, text);
    assert_string_equal(text, "");
    pl_cell_sources_free(cells);
}

static void the_title_is_the_first_line_of_code(void **state)
{
    fixture *f = *state;
    char title[PL_CELLS_TITLE_BYTES], source[400] = "\n \t\n  # a comment\n#\n\tx = '";
    for (int i = 0; i < 60; i++)
        strcat(source, "\xc3\xa9"); /* two bytes each: 80 are 37 of them */
    fixture_source(f, 1, "a", FIRST, source);
    fixture_source(f, 2, "b", SECOND, "# only a comment\n\n");
    pl_cell_sources *cells = load_cells(f);
    pl_cell_sources_title(cells, "a", title);
    assert_int_equal(strlen(title), strlen("x = '") + 2 * 37);
    pl_cell_sources_title(cells, "b", title);
    assert_string_equal(title, "");
    pl_cell_sources_title(cells, "no such", title);
    assert_string_equal(title, "");
    pl_cell_sources_free(cells);
}

static void cells_with_long_ids_are_told_apart_by_their_ends(void **state)
{
    static const char notebook[] = "vscode-notebook-cell:/home/ada/some/long/way/down/to/the/"
                                   "notebooks/analysis.ipynb";
    fixture *f = *state;
    char first[200], second[200], title[PL_CELLS_TITLE_BYTES];
    snprintf(first, sizeof(first), "%s#W0s", notebook);
    snprintf(second, sizeof(second), "%s#W1s", notebook);
    fixture_source(f, 1, first, FIRST, "one()\n");
    fixture_source(f, 2, second, SECOND, "two()\n");
    pl_cell_sources *cells = load_cells(f);
    pl_cell_sources_title(cells, pl_cell_kept_id(first), title);
    assert_string_equal(title, "one()");
    pl_cell_sources_title(cells, pl_cell_kept_id(second), title);
    assert_string_equal(title, "two()");
    pl_cell_sources_free(cells);
}

static void bad_lines_are_skipped_and_a_torn_last_one_is_ignored(void **state)
{
    fixture *f = *state;
    fixture_source(f, 1, "a", FIRST, "one()\n");
    APPEND(f, "\n\nnot json\n[1, 2]\n{\"number\": \"5\", \"file\": \"" FIRST "\"}\n"
              "{\"number\": -5, \"file\": \"" FIRST "\"}\n"
              "{\"number\": 4294967296, \"file\": \"" FIRST "\"}\n"
              "{\"number\": 5, \"file\": 7}\n{\"number\": 5}\n"
              "{\"number\": 5, \"file\": \"\xff\xfe\"}\n"
              "{\"number\": 6, \"id\": 1, \"file\": \"" SECOND "\", \"source\": []}\n");
    append(f, "{\"number\": 5, \"file\": \"" FIRST "\"\0}\n", 50);
    APPEND(f, "\n{\"number\": 9, \"file\": \"" FIRST "\"}"); /* no newline yet */
    pl_cell_sources *cells = load_cells(f);
    char text[PL_CELLS_TEXT_BYTES];
    assert_int_equal(pl_cell_sources_number(cells, FIRST), 1);
    assert_int_equal(pl_cell_sources_number(cells, SECOND), 6);
    pl_cell_sources_line(cells, SECOND, 1, text);
    assert_string_equal(text, "");
    pl_cell_sources_free(cells);
}

static void nesting_without_end_is_survived(void **state)
{
    fixture *f = *state;
    enum { DEEP = 500000 };
    char *deep = malloc(DEEP + 1);
    assert_non_null(deep);
    memset(deep, '[', DEEP);
    deep[DEEP] = '\n';
    append(f, deep, DEEP + 1);
    fixture_source(f, 1, "a", FIRST, "one()\n");
    pl_cell_sources *cells = load_cells(f);
    assert_int_equal(pl_cell_sources_number(cells, FIRST), 1);
    pl_cell_sources_free(cells);
    free(deep);
}

/* A hole in the file costs no disk. */
static void of_a_huge_file_both_ends_are_read(void **state)
{
    fixture *f = *state;
    char path[PATH_MAX];
    assert_int_equal(pl_run_record_path(f->record.directory, PL_RECORD_CELLS, path), 0);
    fixture_source(f, 1, "a", FIRST, "first()\n");
    fixture_source(f, 2, "b", SECOND, "second()\n");
    assert_int_equal(truncate(path, (off_t)20 << 20), 0);
    APPEND(f, "\n{\"number\": 3, \"file\": \"" FIRST "\"}\n"); /* in the middle: read by nobody */
    assert_int_equal(truncate(path, (off_t)100 << 20), 0);
    APPEND(f, "\n");
    fixture_source(f, 4, "b", SECOND, NULL);
    fixture_source(f, 5, "c", THIRD, "third()\n");
    pl_cell_sources *cells = load_cells(f);
    char text[PL_CELLS_TEXT_BYTES];
    assert_int_equal(pl_cell_sources_number(cells, FIRST), 1);
    assert_int_equal(pl_cell_sources_number(cells, SECOND), 4);
    pl_cell_sources_line(cells, SECOND, 1, text);
    assert_string_equal(text, "second()");
    pl_cell_sources_line(cells, THIRD, 1, text);
    assert_string_equal(text, "third()");
    pl_cell_sources_free(cells);
}

static void what_is_no_file_is_not_read(void **state)
{
    fixture *f = *state;
    char path[PATH_MAX];
    assert_int_equal(pl_run_record_path(f->record.directory, PL_RECORD_CELLS, path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    pl_cell_sources_free(load_cells(f));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    pl_cell_sources_free(load_cells(f));
}

static void a_long_file_name_is_known_by_the_tail_that_frames_keep(void **state)
{
    fixture *f = *state;
    char file[300] = "/scratch/";
    while (strlen(file) < 250)
        strcat(file, "\xe2\x82\xac"); /* three bytes each: the tail begins inside of one */
    strcat(file, "/12.py");
    const char *tail = file + strlen(file) - 119;
    while (((unsigned char)*tail & 0xc0) == 0x80)
        tail++;
    assert_true(strlen(tail) < 119);
    fixture_source(f, 5, "a", file, "x\n");
    pl_cell_sources *cells = load_cells(f);
    assert_int_equal(pl_cell_sources_number(cells, file), 5);
    assert_int_equal(pl_cell_sources_number(cells, tail), 5);
    pl_cell_sources_free(cells);
}

static void run_cell(fixture *f, int number, const char *id, const char *file, int64_t more_bytes)
{
    fixture_begin(f, number, id, file, "cache.append(load())\n");
    fixture_site(f, 100 + (uint64_t)*id, more_bytes, file, 1, "load");
    fixture_finish(f);
}

static void cells_are_listed_with_what_they_hold_and_how_it_grew(void **state)
{
    fixture *f = *state;
    const json_int_t mib = (json_int_t)PL_MIB;
    run_cell(f, 1, "b", SECOND, 64 * mib);
    for (int i = 0; i < 10; i++)
        run_cell(f, 2 + i, "a", FIRST, (i + 1) * 4 * mib);
    fixture_begin(f, 12, "c", THIRD, "# begin\nlast()\n");
    json_t *document = top(f);
    const json_t *cells = json_object_get(document, "cells");
    assert_int_equal(json_array_size(cells), 3);
    const json_t *grown = json_array_get(cells, 1), *held = json_object_get(grown, "held_series");
    assert_int_equal(number_of(grown, "number"), 11);
    assert_string_equal(text_of(grown, "id"), "a");
    assert_int_equal(number_of(grown, "n_runs"), 10);
    assert_int_equal(number_of(grown, "n_growing"), 9);
    assert_int_equal(number_of(grown, "held_bytes"), 220 * mib);
    assert_int_equal(number_of(grown, "growth_bytes"), 40 * mib);
    assert_int_equal(number_of(grown, "before_bytes"), (64 + 180) * mib);
    assert_int_equal(number_of(grown, "after_bytes"), (64 + 220) * mib);
    assert_int_equal(json_array_size(held), PL_CELL_RUNS);
    assert_int_equal(json_integer_value(json_array_get(held, 0)), 24 * mib);
    assert_int_equal(json_integer_value(json_array_get(held, 7)), 220 * mib);
    assert_string_equal(text_of(grown, "source"), "cache.append(load())");
    const json_t *site = json_array_get(json_object_get(grown, "sites"), 0);
    assert_string_equal(text_of(site, "place"), "In [11] line 1 in load()");
    assert_int_equal(number_of(site, "growth_bytes"), 40 * mib);
    const json_t *running = json_array_get(cells, 2);
    assert_true(json_is_true(json_object_get(running, "running")));
    assert_false(json_is_true(json_object_get(grown, "running")));
    assert_int_equal(number_of(running, "growth_bytes"), 0);
    assert_null(json_object_get(running, "after_bytes"));
    assert_int_equal(number_of(running, "peak_bytes"), (64 + 220) * mib);
    assert_string_equal(text_of(running, "source"), "last()");
    assert_int_equal(number_of(ran_at_the_end(document), "number"), 12);
    json_decref(document);
}

static void a_cell_that_grows_names_what_grew_before_what_is_large(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        fixture_begin(f, 1 + i, "a", FIRST, "x\n");
        for (uint32_t line = 1; line <= 5; line++)
            if (i == 0 || line == 2)
                fixture_site(f, 100 + line, (int64_t)PL_MIB * (line == 2 ? 8 : 100), FIRST, line,
                             "");
        fixture_finish(f);
    }
    json_t *document = top(f);
    const json_t *cell = json_array_get(json_object_get(document, "cells"), 0);
    const json_t *sites = json_object_get(cell, "sites");
    assert_int_equal(number_of(cell, "n_growing"), 1);
    assert_int_equal(json_array_size(sites), 3);
    assert_string_equal(text_of(json_array_get(sites, 0), "place"), "In [2] line 2");
    assert_int_equal(number_of(json_array_get(sites, 0), "bytes"), 16 * PL_MIB);
    json_decref(document);
}

static void one_place_in_two_processes_is_one_holder_and_in_two_cells_is_two(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        bool is_new;
        if (i == 0)
            fixture_begin(f, 1, "a", FIRST, "x\n");
        if (i == 2)
            fixture_begin(f, 2, "b", SECOND, "x\n");
        pl_site *site = pl_ledger_site(f->ledger, 50 + (uint64_t)i, 4121 + i, &is_new);
        strcpy(site->python.file, FIRST);
        site->python.line = 4;
        pl_site_add(site, (int64_t)PL_MIB, 1);
        atomic_fetch_add(&f->ledger->sum.charged_bytes, PL_MIB);
    }
    json_t *document = top(f);
    const json_t *sites = json_object_get(document, "sites");
    assert_int_equal(json_array_size(sites), 2);
    const json_t *first = json_array_get(sites, 0);
    assert_string_equal(text_of(first, "place"), "In [1] line 4");
    assert_int_equal(number_of(first, "bytes"), 2 * PL_MIB);
    assert_int_equal(number_of(first, "count"), 2);
    assert_int_equal(number_of(first, "cell"), 1);
    assert_int_equal(number_of(json_array_get(sites, 1), "cell"), 2);
    json_decref(document);
}

static void what_a_dead_kernels_cells_held_is_still_told(void **state)
{
    fixture *f = *state;
    run_cell(f, 1, "a", FIRST, 64 * (int64_t)PL_MIB);
    pl_ledger_forget_sites(f->ledger, 4121);
    fixture_end(f, SIGKILL);
    json_t *report = build(f);
    const json_t *cell = json_array_get(json_object_get(report, "cells"), 0);
    assert_int_equal(number_of(cell, "held_bytes"), 64 * PL_MIB);
    json_decref(report);
}

static void a_hang_in_a_cell_is_told_by_its_line(void **state)
{
    fixture *f = *state;
    pl_inspect_thread *thread = calloc(1, sizeof(*thread));
    assert_non_null(thread);
    const pl_inspect_process process = {.pid = 4121, .threads = thread, .n_threads = 1};
    fixture_begin(f, 3, "a", FIRST, "import threading\nlock.acquire()\n");
    atomic_store(&f->ledger->sum.kernel_pid, 4121);
    thread->tid = 4121;
    thread->n_python_frames = 1;
    strcpy(thread->python[0].file, FIRST);
    thread->python[0].line = 2;
    assert_int_equal(pl_report_write_hang(f->record.directory, &process, 1, 60, NULL), 0);
    free(thread);
    fixture_event(f, PL_EVENT_HANG, 4121, 60 * PL_NS_PER_SEC, "");
    fixture_end(f, SIGTERM);
    json_t *report = build(f);
    assert_string_equal(text_of(report, "verdict"), "hang");
    assert_string_equal(brief_line(report, "cell"), "In [3] line 2: lock.acquire()");
    ASSERT_SAYS(brief_line(report, "wait"), " at In [3] line 2");
    char *text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "      In [3] line 2\n          lock.acquire()\n");
    free(text);
    json_decref(report);
}

static char *top_text(const json_t *document, unsigned flags)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    pl_report_top_text(document, out, flags);
    fclose(out);
    return text;
}

static void top_prints_tables(void **state)
{
    fixture *f = *state;
    pl_ledger_slot *slot = &f->ledger->slots[0];
    atomic_store(&f->ledger->sum.n_slots, 1);
    run_cell(f, 1, "a", FIRST, 64 * (int64_t)PL_MIB);
    run_cell(f, 2, "a", FIRST, 16 * (int64_t)PL_MIB);
    atomic_store(&slot->pid, 4121);
    atomic_store(&slot->claimed_bytes, 60 * PL_MIB);
    atomic_store(&slot->measured_bytes, 20 * PL_MIB);
    atomic_store(&slot->resident_bytes, 90 * PL_MIB);
    atomic_store(&slot->peak_bytes, 81 * PL_MIB);
    atomic_store(&f->ledger->sum.peak_bytes, 81 * PL_MIB);
    atomic_store(&f->ledger->sum.n_refusals, 2);
    json_t *document = top(f);
    char expected[1024];
    snprintf(expected, sizeof(expected),
             "run %s: 80.0 MiB of 8.0 GiB in use (peak 81.0 MiB), 2 refused; it has ended\n"
             "  process                  pid      in use    resident        peak\n"
             "  train.py                4121    80.0 MiB    90.0 MiB    81.0 MiB\n"
             "  cell      runs        held        peak       growth  source\n"
             "  In [2]       2    80.0 MiB    80.0 MiB    +16.0 MiB  cache.append(load())\n"
             "  held by                       bytes   count  cell\n"
             "  In [2] line 1 in load()    80.0 MiB       2  In [2]\n",
             f->record.id);
    char *text = top_text(document, 0), *colored = top_text(document, PL_REPORT_COLOR);
    assert_string_equal(text, expected);
    assert_non_null(strchr(colored, '\033'));
    free(text);
    free(colored);
    const json_t *process = json_array_get(json_object_get(document, "processes"), 0);
    assert_int_equal(number_of(process, "charged_bytes"), 80 * PL_MIB);
    assert_int_equal(number_of(process, "claimed_bytes"), 60 * PL_MIB);
    json_decref(document);
}

static void top_says_which_version_a_foreign_ledger_has(void **state)
{
    fixture *f = *state;
    json_t *document = NULL;
    pl_error error = {0};
    f->ledger->header.version += 1u - (PL_LEDGER_VERSION & 0xffff);
    assert_int_equal(pl_report_top(&f->record, &document, &error), PL_EVERSION);
    ASSERT_SAYS(error.message, "version 1");
    f->ledger->header.version = PL_LEDGER_VERSION ^ 1u << 16;
    assert_int_equal(pl_report_top(&f->record, &document, &error), PL_EVERSION);
    ASSERT_SAYS(error.message, "another kind of machine");
    assert_null(document);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_crash_in_a_cell_is_told_with_its_number_line_and_source),
        TEST(the_short_text_is_the_brief),
        TEST(a_kernel_that_was_shut_down_has_no_brief),
        TEST(what_is_known_of_the_notebook_is_told),
        TEST(a_function_from_another_cell_leads_back_to_the_line_that_called_it),
        TEST(a_refusal_in_an_earlier_cell_is_not_where_the_last_one_was),
        TEST(the_ledger_names_a_cell_whose_source_was_not_written),
        TEST(every_version_of_a_cell_is_known_by_its_file),
        TEST(the_title_is_the_first_line_of_code),
        TEST(cells_with_long_ids_are_told_apart_by_their_ends),
        TEST(bad_lines_are_skipped_and_a_torn_last_one_is_ignored),
        TEST(nesting_without_end_is_survived),
        TEST(of_a_huge_file_both_ends_are_read),
        TEST(what_is_no_file_is_not_read),
        TEST(a_long_file_name_is_known_by_the_tail_that_frames_keep),
        TEST(cells_are_listed_with_what_they_hold_and_how_it_grew),
        TEST(a_cell_that_grows_names_what_grew_before_what_is_large),
        TEST(one_place_in_two_processes_is_one_holder_and_in_two_cells_is_two),
        TEST(what_a_dead_kernels_cells_held_is_still_told),
        TEST(a_hang_in_a_cell_is_told_by_its_line),
        TEST(top_prints_tables),
        TEST(top_says_which_version_a_foreign_ledger_has),
    };
    return cmocka_run_group_tests_name("cells", tests, NULL, NULL);
}
