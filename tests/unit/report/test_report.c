/* SPDX-License-Identifier: Apache-2.0 */
/* From a ledger to report.json and to text, as docs/report-format.md describes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>

#include "report/code_place.h"
#include "report/crash_analysis.h"
#include "report_fixture.h"
#include "sys/proc.h"

static void a_finished_run_is_described_and_says_nothing(void **state)
{
    fixture *f = *state;
    fixture_end(f, 0);
    json_t *report = build(f);
    assert_int_equal(number_of(report, "schema"), 1);
    assert_string_equal(text_of(report, "run"), f->record.id);
    assert_string_equal(text_of(report, "verdict"), "finished");
    assert_int_equal(number_of(report, "pid"), 4121);
    assert_int_equal(json_array_size(json_object_get(report, "command")), 5);
    assert_string_equal(json_string_value(json_array_get(json_object_get(report, "command"), 4)),
                        "3");
    assert_int_equal(number_of(json_object_get(report, "exit"), "status"), 0);
    assert_null(json_object_get(json_object_get(report, "exit"), "signal"));
    assert_int_equal(number_of(json_object_get(report, "memory"), "limit_bytes"), 8 * PL_GIB);
    double took_s = json_real_value(json_object_get(report, "duration_s"));
    assert_true(took_s >= 99 && took_s < 200);
    const char *started = text_of(report, "started");
    assert_int_equal(strlen(started), strlen("2026-11-16T03:15:22+01:00"));
    assert_int_equal(started[22], ':');
    assert_null(json_object_get(report, "crash"));
    assert_null(json_object_get(report, "refusals"));

    char *text = fixture_text(report, 0);
    assert_string_equal(text, "");
    free(text);
    text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "plimsoll: finished: 'train.py' (pid 4121) ended with status 0\n");
    free(text);
    json_decref(report);
}

static void a_refused_run_names_line_size_holders_and_the_way_on(void **state)
{
    fixture *f = *state;
    atomic_store(&f->ledger->sum.charged_bytes, 78 * PL_GIB / 10);
    atomic_store(&f->ledger->sum.n_refusals, 1);
    atomic_store(&f->ledger->sum.peak_bytes, 78 * PL_GIB / 10);
    atomic_store(&f->ledger->sum.peak_resident_bytes, 79 * PL_GIB / 10);
    fixture_event(f, PL_EVENT_REFUSED, 4121, 512 * PL_MIB, "load");
    fixture_site(f, 7, 2 * (int64_t)PL_GIB, "/home/user/model.py", 80, "forward");
    fixture_site(f, 8, 3 * (int64_t)PL_GIB, "/home/user/train.py", 33, "augment");
    fixture_end(f, 1 << 8);
    json_t *report = build(f);
    assert_string_equal(text_of(report, "verdict"), "refused");
    const json_t *refusal = json_array_get(json_object_get(report, "refusals"), 0);
    assert_string_equal(text_of(refusal, "kind"), "large");
    assert_int_equal(number_of(refusal, "bytes"), 512 * PL_MIB);
    assert_int_equal(number_of(json_object_get(refusal, "python"), "line"), 12);
    const json_t *site = json_array_get(json_object_get(report, "sites"), 0);
    assert_int_equal(number_of(site, "bytes"), 3 * PL_GIB);
    assert_int_equal(number_of(site, "pid"), 4121);

    char expected[1024 + PATH_MAX];
    snprintf(expected, sizeof(expected),
             "plimsoll: refused: 'train.py' (pid 4121) asked for 512.0 MiB at train.py:12 in "
             "load(): 7.8 of 8.0 GiB were in use\n"
             "  peak:  7.8 GiB claimed of 8.0 GiB, 7.9 GiB resident of 10.0 GiB (cgroup v2 "
             "/user.slice)\n"
             "  held:  train.py:33 in augment() 3.0 GiB, model.py:80 in forward() 2.0 GiB\n"
             "  next:  free or batch what train.py:33 in augment() keeps; allow more with "
             "--budget: the system would give 10.0 GiB\n"
             "  more:  plimsoll explain %s\n",
             f->record.directory);
    char *text = fixture_text(report, 0);
    assert_string_equal(text, expected);
    free(text);
    json_decref(report);
}

static void sites_are_those_of_the_peak_when_all_was_freed(void **state)
{
    fixture *f = *state;
    fixture_site(f, 7, 2 * (int64_t)PL_GIB, "/home/user/model.py", 80, "forward");
    pl_ledger_mark_peak(f->ledger);
    fixture_site(f, 7, -2 * (int64_t)PL_GIB, "/home/user/model.py", 80, "forward");
    fixture_end(f, 0);
    json_t *report = build(f);
    const json_t *site = json_array_get(json_object_get(report, "sites"), 0);
    assert_int_equal(number_of(site, "bytes"), 2 * PL_GIB);
    assert_string_equal(text_of(report, "sites_at"), "peak");
    char *text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "what held the memory at the peak\n");
    free(text);
    json_decref(report);
}

static void holders_are_those_of_the_refusal_not_of_the_peak(void **state)
{
    fixture *f = *state;
    fixture_site(f, 7, 7 * (int64_t)PL_GIB, "/home/user/stale.py", 3, "");
    pl_ledger_mark_peak(f->ledger);
    atomic_store(&f->ledger->sum.peak_bytes, 7 * PL_GIB);
    atomic_store(&f->ledger->sum.peak_resident_bytes, 7 * PL_GIB);
    fixture_site(f, 7, -7 * (int64_t)PL_GIB, "/home/user/stale.py", 3, "");
    fixture_site(f, 8, 24 * (int64_t)PL_MIB, "/home/user/kept.py", 5, "");
    fixture_event(f, PL_EVENT_REFUSED, 4121, 8 * PL_GIB - PL_MIB, "load");
    atomic_store(&f->ledger->sum.n_refusals, 1);
    pl_ledger_mark_refusal(f->ledger);
    pl_ledger_forget_sites(f->ledger, 4121);
    atomic_store(&f->ledger->sum.charged_bytes, 0);
    fixture_end(f, 1 << 8);
    json_t *report = build(f);
    assert_string_equal(text_of(report, "sites_at"), "refusal");
    assert_int_equal(number_of(report, "sites_in_use_bytes"), 24 * PL_MIB);
    assert_int_equal(json_array_size(json_object_get(report, "sites")), 1);
    char *text = fixture_text(report, 0);
    ASSERT_SAYS(text, "  held:  kept.py:5 24.0 MiB\n");
    ASSERT_SAYS(text, "  next:  load less at a time");
    assert_null(strstr(text, "stale.py"));
    free(text);
    text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "what held the memory at the last refusal\n  in use     24.0 MiB\n");
    free(text);
    json_decref(report);

    f->ledger->header.wait_status = 0; /* it went on: what it holds is of before */
    report = build(f);
    text = fixture_text(report, 0);
    ASSERT_SAYS(text, "  held:  at the last refusal: kept.py:5 24.0 MiB\n");
    free(text);
    json_decref(report);
}

static void a_death_by_memory_labels_the_holders_of_the_peak(void **state)
{
    fixture *f = *state;
    fixture_site(f, 7, 7 * (int64_t)PL_GIB, "/home/user/model.py", 3, "");
    pl_ledger_mark_peak(f->ledger);
    pl_ledger_forget_sites(f->ledger, 4121);
    f->ledger->header.n_oom_kills = 1;
    strcpy(f->ledger->header.cgroup_path, "/sys/fs/cgroup/memory/a");
    fixture_end(f, SIGKILL);
    json_t *report = build(f);
    assert_string_equal(text_of(report, "verdict"), "killed-for-memory");
    char *text = fixture_text(report, 0);
    ASSERT_SAYS(text, "  held:  at the peak: model.py:3 7.0 GiB\n");
    free(text);
    json_decref(report);
}

static void a_run_that_goes_on_tells_what_is_held_now(void **state)
{
    fixture *f = *state;
    fixture_site(f, 7, 7 * (int64_t)PL_GIB, "/home/user/stale.py", 3, "");
    pl_ledger_mark_peak(f->ledger);
    pl_ledger_mark_refusal(f->ledger);
    fixture_site(f, 7, -7 * (int64_t)PL_GIB, "/home/user/stale.py", 3, "");
    fixture_site(f, 8, 24 * (int64_t)PL_MIB, "/home/user/kept.py", 5, "");
    f->ledger->header.supervisor_pid = getpid();
    pl_proc_stat self;
    assert_int_equal(pl_proc_identity_read(getpid(), &self), 0);
    f->ledger->header.supervisor_start_ticks = self.start_ticks;
    json_t *report = build(f);
    assert_string_equal(text_of(report, "verdict"), "running");
    assert_string_equal(text_of(report, "sites_at"), "now");
    char *text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "what holds the memory now\n");
    assert_null(strstr(text, "stale.py"));
    free(text);
    json_decref(report);
}

static void holders_never_add_up_to_more_than_was_in_use(void **state)
{
    fixture *f = *state;
    fixture_site(f, 7, 600 * (int64_t)PL_MIB, "/home/user/a.py", 3, "");
    fixture_site(f, 8, 200 * (int64_t)PL_MIB, "/home/user/b.py", 5, "");
    atomic_store(&f->ledger->sum.charged_bytes, 400 * PL_MIB);
    fixture_end(f, 0);
    json_t *report = build(f);
    const json_t *sites = json_object_get(report, "sites");
    assert_int_equal(number_of(json_array_get(sites, 0), "bytes"), 300 * PL_MIB);
    assert_int_equal(number_of(json_array_get(sites, 1), "bytes"), 100 * PL_MIB);
    json_decref(report);
}

/* A row of the drawing: 60 columns between bars. */
static void drawing_of(const fixture *f, char columns[61], char axis[128])
{
    json_t *report = build(f);
    char *text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "over time  |");
    size_t bar = (size_t)(strstr(text, "over time  |") - text) + strlen("over time  |");
    size_t next = bar + strcspn(text + bar, "\n") + 1;
    snprintf(columns, 61, "%s", text + bar);
    snprintf(axis, 128, "%.*s", (int)strcspn(text + next, "\n"), text + next);
    free(text);
    json_decref(report);
}

static void the_drawing_is_by_time_however_seldom_samples_were_taken(void **state)
{
    fixture *f = *state;
    for (uint64_t i = 0; i < 500; i++)
        f->ledger->samples[i] = (pl_memory_sample){
            .time_ns = f->ledger->header.started_monotonic_ns +
                       (i < 480 ? i * 20 * PL_NS_PER_MS : (i - 479) * 5 * PL_NS_PER_SEC),
            .charged_bytes = i < 480 ? 8 * PL_GIB : PL_GIB,
            .resident_bytes = i < 480 ? 8 * PL_GIB : PL_GIB,
        };
    f->ledger->samples[480].time_ns = f->ledger->samples[479].time_ns + PL_NS_PER_MS;
    atomic_store(&f->ledger->sum.n_samples, 500);
    fixture_end(f, 0);
    char columns[61], axis[128];
    drawing_of(f, columns, axis);
    assert_string_equal(columns, "@@@@@@......................................................");
    assert_string_equal(axis, "             0 s                            50.0 s"
                              "                  100.0 s");
}

static void the_axis_of_a_long_run_is_in_hours(void **state)
{
    fixture *f = *state;
    fixture_samples(f, 8 * PL_GIB);
    for (uint64_t i = 0; i < 1000; i++)
        f->ledger->samples[i].time_ns =
            f->ledger->header.started_monotonic_ns + i * 10 * PL_NS_PER_SEC;
    fixture_end(f, 0);
    char columns[61], axis[128];
    drawing_of(f, columns, axis);
    assert_int_equal(columns[0], '.');
    assert_int_equal(columns[59], '%');
    assert_string_equal(axis, "             0 h                            1.4 h"
                              "                     2.8 h");
}

static void what_is_over_the_line_is_explained(void **state)
{
    fixture *f = *state;
    atomic_store(&f->ledger->sum.peak_bytes, 9 * PL_GIB);
    fixture_end(f, 0);
    json_t *report = build(f);
    char *text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "9.0 GiB claimed of 8.0 GiB (1.0 GiB over, beyond the reserve: taken where "
                      "the guard is not asked, as by static programs, or for stacks, shared memory "
                      "and pages written after a fork), ");
    free(text);
    json_decref(report);
    f->ledger->header.reserve_bytes = PL_GIB;
    report = build(f);
    text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text,
                "9.0 GiB claimed of 8.0 GiB (1.0 GiB over, within the reserve: small requests, ");
    free(text);
    json_decref(report);
    pl_event moved = {.kind = PL_EVENT_LINE, .detail = PL_LINE_LIMIT, .bytes = 8 * PL_GIB};
    strcpy(moved.where.file, "/sys/fs/cgroup/a/memory.max");
    pl_ledger_event(f->ledger, &moved);
    report = build(f);
    text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "(1.0 GiB over: the system has moved the line since the start), ");
    ASSERT_SAYS(text, "'/sys/fs/cgroup/a/memory.max' was set to 8.0 GiB");
    free(text);
    json_decref(report);
    f->ledger->header.flags |= PL_RUN_OBSERVE;
    report = build(f);
    text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "(1.0 GiB over: --observe refuses nothing), ");
    free(text);
    json_decref(report);
    atomic_store(&f->ledger->sum.peak_bytes, 8 * PL_GIB + PL_MIB);
    report = build(f);
    text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "8.0 GiB claimed of 8.0 GiB, ");
    free(text);
    json_decref(report);
}

static void a_steady_rise_is_reported_as_a_leak_with_its_slope(void **state)
{
    fixture *f = *state;
    fixture_samples(f, 8 * PL_GIB);
    fixture_site(f, 8, 6 * (int64_t)PL_GIB, "/home/user/train.py", 33, "augment");
    atomic_store(&f->ledger->sum.n_raised, 1);
    fixture_event(f, PL_EVENT_RAISED, 4121, 100, "load");
    fixture_end(f, 1 << 8);
    json_t *report = build(f);
    assert_string_equal(text_of(report, "verdict"), "leak");
    const json_t *leak = json_object_get(report, "leak");
    assert_in_range(number_of(leak, "bytes_per_s"), 70 * PL_MIB, 75 * PL_MIB);
    assert_int_equal(json_array_size(json_object_get(leak, "sites")), 1);
    assert_int_equal(json_array_size(json_object_get(report, "timeline")), 120);
    const json_t *last = json_array_get(json_object_get(report, "timeline"), 119);
    assert_in_range(json_integer_value(json_array_get(last, 2)), 8 * PL_GIB - PL_MIB, 8 * PL_GIB);
    char *text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "over time");
    free(text);
    json_decref(report);
}

static void a_refusal_completes_a_rise_that_the_last_sample_missed(void **state)
{
    fixture *f = *state;
    fixture_samples(f, 6 * PL_GIB); /* three quarters of the line: no leak yet */
    fixture_end(f, 1 << 8);
    json_t *report = build(f);
    assert_string_equal(text_of(report, "verdict"), "failed");
    json_decref(report);

    atomic_store(&f->ledger->sum.charged_bytes, 79 * PL_GIB / 10);
    fixture_event(f, PL_EVENT_REFUSED, 4121, 2 * PL_MIB, "load");
    f->ledger->events[0].time_ns += 30 * PL_NS_PER_SEC;
    report = build(f);
    assert_string_equal(text_of(report, "verdict"), "leak");
    json_decref(report);
}

static void a_crash_is_told_with_its_python_line(void **state)
{
    fixture *f = *state;
    pl_crash *crash = &f->ledger->crashes[3];
    *crash = (pl_crash){.pid = 4121,
                        .tid = 4130,
                        .signal = SIGABRT,
                        .signal_code = SI_TKILL,
                        .sender_pid = 4121,
                        .time_ns = pl_clock_monotonic_ns(),
                        .n_python_frames = 2,
                        .abort_message = "free(): invalid pointer\n",
                        .thread_name = "pool-1"};
    strcpy(crash->python[0].file, "/usr/lib/python3.11/site-packages/foo/bar.py");
    crash->python[0].line = 5;
    strcpy(crash->python[1].file, "/home/user/train.py");
    strcpy(crash->python[1].function, "step");
    crash->python[1].line = 44;
    atomic_store(&crash->state, PL_CRASH_COMPLETE);
    fixture_end(f, SIGABRT);
    json_t *report = build(f);
    assert_string_equal(text_of(report, "verdict"), "crashed");
    ASSERT_SAYS(text_of(report, "summary"),
                "abort in 'train.py' (pid 4121) at train.py:44 in step(): free(): invalid pointer");
    assert_string_equal(text_of(json_object_get(report, "exit"), "signal"), "SIGABRT");
    assert_int_equal(number_of(json_object_get(report, "exit"), "status"), 128 + SIGABRT);
    assert_string_equal(text_of(json_object_get(report, "crash"), "kind"), "abort");
    assert_int_equal(json_array_size(json_object_get(report, "python")), 2);
    json_decref(report);
}

static void a_crash_that_was_not_written_to_its_end_is_not_used(void **state)
{
    fixture *f = *state;
    f->ledger->crashes[0].pid = 4121;
    f->ledger->crashes[0].signal = SIGABRT;
    atomic_store(&f->ledger->crashes[0].state, PL_CRASH_WRITING);
    fixture_end(f, SIGABRT);
    json_t *report = build(f);
    assert_null(json_object_get(report, "crash"));
    assert_string_equal(text_of(report, "verdict"), "crashed");
    json_decref(report);
}

static void a_bus_error_names_the_file_behind_the_address(void **state)
{
    fixture *f = *state;
    static const char maps[] = "1000-2000 rw-p 00000000 00:00 0 \n"
                               "2000-8000 rw-s 00000000 00:19 77    /dev/shm/torch_1 (deleted)\n";
    char path[PATH_MAX];
    assert_int_equal(pl_run_record_path(f->record.directory, "crash.4121", path), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(maps, file);
    fclose(file);
    pl_crash *crash = &f->ledger->crashes[0];
    *crash = (pl_crash){.pid = 4121,
                        .signal = SIGBUS,
                        .signal_code = BUS_ADRERR,
                        .address = 0x3000,
                        .maps_bytes = sizeof(maps) - 1,
                        .time_ns = pl_clock_monotonic_ns()};
    atomic_store(&crash->state, PL_CRASH_COMPLETE);
    fixture_end(f, SIGBUS);
    json_t *report = build(f);
    ASSERT_SAYS(text_of(report, "summary"), "/dev/shm is full");
    ASSERT_SAYS(json_string_value(json_array_get(json_object_get(report, "next"), 0)),
                "--shm-size");
    json_decref(report);
}

static enum pl_crash_cause cause_of_abort(const char *message, const char *exception)
{
    pl_crash crash = {.pid = 4121, .signal = SIGABRT, .signal_code = SI_TKILL, .sender_pid = 4121};
    pl_crash_analysis analysis;
    snprintf(crash.abort_message, sizeof(crash.abort_message), "%s", message);
    snprintf(crash.exception_type, sizeof(crash.exception_type), "%s", exception);
    assert_int_equal(pl_crash_analyse(&crash, "/nonexistent", &analysis), 0);
    return analysis.cause;
}

static void the_cause_of_an_abort_is_read_from_glibcs_words_once(void **state)
{
    (void)state;
    assert_int_equal(cause_of_abort("double free or corruption (fasttop)\n", ""),
                     PL_CRASH_DOUBLE_FREE);
    assert_int_equal(cause_of_abort("free(): double free detected in tcache 2\n", ""),
                     PL_CRASH_DOUBLE_FREE);
    assert_int_equal(cause_of_abort("munmap_chunk(): invalid pointer\n", ""),
                     PL_CRASH_HEAP_CORRUPTION);
    assert_int_equal(cause_of_abort("corrupted size vs. prev_size\n", ""),
                     PL_CRASH_HEAP_CORRUPTION);
    assert_int_equal(
        cause_of_abort("a.out: malloc.c:2379: sysmalloc: Assertion `x == y' failed.\n", ""),
        PL_CRASH_HEAP_CORRUPTION);
    assert_int_equal(cause_of_abort("a.out: a.c:7: f: Assertion `n_malloc() == 0' failed.\n", ""),
                     PL_CRASH_CAUSE_OTHER);
    assert_int_equal(cause_of_abort("", "St9bad_alloc"), PL_CRASH_BAD_ALLOC);
    assert_int_equal(cause_of_abort("", "St13runtime_error"), PL_CRASH_CAUSE_OTHER);
    assert_int_equal(cause_of_abort("", ""), PL_CRASH_CAUSE_OTHER);
}

static void mappings_are_found_by_address(void **state)
{
    (void)state;
    pl_map_region found;
    static const char maps[] = "7f00-7f10 r-xp 0000 08:01 12   /usr/lib/a b.so\n"
                               "rubbish\n"
                               "7f18-7f20 rw-p 0000 00:00 0\n";
    assert_true(pl_map_region_find(maps, 0x7f0f, &found));
    assert_string_equal(found.path, "/usr/lib/a b.so");
    assert_true(pl_map_region_find(maps, 0x7f10, &found)); /* the next one above */
    assert_int_equal(found.low, 0x7f18);
    assert_string_equal(found.path, "");
    assert_false(pl_map_region_find(maps, 0x7f20, &found));
    assert_false(pl_map_region_find("", 0, &found));
}

/* Puts a segmentation fault at `address`, with the stack pointer at `sp`, into the record. */
static void add_fault(const fixture *f, const char *maps, uint64_t address, uint64_t sp, int code)
{
    char path[PATH_MAX];
    assert_int_equal(pl_run_record_path(f->record.directory, "crash.4121", path), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(maps, file);
    fclose(file);
    pl_crash *crash = &f->ledger->crashes[0];
    *crash = (pl_crash){.pid = 4121,
                        .signal = SIGSEGV,
                        .signal_code = code,
                        .address = address,
                        .registers[PL_REGISTER_SP] = sp,
                        .maps_bytes = strlen(maps),
                        .time_ns = pl_clock_monotonic_ns()};
    atomic_store(&crash->state, PL_CRASH_COMPLETE);
}

static void a_full_stack_is_told_from_a_wild_pointer(void **state)
{
    fixture *f = *state;
    fixture_end(f, SIGSEGV);
    add_fault(f, "7f0000800000-7f0001000000 rw-p 0000 00:00 0 [stack]\n", 0x7f00007fffa8,
              0x7f00007fffa0, SEGV_MAPERR);
    json_t *report = build(f);
    ASSERT_SAYS(text_of(report, "summary"), "stack overflow: all 8.0 MiB are used");
    json_decref(report);

    add_fault(f,
              "7f00007ff000-7f0000800000 ---p 0000 00:00 0\n"
              "7f0000800000-7f0000a00000 rw-p 0000 00:00 0\n",
              0x7f00007fffa8, 0x7f00007fffa0, SEGV_ACCERR);
    report = build(f);
    ASSERT_SAYS(text_of(report, "summary"), "stack overflow: all 2.0 MiB are used");
    json_decref(report);

    add_fault(f, "7f0000800000-7f0001000000 rw-p 0000 00:00 0 [stack]\n", 0x10, 0x7f0000900000,
              SEGV_MAPERR);
    report = build(f);
    ASSERT_SAYS(text_of(report, "summary"), "access to address 0x10, where nothing is mapped");
    json_decref(report);
}

static void a_dead_supervisor_leaves_a_record_that_can_be_judged(void **state)
{
    fixture *f = *state;
    /* Of another boot: what this machine's counters say since does not decide here. */
    strcpy(f->ledger->header.boot_id, "00000000-0000-0000-0000-000000000000");
    json_t *report = build(f);
    assert_string_equal(text_of(report, "verdict"), "lost");
    assert_null(json_object_get(report, "ended"));
    assert_null(json_object_get(report, "exit"));
    json_decref(report);

    fixture_samples(f, 98 * PL_GIB / 10);
    report = build(f);
    assert_string_equal(text_of(report, "verdict"), "killed-for-memory");
    ASSERT_SAYS(text_of(report, "summary"), "most likely");
    ASSERT_SAYS(json_string_value(json_array_get(json_object_get(report, "evidence"), 0)),
                "memory rose steadily before");
    assert_non_null(json_object_get(report, "leak"));
    json_decref(report);

    f->ledger->header.boot_id[0] = '\0';
    f->ledger->header.supervisor_pid = getpid();
    report = build(f);
    assert_string_equal(text_of(report, "verdict"), "running");
    json_decref(report);
}

static void processes_that_were_stopped_or_died_are_listed(void **state)
{
    fixture *f = *state;
    fixture_event(f, PL_EVENT_STOPPED, 5000, PL_GIB, "worker");
    fixture_event(f, PL_EVENT_MARK, 4121, 0, "epoch 3");
    pl_event died = {.kind = PL_EVENT_DIED, .pid = 5001, .detail = SIGKILL};
    pl_ledger_event(f->ledger, &died);
    fixture_end(f, 1 << 8);
    f->ledger->header.n_oom_kills = 1;
    json_t *report = build(f);
    assert_string_equal(text_of(report, "verdict"), "stopped-for-memory");
    assert_string_equal(text_of(json_array_get(json_object_get(report, "stopped"), 0), "name"),
                        "worker");
    assert_string_equal(text_of(json_array_get(json_object_get(report, "deaths"), 0), "signal"),
                        "SIGKILL");
    assert_string_equal(text_of(json_array_get(json_object_get(report, "marks"), 0), "text"),
                        "epoch 3");
    json_decref(report);
}

static void a_hang_is_kept_and_told(void **state)
{
    fixture *f = *state;
    pl_inspect_thread *threads = calloc(2, sizeof(*threads));
    assert_non_null(threads);
    for (int i = 0; i < 2; i++) {
        threads[i].tid = 4121 + i;
        strcpy(threads[i].name, "main");
        snprintf(threads[i].waits_for, sizeof(threads[i].waits_for), "a lock held by thread %d",
                 4122 - i);
        threads[i].n_python_frames = 1;
        strcpy(threads[i].python[0].file, "/home/user/train.py");
        strcpy(threads[i].python[0].function, "wait\xff");
        threads[i].python[0].line = 9;
    }
    pl_inspect_process process = {
        .pid = 4121, .n_threads = 2, .threads = threads, .n_cycle = 2, .cycle = {4121, 4122}};
    assert_int_equal(pl_report_write_hang(f->record.directory, &process, 1, 60, NULL), 0);
    free(threads);
    fixture_event(f, PL_EVENT_HANG, 4121, 60 * PL_NS_PER_SEC, "");
    f->ledger->header.stop_signal = SIGINT;
    fixture_end(f, SIGINT);

    json_t *report = build(f);
    assert_string_equal(text_of(report, "verdict"), "hang");
    const json_t *hang = json_object_get(report, "hang");
    assert_int_equal(json_array_size(json_object_get(hang, "threads")), 2);
    assert_int_equal(json_array_size(json_object_get(hang, "cycle")), 2);
    char *text = fixture_text(report, 0);
    ASSERT_SAYS(text, "thread 4121 'main' for a lock held by thread 4122 at");
    free(text);
    text = fixture_text(report, PL_REPORT_FULL);
    ASSERT_SAYS(text, "deadlock: 4121 -> 4122 -> 4121");
    free(text);
    json_decref(report);
}

static void a_hang_that_passed_is_not_the_verdict(void **state)
{
    fixture *f = *state;
    fixture_event(f, PL_EVENT_HANG, 4121, 60 * PL_NS_PER_SEC, "");
    f->ledger->events[0].time_ns = f->ledger->header.started_monotonic_ns + 50 * PL_NS_PER_SEC;
    fixture_samples(f, 2 * PL_GIB);
    for (uint64_t i = 0; i < 1000; i++)
        f->ledger->samples[i].cpu_ns = i < 500 ? 0 : (i - 500) * 100 * PL_NS_PER_MS;
    fixture_end(f, SIGTERM);
    json_t *report = build(f);
    assert_string_equal(text_of(report, "verdict"), "killed");
    json_decref(report);
}

static void bad_text_is_made_valid_and_cannot_reach_the_terminal(void **state)
{
    fixture *f = *state;
    pl_ledger_header *header = &f->ledger->header;
    memset(header->directory, 'x', sizeof(header->directory)); /* no NUL */
    strcpy(header->command, "\033[2Jrun\xff\xc3\n\xc2\x9b"
                            "3m");
    fixture_end(f, 3 << 8);
    json_t *report = build(f);
    char *dump = json_dumps(report, 0);
    assert_non_null(dump);
    free(dump);
    for (unsigned flags = 0; flags < 4; flags++) {
        char *text = fixture_text(report, flags & ~(unsigned)PL_REPORT_COLOR);
        assert_null(strchr(text, '\033'));
        assert_null(strstr(text, "\xc2\x9b"));
        ASSERT_SAYS(text, "run\xef\xbf\xbd");
        free(text);
    }
    json_decref(report);
}

static void color_is_only_for_who_asks(void **state)
{
    fixture *f = *state;
    fixture_end(f, SIGKILL);
    json_t *report = build(f);
    char *plain = fixture_text(report, 0), *colored = fixture_text(report, PL_REPORT_COLOR);
    assert_null(strchr(plain, '\033'));
    assert_non_null(strchr(colored, '\033'));
    free(plain);
    free(colored);
    assert_false(pl_report_wants_color(tmpfile()));
    json_decref(report);
}

static void what_is_saved_is_loaded_and_a_bad_file_falls_back_to_the_ledger(void **state)
{
    fixture *f = *state;
    fixture_end(f, 0);
    json_t *report = build(f), *loaded = NULL;
    char path[PATH_MAX];
    assert_int_equal(pl_run_record_path(f->record.directory, PL_RECORD_REPORT, path), 0);
    json_object_set_new(report, "verdict", json_string("lost"));
    assert_int_equal(pl_report_save(report, path, NULL), 0);
    assert_int_equal(pl_report_load(&f->record, &loaded, NULL), 0);
    assert_string_equal(text_of(loaded, "verdict"), "lost");
    json_decref(loaded);

    json_object_set_new(report, "verdict", json_string("of a later version"));
    assert_int_equal(pl_report_save(report, path, NULL), 0);
    assert_int_equal(pl_report_load(&f->record, &loaded, NULL), 0);
    assert_string_equal(text_of(loaded, "verdict"), "finished");
    json_decref(loaded);

    json_object_set_new(report, "schema", json_integer(2));
    assert_int_equal(pl_report_save(report, path, NULL), 0);
    assert_int_equal(pl_report_load(&f->record, &loaded, NULL), 0);
    assert_string_equal(text_of(loaded, "verdict"), "finished");
    json_decref(loaded);

    assert_int_equal(truncate(path, 40), 0);
    assert_int_equal(pl_report_load(&f->record, &loaded, NULL), 0);
    assert_string_equal(text_of(loaded, "verdict"), "finished");
    json_decref(loaded);
    json_decref(report);
}

static void a_report_that_cannot_be_written_leaves_nothing(void **state)
{
    fixture *f = *state;
    json_t *report = build(f);
    pl_error error = {0};
    assert_int_equal(pl_report_save(report, "/nonexistent/report.json", &error), -ENOENT);
    ASSERT_SAYS(error.message, "cannot write '/nonexistent/report.json'");
    json_decref(report);
}

static void a_truncated_or_foreign_ledger_is_one_clear_line(void **state)
{
    fixture *f = *state;
    char path[PATH_MAX];
    json_t *report = NULL;
    pl_error error = {0};
    f->ledger->header.version = (PL_LEDGER_VERSION & 0xffff0000) | 99;
    assert_int_equal(pl_report_load(&f->record, &report, &error), PL_EVERSION);
    assert_null(strchr(error.message, '\n'));
    ASSERT_SAYS(error.message, "version 99");
    f->ledger->header.version = PL_LEDGER_VERSION;
    pl_ledger_close(f->ledger);
    f->ledger = NULL;
    assert_int_equal(pl_run_record_path(f->record.directory, PL_RECORD_LEDGER, path), 0);
    assert_int_equal(truncate(path, 5000), 0);
    assert_int_equal(pl_report_load(&f->record, &report, &error), PL_ECORRUPT);
    ASSERT_SAYS(error.message, "truncated");
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(pl_report_load(&f->record, &report, &error), PL_ECORRUPT);
}

static void only_the_newest_refusals_are_kept_in_order(void **state)
{
    fixture *f = *state;
    for (uint64_t i = 0; i < 3000; i++)
        fixture_event(f, PL_EVENT_REFUSED, 4121, i + 1, "load");
    fixture_end(f, 0);
    json_t *report = build(f);
    const json_t *refusals = json_object_get(report, "refusals");
    assert_int_equal(json_array_size(refusals), 64);
    assert_int_equal(number_of(json_array_get(refusals, 0), "bytes"), 3000 - 63);
    assert_int_equal(number_of(json_array_get(refusals, 63), "bytes"), 3000);
    json_decref(report);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void a_place_in_cxx_is_the_users_line_not_the_librarys(void **state)
{
    (void)state;
    pl_native_frame frames[4] = {0};
    strcpy(frames[0].module, "/usr/lib/x86_64-linux-gnu/libc.so.6");
    for (int i = 1; i < 4; i++)
        strcpy(frames[i].module, "/home/me/cx");
    strcpy(frames[1].symbol, "std::__new_allocator<char>::allocate");
    strcpy(frames[2].symbol, "main");
    strcpy(frames[3].symbol, "_start");
    assert_int_equal(pl_code_place_pick_native(frames, 4), 2);
    assert_int_equal(pl_code_place_pick_native(frames, 2), 1); /* there is nothing better */
    assert_int_equal(pl_code_place_pick_native(frames, 1), 0);
    assert_int_equal(pl_code_place_pick_native(frames, 0), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_finished_run_is_described_and_says_nothing),
        TEST(a_refused_run_names_line_size_holders_and_the_way_on),
        TEST(sites_are_those_of_the_peak_when_all_was_freed),
        TEST(the_drawing_is_by_time_however_seldom_samples_were_taken),
        TEST(the_axis_of_a_long_run_is_in_hours),
        TEST(what_is_over_the_line_is_explained),
        TEST(holders_are_those_of_the_refusal_not_of_the_peak),
        TEST(a_death_by_memory_labels_the_holders_of_the_peak),
        TEST(a_run_that_goes_on_tells_what_is_held_now),
        TEST(holders_never_add_up_to_more_than_was_in_use),
        TEST(a_steady_rise_is_reported_as_a_leak_with_its_slope),
        TEST(a_refusal_completes_a_rise_that_the_last_sample_missed),
        TEST(a_crash_is_told_with_its_python_line),
        TEST(a_crash_that_was_not_written_to_its_end_is_not_used),
        TEST(a_bus_error_names_the_file_behind_the_address),
        TEST(mappings_are_found_by_address),
        TEST(the_cause_of_an_abort_is_read_from_glibcs_words_once),
        TEST(a_full_stack_is_told_from_a_wild_pointer),
        TEST(a_dead_supervisor_leaves_a_record_that_can_be_judged),
        TEST(processes_that_were_stopped_or_died_are_listed),
        TEST(a_hang_is_kept_and_told),
        TEST(a_hang_that_passed_is_not_the_verdict),
        TEST(bad_text_is_made_valid_and_cannot_reach_the_terminal),
        TEST(color_is_only_for_who_asks),
        TEST(what_is_saved_is_loaded_and_a_bad_file_falls_back_to_the_ledger),
        TEST(a_report_that_cannot_be_written_leaves_nothing),
        TEST(a_truncated_or_foreign_ledger_is_one_clear_line),
        TEST(only_the_newest_refusals_are_kept_in_order),
        TEST(a_place_in_cxx_is_the_users_line_not_the_librarys),
    };
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
